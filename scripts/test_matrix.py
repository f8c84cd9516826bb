"""Build the wheel twice, compare both byte by byte, and try it on every available interpreter and version of PySpark.

On each interpreter the wheel is installed alone into an empty environment. There it creates, appends to and reads a
table, also from the command line; its import is timed, and its files are measured. With each version of PySpark the
same is done through a session, and the tests of ``SAMPLE`` run. Interpreters and versions that are not available are
listed; they are an error only with ``--require-all``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
UV: Final = str(ROOT / "scripts" / "uv.sh")
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
SPARKS: Final = ("3.5.9", "4.0.5", "4.1.4", "4.3.0")
"""Versions of PySpark other than that of the lock file, the oldest one first."""

SAMPLE: Final = (
    "tests/spark/test_steps_of_a_day.py",
    "tests/spark/connector/changes/test_changes.py",
    "tests/spark/connector/test_deletion_vectors.py",
    "tests/spark/connector/test_native_reader.py",
    "tests/spark/connector/stream/test_table_write.py",
    "tests/faults/streams/test_task_order.py",
    "tests/faults/streams/test_killed_streams.py",
    "tests/spark/test_servers.py",
)
"""Each feature, row changes and readers against Python, streams: their batches once, order, killed drivers; servers."""

# Py4J of PySpark 4.1 and older leaves sockets to the garbage collector; PySpark 3.5 uses a module that is deprecated.
_IGNORED: Final = (
    "ignore:unclosed:ResourceWarning",
    "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning",
    "ignore:The distutils package:DeprecationWarning",
    "ignore:distutils Version:DeprecationWarning",
)
AT_ONCE: Final = 2
"""Versions of PySpark that are tried at the same time."""

IMPORT_SECONDS: Final = 0.15
INSTALLED_BYTES: Final = 300_000_000
"""Of the files of Penstock and what it installs; Arrow and numpy are three quarters of them."""
IMPORTS: Final = 7
# 2020-01-01: any fixed time makes two builds equal.
EPOCH: Final = "1577836800"
SMOKE: Final = """
import sys, tempfile
import penstock
catalog = penstock.Catalog(tempfile.mkdtemp())
catalog.create_database("shop")
table = catalog.create_table("shop.orders", "id BIGINT, dt STRING", partition_by="dt")
assert table.append([{"id": 1, "dt": "2026-01-01"}, {"id": 2, "dt": "2026-01-02"}]).id == 1
assert table.to_arrow(filter="dt = '2026-01-02'").to_pylist() == [{"id": 2, "dt": "2026-01-02"}]
assert "pyspark" not in sys.modules
print(catalog.warehouse)
"""
SPARK: Final = """
import tempfile
import penstock
from penstock.spark.versions.facts import PYTHON_SOURCES
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
place = tempfile.mkdtemp()
catalog = penstock.Catalog(place)
catalog.create_database("shop")
table = catalog.create_table("shop.orders", "id BIGINT, dt STRING", partition_by="dt")
table.append(spark.range(10).selectExpr("id", "'2026-01-0' || (1 + id % 2) AS dt"))
assert table.to_spark(spark, filter="dt = '2026-01-02'").count() == 5
if PYTHON_SOURCES.is_here:
    penstock.register(spark)
    assert spark.read.format("penstock").load(table.location).count() == 10
penstock.attach(spark, place)
assert spark.sql("SELECT count(*) FROM penstock.shop.orders WHERE dt = '2026-01-01'").first()[0] == 5
copy = catalog.create_table("shop.copy", "id BIGINT, dt STRING")
query = copy.write_stream(table.read_stream(spark), checkpoint=place + "/checkpoint", trigger={"availableNow": True})
query.awaitTermination()
assert copy.to_arrow().num_rows == 10
print(spark.version)
"""
# Processor time: wall time depends more on other load of the machine.
TIMED: Final = """
import time
start = time.process_time()
import penstock
imported = time.process_time()
penstock.Catalog
print(imported - start, time.process_time() - start)
"""


class UnavailableError(Exception):
    """Something is not available on this machine."""


def main() -> None:
    """Run the matrix; print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", help="version of an interpreter (3.11 to 3.14); none for no one")
    parser.add_argument(
        "--spark",
        action="append",
        help="version of PySpark, which needs Java; none for no one, oldest for the oldest, turn for another one, "
        "which the commit chooses",
    )
    parser.add_argument("--require-all", action="store_true", help="fail where one cannot be had")
    given = parser.parse_args()
    start = time.monotonic()
    missing: list[str] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_twice(Path(folder))
        for python in _chosen(given.python, PYTHONS):
            try:
                found, times = try_bare(python, wheel, Path(folder) / python)
                print(f"Python {found}: create, append, read, command; {times}", flush=True)
            except UnavailableError as error:
                missing.append(python)
                print(f"Python {python}: cannot be had: {error}", flush=True)
        # Tests wait for JVMs most of the time.
        with ThreadPoolExecutor(AT_ONCE) as pool:
            versions = _chosen(given.spark, SPARKS)
            tried = {each: pool.submit(try_spark, each, wheel, Path(folder) / f"spark-{each}") for each in versions}
            for version, outcome in tried.items():
                try:
                    print(f"PySpark {outcome.result()}", flush=True)
                except UnavailableError as error:
                    missing.append(f"PySpark {version}")
                    print(f"PySpark {version}: cannot be had: {error}", flush=True)
                except SystemExit as error:  # of this version; the others run on
                    failed.append(f"PySpark {version}")
                    print(f"PySpark {version}: {error}", flush=True)
    print(f"{(time.monotonic() - start) / 60:.0f} minutes in all", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    if missing and given.require_all:
        sys.exit(f"not tried: {', '.join(missing)}")


def build_twice(folder: Path) -> Path:
    """Build the wheel in two folders; exit unless both are identical."""
    wheels = []
    for name in ("first", "second"):
        run([UV, "build", "--wheel", "--quiet", "--out-dir", str(folder / name), str(ROOT)], SOURCE_DATE_EPOCH=EPOCH)
        (wheel,) = (folder / name).glob("*.whl")
        wheels.append(wheel)
    if wheels[0].read_bytes() != wheels[1].read_bytes():
        sys.exit("two builds of the wheel differ: compare them with diffoscope")
    digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    print(f"{wheels[0].name}: two builds are equal, {wheels[0].stat().st_size} bytes, SHA-256 {digest}", flush=True)
    return wheels[0]


def try_bare(python: str, wheel: Path, folder: Path) -> tuple[str, str]:
    """Install only the wheel and use it. Returns the version, and the time of an import.

    Raises:
        UnavailableError: there is no such interpreter, or a dependency has no wheel for it.
    """
    interpreter = make_environment(python, [str(wheel)], folder)
    run([interpreter, "-c", SMOKE])
    run([str(folder / "bin" / "penstock"), "--version"])
    times = [run([interpreter, "-c", TIMED]).split() for _ in range(IMPORTS)]
    seconds, with_catalog = (min(map(float, column)) for column in zip(*times, strict=True))
    if seconds > IMPORT_SECONDS:
        sys.exit(f"Python {python}: import penstock takes {seconds:.2f} s, more than {IMPORT_SECONDS} s")
    (packages,) = (folder / "lib").glob("python*/site-packages")
    size = sum(path.lstat().st_size for path in packages.rglob("*") if path.suffix != ".pyc")
    if size > INSTALLED_BYTES:
        sys.exit(f"Python {python}: {size / 1e6:.0f} MB are installed, more than {INSTALLED_BYTES / 1e6:.0f} MB")
    version = run([interpreter, "-c", "import platform; print(platform.python_version())"]).strip()
    return version, (
        f"{size / 1e6:.0f} MB, import {seconds:.2f} s, with Catalog and Arrow {with_catalog:.2f} s of processor time"
    )


def try_spark(version: str, wheel: Path, folder: Path) -> str:
    """Install the wheel with a version of PySpark, use both, and run ``SAMPLE``. Raises as ``try_bare``."""
    folder.mkdir()
    interpreter = make_spark_environment(version, folder, f"{wheel}[spark]")
    environment = {"PYSPARK_PYTHON": interpreter, "SPARK_LOCAL_IP": "127.0.0.1"}
    found = run([interpreter, "-c", SPARK], None, **environment).strip()
    warnings = [part for each in _IGNORED for part in ("-W", each)]
    tests = [interpreter, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *warnings]
    start = time.monotonic()
    done = run([*tests, *SAMPLE], ROOT, **environment)
    return f"{found}: batch, SQL catalog, stream; {done.splitlines()[-1]}, {time.monotonic() - start:.0f} s in all"


def make_spark_environment(version: str, folder: Path, *project: str) -> str:
    """Create an environment with a version of PySpark, what the tests need, and the project. Returns its interpreter.

    Args:
        folder: exists; the environment is ``environment`` in it.
        project: as arguments of ``uv pip install``.

    Raises:
        UnavailableError: a package cannot be had.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    needed = folder / "tests.txt"
    # What the tests need, in the versions of the lock file. PySpark's own extras ask for other versions of numpy.
    locked = ("export", "--locked", "--quiet", "--no-hashes", "--only-group", "dev", "--no-emit-package", "pyspark")
    needed.write_text(run([UV, *locked, "--project", str(ROOT)]))
    packages = [*project, f"pyspark=={version}", "--requirement", str(needed)]
    return make_environment(python, packages, folder / "environment")


def _chosen(given: list[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    named = {"oldest": known[0]} | ({"turn": version_of_turn(known[1:], head())} if given and "turn" in given else {})
    return tuple(named.get(each, each) for each in given or known if each != "none")


def version_of_turn(known: tuple[str, ...], commit: str) -> str:
    """Return one of the versions for a commit, given by its hash: each comes up as often as the others."""
    return known[int(commit, 16) % len(known)]


def head() -> str:
    """Return the hash of the commit that is checked out."""
    return run(["git", "-C", str(ROOT), "rev-parse", "HEAD"]).strip()


def make_environment(python: str, packages: list[str], folder: Path) -> str:
    """Create an environment with only these packages. Returns its interpreter. Raises ``UnavailableError``."""
    # PySpark is published without a wheel.
    wheels = () if any("pyspark" in each for each in packages) else ("--only-binary", ":all:")
    for command in (
        [UV, "venv", "--quiet", "--python", find_python(python), str(folder)],
        [
            UV,
            "pip",
            "install",
            "--quiet",
            *wheels,
            "--python",
            str(folder / "bin" / "python"),
            *packages,
        ],
    ):
        done = subprocess.run(command, env=os.environ | of_pyenv(python), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnavailableError(" ".join(done.stderr.split())[-300:])
    return str(folder / "bin" / "python")


def find_python(python: str) -> str:
    """Return the version if uv finds it here, else the path of one from a newer Debian, else the version."""
    here = subprocess.run(
        [UV, "python", "find", python], env=os.environ | of_pyenv(python), capture_output=True, check=False
    )
    if here.returncode == 0:
        return python
    done = subprocess.run([ROOT / "scripts" / "debian_python.sh", python], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else python


def of_pyenv(python: str) -> dict[str, str]:
    """Return the setting with which pyenv, if installed, provides an interpreter of this version if it has one."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return {}
    done = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=False)
    found = [each for each in done.stdout.split() if each.startswith(f"{python}.")]
    return {"PYENV_VERSION": found[-1]} if found else {}


def run(command: list[str], place: Path | None = None, **environment: str) -> str:
    """Run a command in a folder, an empty one unless another is given; exit with its error if it fails."""
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            command, cwd=place or empty, env=clean | environment, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:2])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
