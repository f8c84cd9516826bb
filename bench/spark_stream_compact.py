"""Compaction next to a stream: how merges on the session's own cores slow down its micro-batches."""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from bench.measure import Contender, Series, take_turns
from bench.micro_batches import batches_of, percentile
from bench.result import OURS, Check, Section, time_next_to
from bench.spark_stream_write import P50, P95, SKIPPED
from bench.spark_tables import OurTarget
from penstock.spark.stream.progress import last_write
from penstock.table.compact.task import CompactionState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from bench.measure import Turn
    from bench.micro_batches import MicroBatch
    from bench.spark_session import SparkJob

SCHEDULERS: Final = ("FIFO", "FAIR")
FREE, TAKEN = "a core free", "no core free"
COMPACTS, WRITES_ONLY = f"{OURS} compacting", f"{OURS} write-only"
LONGEST = "longest micro-batch"
MAX_RATIO = 1.1
MAX_DELAY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A query that has ended, and the concurrent merges.

    Attributes:
        merges: number committed while micro-batches ran.
        merged_files: number of their input files.
        merged_bytes: number of bytes they read.
    """

    batches: tuple[MicroBatch, ...]
    merges: int
    merged_files: int
    merged_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Micro-batches that leave a core for merges, or none.

    Attributes:
        name: ``FREE`` or ``TAKEN``.
        files: number per micro-batch, each a task.
        path: of the files.
        sizes: rows of each micro-batch: large ones first, so that all later merges have rows to rewrite.
    """

    name: str
    files: int
    path: str
    sizes: tuple[int, ...]


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Stream the same files with and without compaction, in turns, with this session's scheduler."""
    scheduler = job.arguments["scheduler"]
    series: list[Series] = []
    checks: list[Check] = []
    for given in job.arguments["cases"]:
        case = Case(**{**given, "sizes": tuple(given["sizes"])})
        _check_tasks(spark, case)
        turns = take_turns(
            case.name,
            [_contender(spark, job, case, compacts=compacts) for compacts in (False, True)],
            rounds=max(job.settings.rounds // 2, 1),  # they are long
            warm_ups=min(job.settings.warm_ups, 1),
        )
        found = _series(turns, case, scheduler)
        series += found
        checks += compare(found, case.name, scheduler)
        checks += _merges(turns, case, scheduler)
    return Section(
        name="stream-compact", title="Compaction beside a stream", series=tuple(series), checks=tuple(checks)
    )


def work_name(case: str, rows: int, figure: str) -> str:
    """Return the name of a figure of the micro-batches of one size."""
    return f"{case}, micro-batches of {rows:,} rows, {figure}"


def compare(series: Sequence[Series], case: str, scheduler: str) -> list[Check]:
    """Compare times with compaction to those without: a ratio if a core is free, else a difference."""
    checks = []
    for work in dict.fromkeys(each.work for each in series):
        off, on = (
            next(each for each in series if (each.work, each.contender) == (work, name))
            for name in (WRITES_ONLY, COMPACTS)
        )
        has_target = work.endswith(P95)
        if case == FREE:
            checks.append(time_next_to(on, off, at_most=MAX_RATIO if has_target else None))
            continue
        checks.append(
            Check(
                name=f"{work}: time that compaction adds ({scheduler} session)",
                values=tuple(mine - theirs for mine, theirs in zip(on.seconds, off.seconds, strict=True)),
                unit="s",
                at_most=MAX_DELAY_SECONDS if has_target else None,
            )
        )
    return checks


def figures_of(batches: Sequence[MicroBatch], sizes: Sequence[int]) -> dict[tuple[int, str], float]:
    """Return the times of the counted micro-batches in seconds, by their rows and the figure.

    Raises:
        AssertionError: they differ from ``sizes`` or its order.
    """
    # Spark counts rows that are read again twice, so its count may be higher.
    fits = len(batches) == len(sizes) and all(batch.rows >= rows for batch, rows in zip(batches, sizes, strict=True))
    if not fits:
        message = f"micro-batches of {[batch.rows for batch in batches]} rows instead of {list(sizes)}"
        raise AssertionError(message)
    counted = list(zip(batches, sizes, strict=True))[SKIPPED:]
    figures: dict[tuple[int, str], float] = {}
    for rows in dict.fromkeys(sizes):
        seconds = [batch.seconds for batch, size in counted if size == rows]
        figures |= {
            (rows, P50): percentile(seconds, 0.5),
            (rows, P95): percentile(seconds, 0.95),
            (rows, LONGEST): max(seconds),
        }
    return figures


def _series(turns: Mapping[str, tuple[Turn, ...]], case: Case, scheduler: str) -> list[Series]:
    series = []
    for name, taken in turns.items():
        rounds = [figures_of(cast("Streamed", turn.answer).batches, case.sizes) for turn in taken]
        series += [
            Series(
                work=work_name(case.name, rows, figure),
                contender=name,
                session=scheduler,
                seconds=tuple(each[rows, figure] for each in rounds),
            )
            for rows, figure in rounds[0]
        ]
    return sorted(series, key=lambda each: each.work)


def _merges(turns: Mapping[str, tuple[Turn, ...]], case: Case, scheduler: str) -> list[Check]:
    done = [cast("Streamed", turn.answer) for turn in turns[COMPACTS]]
    name = f"{case.name}, {{}} ({scheduler} session)"
    return [
        Check(
            name=name.format("merges that landed between micro-batches"),
            values=tuple(each.merges for each in done),
            unit="merges",
            at_least=1,
        ),
        Check(name=name.format("files they took in"), values=tuple(each.merged_files for each in done), unit="files"),
        Check(name=name.format("bytes they read"), values=tuple(each.merged_bytes / 2**20 for each in done), unit="MB"),
    ]


def _contender(spark: SparkSession, job: SparkJob, case: Case, *, compacts: bool) -> Contender:
    target = _BesideTarget(spark, Path(job.folder), compacts=compacts)
    checkpoint = Path(job.folder) / "checkpoint"
    schema = spark.read.parquet(case.path).schema

    def before() -> None:
        shutil.rmtree(checkpoint, ignore_errors=True)
        target.create(spark.createDataFrame([], schema))
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def run() -> Streamed:
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", case.files).parquet(case.path)
        return _stream(target, rows, str(checkpoint))

    return Contender(name=target.name, before=before, run=run, verify=lambda: target.load().count(), after=target.drop)


def _stream(target: _BesideTarget, rows: DataFrame, checkpoint: str) -> Streamed:
    query = target.start_stream(rows, checkpoint)
    query.awaitTermination()
    write = last_write(query.id)
    meanwhile = (None if write is None else write.compaction) or CompactionState()
    # Pending merges run after the last micro-batch, and must not count for the next query.
    for thread in threading.enumerate():
        if thread.name == f"end of query {query.id}":
            thread.join()
    write = last_write(query.id)
    has_merged = write is not None and write.compaction is not None and write.compaction.committed_merges > 0
    if has_merged is not target.compacts:
        message = f"{target.name}: {write}"
        raise AssertionError(message)
    return Streamed(
        batches=batches_of(query.recentProgress),
        merges=meanwhile.committed_merges,
        merged_files=meanwhile.files_in,
        merged_bytes=meanwhile.bytes_in,
    )


def _check_tasks(spark: SparkSession, case: Case) -> None:
    """Check that Spark reads a large micro-batch in the expected number of tasks."""
    files = sorted(str(file) for file in Path(case.path).glob("*.parquet"))[: case.files]
    tasks = spark.read.parquet(*files).rdd.getNumPartitions()
    if tasks != case.files:
        message = f"{case.name}: a micro-batch is {tasks} tasks instead of {case.files}"
        raise AssertionError(message)


class _BesideTarget(OurTarget):
    """One of our scalable tables, whose streams compact it or not."""

    def __init__(self, spark: SparkSession, folder: Path, *, compacts: bool) -> None:
        super().__init__(spark, folder)
        self.name = COMPACTS if compacts else WRITES_ONLY
        self.compacts = compacts
        self._options = {"write-only": str(not compacts).lower()}

    def start_stream(self, rows: DataFrame, checkpoint: str) -> StreamingQuery:
        """Start our sink with the table's options; in other benchmarks it never compacts."""
        return self.table().write_stream(rows, checkpoint=checkpoint, trigger={"availableNow": True})
