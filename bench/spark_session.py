"""Spark sessions for the benchmarks: one per process, each with the JARs of one peer, otherwise identical."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from bench.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """The job of a process with one Spark session.

    Attributes:
        kind: a key of ``spark_worker.KINDS``.
        peer: the peer whose JARs the session has; ``plain`` for none.
        folder: for everything that is written; deleted afterwards.
        arguments: depend on the kind, such as folders of source rows.
        other: as in ``PeerSet``.
    """

    kind: str
    peer: str
    jars: tuple[str, ...]
    folder: str
    settings: Settings
    arguments: dict[str, Any]
    other: tuple[str, ...] = ()


def load_job(text: str) -> SparkJob:
    """Parse a job from ``run_spark``."""
    data = json.loads(text)
    numbers = {key: tuple(value) if isinstance(value, list) else value for key, value in data["settings"].items()}
    lists = {key: tuple(data[key]) for key in ("jars", "other")}
    return SparkJob(**{**data, **lists, "settings": Settings(**numbers)})


def common_settings(job: SparkJob) -> dict[str, str]:
    """Return the settings of every session. All contenders write zstd at level 1, on the same cores."""
    return {
        "spark.master": f"local[{job.settings.cores}]",
        "spark.app.name": "bench",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": job.settings.driver_memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.streaming.numRecentProgressUpdates": str(job.settings.slope_batches + 100),
    }


def open_session(job: SparkJob) -> SparkSession:
    """Start the session of a job."""
    settings = {
        **common_settings(job),
        "spark.sql.warehouse.dir": f"{job.folder}/spark-warehouse",
        "spark.local.dir": f"{job.folder}/spark-local",
        **_PEERS.get(job.peer, {}),
        **job.arguments.get("conf", {}),
    }
    if "scheduler" in job.arguments:
        settings["spark.scheduler.mode"] = job.arguments["scheduler"]
    if job.peer == "delta" and job.kind.startswith(("stream", "sort", "dml")):
        # Its default of 50 is meant for clusters: on two cores it takes nine tenths of the time of a small micro-batch
        # or scan.
        settings["spark.databricks.delta.snapshotPartitions"] = str(job.settings.cores)
    if job.peer == "iceberg":
        settings["spark.sql.catalog.iceberg.warehouse"] = f"{job.folder}/iceberg"
    if job.jars:
        settings["spark.jars"] = ",".join(job.jars)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


_PEERS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {"spark.sql.catalog.iceberg": "IcebergTables"},
}
