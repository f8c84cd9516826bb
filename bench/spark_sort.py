"""Sorted tables: selective scans by columns in whose order the rows did not arrive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.measure import Contender, race
from bench.result import DELTA, OURS, Check, Section, faster_than, find_series
from bench.spark_tables import DeltaTarget, OurTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from bench.measure import Series
    from bench.spark_session import SparkJob

COLUMNS: Final = ("product_id", "price")
FILTERS: Final = {
    "a value of the first column": "product_id = 42424",
    "1 in 200 of the second column": "price >= 500 AND price < 505",
    "1 in 20 of both columns": "product_id >= 42000 AND product_id < 47000 AND price >= 500 AND price < 550",
}
STRATEGIES: Final = ("order", "zorder", "hilbert")
UNSORTED = f"{OURS} unsorted"
DELTA_ZORDER = f"{DELTA} ZORDER BY"
SORT = "sort by two columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The files that a scan opened.

    Attributes:
        size: of the files, in bytes.
    """

    rows: int
    files: int
    size: int


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Sort the same rows with each contender, in turns, then select some of them."""
    source = spark.read.parquet(job.arguments["path"])
    rows, file_bytes = source.count(), job.arguments["file_bytes"]
    targets = [_SortedTarget(spark, Path(job.folder), file_bytes, strategy) for strategy in (None, *STRATEGIES)]
    everybody: list[_SortedTarget | _DeltaSorted] = [*targets]
    if job.peer == "delta":
        everybody.append(_DeltaSorted(spark, Path(job.folder), file_bytes, rows // job.settings.sort_files))
    everybody[0].fill(source)
    series = race(
        SORT,
        [_sorter(target, source) for target in everybody[1:]],
        rounds=max(job.settings.rounds // 2, 1),  # they are long
        warm_ups=min(job.settings.warm_ups, 1),
        session=job.peer,
        rows=rows,
    )
    checks: list[Check] = _compare(SORT, series)
    for name, condition in FILTERS.items():
        scans = {target.name: _Scan(target, condition) for target in everybody}
        found = race(
            name,
            [Contender(name=each, run=scan.run, verify=scan.verify) for each, scan in scans.items()],
            rounds=2 * job.settings.rounds,  # they are short
            warm_ups=2 * job.settings.warm_ups,
            session=job.peer,
        )
        series += found
        checks += _compare(name, found)
        checks += _opened(name, {each: scan.last for each, scan in scans.items()}, job.peer)
    return Section(name="sort", title="Sorted tables", series=series, checks=tuple(checks))


def _compare(work: str, series: Sequence[Series]) -> list[Check]:
    """Compare each of our sort orders with the unsorted table, and with Delta's."""
    checks = []
    for peer_name in (UNSORTED, DELTA_ZORDER):
        for strategy in STRATEGIES:
            ours = find_series(series, work, f"{OURS} {strategy}", series[0].session)
            peer = find_series(series, work, peer_name, series[0].session)
            if ours and peer:
                checks.append(faster_than(ours, peer))
    return checks


def _opened(work: str, scanned: dict[str, Scanned], session: str) -> list[Check]:
    """Return the files and bytes that each scan opened, and the ratio to those of the unsorted table."""
    checks = []
    for name, each in scanned.items():
        label = f"{work}: {{}}, {name} ({session} session)"
        checks += [
            Check(name=label.format("files read"), values=(each.files,), unit="files"),
            Check(name=label.format("bytes of them"), values=(each.size / 2**20,), unit="MB"),
        ]
        if name != UNSORTED and each.size:
            ratio = scanned[UNSORTED].size / each.size
            checks.append(Check(name=label.format("unsorted next to it, in bytes"), values=(ratio,), unit="x"))
    return checks


def _sorter(target: _SortedTarget | _DeltaSorted, source: DataFrame) -> Contender:
    # The last round's tables are kept for the scans.
    return Contender(
        name=target.name,
        before=partial(target.fill, source),
        run=target.sort,
        verify=lambda: target.load().count(),
    )


class _Scan:
    """Selects rows of one table."""

    def __init__(self, target: _SortedTarget | _DeltaSorted, condition: str) -> None:
        self.last = Scanned(rows=0, files=0, size=0)
        self._target = target
        self._condition = condition

    def run(self) -> None:
        frame = self._target.find(self._condition)
        self.last = _scanned(frame, len(frame.collect()))

    def verify(self) -> int:
        return self.last.rows


def _scanned(frame: DataFrame, rows: int) -> Scanned:
    """Return the scan metrics of a DataFrame that was collected, without shuffles."""
    given: Any = frame._jdf  # noqa: SLF001 - Python has no plan
    leaves = given.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(number).metrics() for number in range(leaves.size())]
    found = [each for each in metrics if each.contains("numFiles")]
    return Scanned(
        rows=rows,
        files=sum(each.apply("numFiles").value() for each in found),
        size=sum(each.apply("filesSize").value() for each in found),
    )


class _SortedTarget(OurTarget):
    """One of our scalable tables in a sort order, or unsorted."""

    def __init__(self, spark: SparkSession, folder: Path, file_bytes: int, strategy: str | None) -> None:
        super().__init__(spark, folder)
        self.name = f"{OURS} {strategy}" if strategy else UNSORTED
        self._strategy = strategy
        self._name = f"bench.{strategy or 'unsorted'}"
        self._options = {"target-file-size": f"{file_bytes} b"}

    def fill(self, rows: DataFrame) -> None:
        """Recreate the table with many files."""
        self.drop()
        self.create(rows)
        self.append(rows)

    def sort(self) -> None:
        """Rewrite all rows in the order."""
        self.table().compact(self._spark, order_strategy=self._strategy, order_by=COLUMNS)

    def find(self, condition: str) -> DataFrame:
        """Return the matching rows."""
        return self.table().to_spark(self._spark, filter=condition)


class _DeltaSorted(DeltaTarget):
    """A Delta table, sorted along a space-filling curve."""

    def __init__(self, spark: SparkSession, folder: Path, file_bytes: int, file_rows: int) -> None:
        super().__init__(spark, folder)
        self.name = DELTA_ZORDER
        self._file_rows = max(file_rows, 1)
        # Delta has no such table option; by default its files are up to 1 GB.
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(file_bytes))

    def fill(self, rows: DataFrame) -> None:
        """Recreate the table with many files."""
        self.drop()
        self.create(rows)
        writer = rows.write.format("delta").mode("append").option("maxRecordsPerFile", self._file_rows)
        writer.save(str(self._path))

    def sort(self) -> None:
        """Rewrite all rows in the order."""
        self._spark.sql(f"OPTIMIZE delta.`{self._path}` ZORDER BY ({', '.join(COLUMNS)})").collect()

    def find(self, condition: str) -> DataFrame:
        """Return the matching rows."""
        return self.load().where(condition)
