"""Count the modules of the library that operations on a table enter, and the calls from one module to another.

A module is entered if one of its functions runs. What is counted is the second run of an operation in a process, so
that imports and first loads do not count: on a partitioned table in a local directory, in all threads, those in which
Spark calls Python included. ``tests/themes/test_modules_entered.py`` keeps the numbers from growing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from pyspark.sql import SparkSession

_PACKAGE: Final = f"{Path(penstock.__file__).parent}{os.sep}"
_COLUMNS: Final = "id BIGINT, name STRING, dt STRING"


@dataclass
class Entered:
    """What ran of the library during one operation.

    Attributes:
        modules: calls of the functions of each module, by the path of its file in the package.
        functions: the functions that ran, as path and first line.
        crossings: calls whose nearest caller in the library is in another module.
    """

    modules: Counter[str] = field(default_factory=Counter)
    functions: set[tuple[str, int]] = field(default_factory=set)
    crossings: int = 0


class _Profiler:
    """The profile function of all threads; it records during second runs only."""

    def __init__(self) -> None:
        self._entered: Entered | None = None

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        del argument
        entered, code = self._entered, frame.f_code
        if entered is None or event != "call" or code.co_name == "<module>":
            return
        if not code.co_filename.startswith(_PACKAGE):
            return
        entered.modules[code.co_filename.removeprefix(_PACKAGE)] += 1
        entered.functions.add((code.co_filename, code.co_firstlineno))
        caller = _caller(frame)
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            entered.crossings += 1

    def second_run(self, operation: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> Entered:
        """Run an operation twice and return what the second run enters; nothing of what prepares a run counts."""
        prepare()
        operation()
        prepare()
        self._entered = entered = Entered()
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            operation()
        finally:
            sys.setprofile(before)
            self._entered = None
        return entered


def _caller(frame: FrameType) -> FrameType | None:
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(_PACKAGE):
        caller = caller.f_back
    return caller


@contextmanager
def _profiled_threads() -> Iterator[_Profiler]:
    """Give a profiler to all threads that start in this block."""
    before, profiler = threading.getprofile(), _Profiler()
    threading.setprofile(profiler)
    try:
        yield profiler
    finally:
        threading.setprofile(before)  # type: ignore[arg-type] - None, as it is at first


def count_in_python(directory: Path) -> dict[str, Entered]:
    """Count what the operations without Spark enter, on new tables in a directory."""
    catalog = penstock.Catalog(directory)
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", _COLUMNS, partition_by=["dt"])
    queue = catalog.create_table("shop.q", _COLUMNS, partition_by=["dt"], options={"bucket": "2", "bucket-key": "id"})
    ids = iter(range(10))

    def append_two() -> None:
        for _ in range(2):
            table.append(_rows())

    with _profiled_threads() as profiler:
        return {
            "append": profiler.second_run(lambda: table.append(_rows())),
            "append to a queue": profiler.second_run(lambda: queue.append(_rows())),
            "filtered to_arrow": profiler.second_run(
                lambda: table.to_arrow(filter="id >= 3 AND dt = '2026-01-02'", columns=["id", "name"])
            ),
            "delete": profiler.second_run(lambda: table.delete(f"id = {next(ids)}")),
            "load_table": profiler.second_run(lambda: catalog.load_table("shop.t")),
            "compact": profiler.second_run(table.compact, prepare=append_two),
        }


def count_in_spark(spark: Callable[[], SparkSession], directory: Path) -> dict[str, Entered]:
    """Count what statements and a stream enter in the driver, on new tables in a directory.

    Args:
        spark: starts the session; called once the threads that it starts are counted.
    """
    catalog = penstock.Catalog(directory / "warehouse")
    catalog.create_database("shop")
    table = catalog.create_table("shop.s", _COLUMNS, partition_by=["dt"])
    copies = [catalog.create_table(f"shop.copy_{n}", _COLUMNS, partition_by=["dt"]) for n in range(2)]
    for _ in range(4):
        table.append(_rows())
    ids, unused = iter(range(10)), iter(enumerate(copies))

    with _profiled_threads() as profiler:
        session = spark()
        penstock.attach(session, catalog)

        def run(statement: str) -> Callable[[], object]:
            return lambda: session.sql(statement.format(id=next(ids))).collect()

        def copy() -> None:
            number, target = next(unused)
            query = target.write_stream(
                table.read_stream(session),
                checkpoint=str(directory / f"checkpoint_{number}"),
                trigger={"availableNow": True},
            )
            query.awaitTermination()

        return {
            "INSERT": profiler.second_run(
                run("INSERT INTO penstock.shop.s SELECT id, 'new', '2026-01-02' FROM range({id}, 100)")
            ),
            "SELECT": profiler.second_run(run("SELECT count(*), max(name) FROM penstock.shop.s WHERE id > {id}")),
            "DELETE": profiler.second_run(run("DELETE FROM penstock.shop.s WHERE id = {id}")),
            "streaming copy": profiler.second_run(copy),
        }


def _rows() -> pa.Table:
    return pa.table(
        {
            "id": range(10),
            "name": [f"name {number}" for number in range(10)],
            "dt": [f"2026-01-0{1 + number % 2}" for number in range(10)],
        }
    )


def _new_session() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - not for the operations without Spark

    return (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )


def main() -> None:
    """Print a table of the counts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--spark", action="store_true", help="with statements of Spark SQL and a stream")
    parser.add_argument("--modules", action="store_true", help="list the modules and the calls of each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        counts = count_in_python(directory / "python")
        if arguments.spark:
            counts |= count_in_spark(_new_session, directory / "spark")
    print(f"{'operation':20}{'modules':>9}{'functions':>11}{'calls':>9}{'across modules':>16}")
    for operation, entered in counts.items():
        calls = entered.modules.total()
        print(f"{operation:20}{len(entered.modules):9}{len(entered.functions):11}{calls:9,}{entered.crossings:16,}")
        if arguments.modules:
            print("".join(f"    {module} {count}\n" for module, count in sorted(entered.modules.items())), end="")


if __name__ == "__main__":
    main()
