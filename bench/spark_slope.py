"""Slope: many small micro-batches into one table; do later ones take longer than earlier ones?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from bench.counted_storage import CountedFileIO
from bench.measure import Series
from bench.micro_batches import finish, growth, windows
from bench.result import OURS, Check, Section
from penstock.catalog.place import load_location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from bench.counted_storage import CommitReads
    from bench.micro_batches import Finished
    from bench.spark_session import SparkJob

MAX_GROWTH = 1.1
MAX_MORE_MANIFESTS = 0.5
"""Files a micro-batch, on average: merges of manifests fall into one window or the other."""
KINDS = {"scalable": {}, "queue of 8 buckets": {"bucket": "8", "bucket-key": "product_id"}}


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Stream the same files, one per micro-batch, into a table of each kind."""
    source = job.arguments["path"]
    schema = spark.read.parquet(source).schema
    catalog = penstock.Catalog(f"{job.folder}/penstock")
    catalog.create_database("bench")
    series: list[Series] = []
    checks: list[Check] = []
    for number, (kind, options) in enumerate(KINDS.items()):
        made = catalog.create_table(f"bench.t{number}", schema, options=options)
        ref = load_location(made.location)
        counted = CountedFileIO(ref.file_io)
        table = penstock.Table(replace(ref, file_io=counted))
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)
        checkpoint = str(Path(job.folder) / f"checkpoint{number}")
        ended = finish(
            lambda table=table, rows=rows, checkpoint=checkpoint: table.write_stream(
                rows, checkpoint=checkpoint, trigger={"availableNow": True}
            )
        )
        series += _series(kind, ended)
        checks += _checks(kind, ended, counted.commits)
    return Section(name="slope", title="Slope", series=tuple(series), checks=tuple(checks))


def _series(kind: str, ended: Finished) -> list[Series]:
    count = len(ended.batches)
    early, late = windows([batch.seconds for batch in ended.batches])
    names = {f"the second tenth of {count:,} micro-batches": early, f"the last tenth of {count:,}": late}
    return [
        Series(work=f"{kind}, {name}", contender=OURS, session="", seconds=seconds) for name, seconds in names.items()
    ]


def _checks(kind: str, ended: Finished, commits: Sequence[CommitReads]) -> list[Check]:
    times = {
        "time of a micro-batch": [batch.seconds for batch in ended.batches],
        "time in the sink": [batch.sink_seconds for batch in ended.batches],
    }
    checks = [
        Check(name=f"{kind}: {name}, late next to early", values=(growth(values),), unit="x", at_most=MAX_GROWTH)
        for name, values in times.items()
    ]
    early, late = windows([each.manifests for each in commits])
    more = sum(late) / len(late) - sum(early) / len(early)
    return [
        *checks,
        Check(name=f"{kind}: manifests read a micro-batch, early", values=early, unit="files"),
        Check(name=f"{kind}: manifests read a micro-batch, late", values=late, unit="files"),
        Check(
            name=f"{kind}: manifests read a micro-batch, late less early on average",
            values=(more,),
            unit="files",
            at_most=MAX_MORE_MANIFESTS,
        ),
        *(
            Check(name=f"{kind}: calls to storage of a micro-batch, {when}", values=values, unit="calls")
            for when, values in zip(("early", "late"), windows([each.calls for each in commits]), strict=True)
        ),
    ]
