"""The command as a process of its own: start-up, pipes, signals."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from penstock import Catalog

MAIN: Final = "from penstock.cli.main import main; main()"
# Of processor time; 0.14 on an idle machine, where 0.25 is the limit.
START_CPU_SECONDS: Final = 0.5
# 91 and 209: unlike times, the same on a busy machine.
MAX_MODULES_OF_IMPORT: Final = 105
MAX_MODULES_OF_HELP: Final = 230


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse on disk with 200,000 numbers in ``shop.t``."""
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "n BIGINT")
    table.append(pa.table({"n": range(200_000)}))
    return tmp_path / "warehouse"


def _environment(warehouse: Path) -> dict[str, str]:
    return {**os.environ, "PENSTOCK_WAREHOUSE": str(warehouse), "PYTHONIOENCODING": "utf-8"}


def _run(warehouse: Path, *args: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *args],
        env=_environment(warehouse),
        input=input,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_starts_at_once_and_without_what_it_does_not_need(warehouse: Path) -> None:
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "rollback" in _run(warehouse, "--help").stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        if seconds < START_CPU_SECONDS:
            break
    assert seconds < START_CPU_SECONDS

    late = "('pyspark', 'pandas', 'sqlglot', 'prompt_toolkit', 'pyarrow', 'numpy')"
    loaded = f"import sys, penstock.cli.main; print(*[m for m in {late} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    ("code", "max_modules"),
    [
        ("import penstock", MAX_MODULES_OF_IMPORT),
        ("import penstock.cli.main as m; m.app(['--help'])", MAX_MODULES_OF_HELP),
    ],
)
def test_the_start_imports_few_modules(code: str, max_modules: int) -> None:
    script = f"import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr)); {code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stderr) <= max_modules


def test_a_reader_that_has_enough_ends_the_command_quietly(warehouse: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "read", "shop.t", "--format", "csv"],
        env=_environment(warehouse),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'"n"\n'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize("args", ["--help", "--version", "read --help", "options --all"])
def test_a_reader_that_wants_nothing_ends_every_command_with_0(warehouse: Path, args: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *args.split()],
        env=_environment(warehouse),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "args",
    [
        ("list",),
        ("--help",),
        ("read", "shop.t", "--format", "json"),
        ("follow", "shop.t", "--once", "--from", "earliest"),
    ],
)
def test_output_that_finds_no_space_is_one_line_and_a_code(warehouse: Path, args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *args],
            env=_environment(warehouse),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == "error: the output cannot be written: No space left on device\n"
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("redirection", "code", "says"),
    [
        ("list >&-", 0, ""),
        ("read shop.nothing 2>&-", 3, ""),
        ("truncate shop.t <&-", 1, "nothing was changed"),
        ("append shop.t - --input-format csv <&-", 9, "Empty CSV file"),
    ],
)
def test_streams_may_be_closed(warehouse: Path, redirection: str, code: int, says: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, MAIN],
        env=_environment(warehouse),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, says in done.stderr, "Traceback" in done.stderr) == (code, True, False)


def test_rows_that_do_not_fit_end_the_command_while_their_producer_goes_on(warehouse: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "append", "shop.t", "-", "--input-format", "csv"],
        env=_environment(warehouse),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        with suppress(BrokenPipeError):
            running.stdin.write(b"n\nx\n" + b"12345678\n" * 800_000)  # Arrow's thread waits for more
        assert running.wait(60) == 9
        with suppress(BrokenPipeError):
            running.stdin.close()
        assert running.stderr.read().decode().startswith("error: standard input, row 2, column")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}, "größe\n─────\n日本\n"),
        ({"PYTHONIOENCODING": "ascii"}, "gr\\xf6\\xdfe\n" + "\\u2500" * 5 + "\n\\u65e5\\u672c\n"),
    ],
)
def test_no_encoding_of_the_output_is_an_error(warehouse: Path, variables: dict[str, str], expected: str) -> None:
    Catalog(str(warehouse)).create_table("shop.u", "`größe` STRING").append([{"größe": "日本"}])
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "LC_", "LANG")) or key == "PYTHONPYCACHEPREFIX"
    }
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "-w", str(warehouse), "read", "shop.u"],
        env=environment | variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_rows_go_through_a_pipe_from_table_to_table(warehouse: Path) -> None:
    _run(warehouse, "create", "shop.u", "n BIGINT")
    read = _run(warehouse, "read", "shop.t", "--format", "csv", "--where", "n >= 199990")
    done = _run(warehouse, "append", "shop.u", "-", "--input-format", "csv", input=read.stdout)
    assert done.stderr == ""
    assert done.stdout == "appended to shop.u: snapshot 1, +10 rows, 10 in all\n"


def test_an_interrupt_leaves_no_files_and_ends_with_130(warehouse: Path) -> None:
    _run(warehouse, "create", "shop.u", "n BIGINT")
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "append", "shop.u", "-", "--input-format", "json"],
        env=_environment(warehouse),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stderr is not None
        # A pipe holds 64 KiB: once all this is written, the command is up and waits for more.
        process.stdin.write(b'{"n": 1}\n' * 100_000)
        process.stdin.flush()
        time.sleep(0.5)  # a signal between two reads is seen only when the second one ends
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"error: interrupted\n"
    assert process.returncode == 130
    directory = warehouse / "shop.db" / "u"
    assert [path.name for path in directory.rglob("*") if path.is_file()] == ["schema-0"]


def test_output_of_any_script_is_utf_8(warehouse: Path) -> None:
    _run(warehouse, "create", "shop.ü", "`größe` STRING")
    _run(warehouse, "append", "shop.ü", "-", "--input-format", "csv", input="größe\n日本語 🚰\n")
    assert "日本語 🚰" in _run(warehouse, "read", "shop.ü").stdout


def test_an_interrupt_during_imports_ends_in_one_line() -> None:
    finder = "type('F', (), {'find_spec': staticmethod(lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))})"
    script = f"import sys, penstock.cli; sys.meta_path.insert(0, {finder}); penstock.cli.run()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
