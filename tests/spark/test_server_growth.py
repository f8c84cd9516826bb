"""Servers hold their threads and objects constant, however many sessions and queries they have had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.s3_server import free_port
from tests.spark.server_commands import arguments, environment, of_page

from penstock import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3000)]

SERVER: Final = Path(__file__).with_name("measured_server.py")
CLIENTS: Final = Path(__file__).with_name("server_clients.py")
PYHIVE: Final = Path(os.environ.get("PENSTOCK_PYHIVE", Path(__file__).parents[2] / ".venv-dbt" / "bin" / "python"))
SECTIONS: Final = {"connect": "Spark Connect", "thrift": "JDBC and ODBC"}
# What a longer run may have more than a short one: pools that have not been full before, and caches with a bound.
SLACK: Final = {
    "JVM threads": 24,
    # One for each call of Python that was made while others ran.
    "Python threads": 4,
    # Of the sessions that Python keeps because they were used last, or Spark, whose idle threads end after a minute.
    "Java objects of Py4J": 200,
    "Python proxies": 100,
    "open files": 12,
}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    catalog = Catalog(tmp_path / "w", {"penstock.durable": "false"})
    catalog.create_database("shop")
    keys = catalog.create_table("shop.keys", "k INT, v INT")
    for half in range(2):
        keys.append([{"k": key, "v": 2 * key} for key in range(half * 20, half * 20 + 20)])
    catalog.create_table("shop.log", "n INT", options={"num-sorted-run.compaction-trigger": "5"})
    return tmp_path


def measured(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], dict[str, int]]]]:
    """Yield the address of a server, and what measures it."""
    port, found = free_port(), folder / "counts.json"
    command, _ = of_page(SECTIONS[kind])
    _, *words = arguments(command, folder / "w", port)
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(found), *words], cwd=folder, env=environment(), stdout=log, stderr=log
    )

    def text() -> str:
        return (folder / "server.log").read_text()

    try:
        deadline = time.monotonic() + 120
        while "catalogs: penstock" not in text():
            assert process.poll() is None, text()[-3000:]
            assert time.monotonic() < deadline, text()[-3000:]
            time.sleep(0.2)

        def measure() -> dict[str, int]:
            found.unlink(missing_ok=True)
            process.send_signal(signal.SIGUSR1)
            until = time.monotonic() + 60
            while not found.exists():
                assert time.monotonic() < until, text()[-3000:]
                time.sleep(0.1)
            counts: dict[str, int] = json.loads(found.read_text())
            return counts

        yield (f"sc://127.0.0.1:{port}" if kind == "connect" else f"127.0.0.1:{port}"), measure
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, text()[-3000:]
    finally:
        process.kill()
        process.wait()
        log.close()


def clients(kind: str, address: str, sessions: int, queries: int) -> float:
    python = PYHIVE if kind == "thrift" else sys.executable
    words = [str(python), "-W", "ignore", str(CLIENTS), kind, address, *map(str, (sessions, queries, 4))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return float(done.stdout)


def check_no_growth(kind: str, folder: Path, sessions: int, counts: tuple[int, ...]) -> None:
    """Send queries in parts, each in new sessions: threads and objects stay as many as after the first part."""
    reports: list[tuple[int, float, dict[str, int]]] = []
    for address, measure in measured(kind, folder):
        total = 0
        for queries in counts:
            seconds = clients(kind, address, sessions, queries)
            total += queries
            time.sleep(2)
            reports.append((total, seconds, measure()))
            print(kind, total, "queries,", seconds, "s:", json.dumps(reports[-1][2]), flush=True)  # noqa: T201 - the figures
    (_, _, before), *_, (_, _, after) = reports
    for name, slack in SLACK.items():
        assert after[name] <= before[name] + slack, f"{name}: {[each[name] for _, _, each in reports]}"
    assert after["Python objects"] <= before["Python objects"] * 1.03, reports


@pytest.mark.parametrize("kind", SECTIONS)
def test_a_server_does_not_grow_with_sessions_and_queries(kind: str, warehouse: Path) -> None:
    if kind == "thrift" and not PYHIVE.exists():
        pytest.skip("PyHive is not installed: make test-dbt installs it")
    check_no_growth(kind, warehouse, 8, (80, 160))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SECTIONS)
def test_a_server_does_not_grow_with_100_sessions_and_10_000_queries(kind: str, warehouse: Path) -> None:
    if kind == "thrift" and not PYHIVE.exists():
        pytest.skip("PyHive is not installed: make test-dbt installs it")
    queries = int(os.environ.get("PENSTOCK_SERVER_QUERIES", "10000"))
    # Counted after 500, 2,500, 5,000 and 10,000 queries.
    check_no_growth(kind, warehouse, 100, (queries // 20, queries // 5, queries // 4, queries // 2))


def test_the_prompt_does_not_grow_with_statements(warehouse: Path) -> None:
    command, _ = of_page("The SQL prompt of Spark")
    script = warehouse / "many.sql"
    statements = [f"SELECT v FROM penstock.shop.keys WHERE k = {number % 40};\n" for number in range(240)]  # noqa: S608 - a number
    script.write_text("".join(statements))
    words = arguments(command, warehouse / "w")
    words[words.index("--execute") : words.index("--execute") + 2] = ["--file", str(script)]
    seen: list[int] = []
    values = 0
    log = (warehouse / "prompt.log").open("wb")
    with (
        log,
        subprocess.Popen(
            words, cwd=warehouse, env=environment(), stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdigit():
                values += 1
                if values % 40 == 0:
                    seen.append(_threads_of_group(process.pid))
        assert process.wait() == 0, (warehouse / "prompt.log").read_text()[-3000:]
    assert values == len(statements)
    assert max(seen[-2:]) <= max(seen[:2]) + 12, seen


def _threads_of_group(pid: int) -> int:
    """Return the number of threads of a process and of those that it started."""
    found: dict[int, Any] = {}
    for place in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in place.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        found[int(fields["Pid"])] = (int(fields["PPid"]), int(fields["Threads"]))
    family = {pid}
    while more := {each for each, (parent, _) in found.items() if parent in family} - family:
        family |= more
    return sum(found[each][1] for each in family if each in found)
