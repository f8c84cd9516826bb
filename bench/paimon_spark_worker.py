"""Paimon's connector and Parquet on Spark 3.5, in its own environment; see ``line_server`` for the protocol.

Tables are named after their format: ``paimon`` and ``parquet``.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from bench.line_server import serve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_NAME = "paimon.bench.t"
# The same as for all others: zstd at level 1, no merges while a table is written.
_OPTIONS = {
    "bucket": "-1",
    "file.format": "parquet",
    "file.compression": "zstd",
    "file.compression.zstd-level": "1",
    "write-only": "true",
}


class _Table(ABC):
    """One table."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    @abstractmethod
    def create(self, rows: DataFrame, partition: Sequence[str]) -> None:
        """Create it, empty, with the columns of ``rows``."""

    @abstractmethod
    def append(self, rows: DataFrame, partition: Sequence[str]) -> None:
        """Add the rows."""

    @abstractmethod
    def load(self) -> DataFrame:
        """Return its rows."""

    @abstractmethod
    def drop(self) -> None:
        """Remove it, if it exists."""


class _Paimon(_Table):
    def create(self, rows: DataFrame, partition: Sequence[str]) -> None:
        self.drop()
        self.spark.sql("CREATE DATABASE IF NOT EXISTS paimon.bench")
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema.fields)
        layout = f"PARTITIONED BY ({', '.join(partition)})" if partition else ""
        options = ", ".join(f"'{key}' = '{value}'" for key, value in _OPTIONS.items())
        self.spark.sql(f"CREATE TABLE {_NAME} ({columns}) USING paimon {layout} TBLPROPERTIES ({options})")

    def append(self, rows: DataFrame, partition: Sequence[str]) -> None:  # noqa: ARG002 - the table knows
        rows.writeTo(_NAME).append()

    def load(self) -> DataFrame:
        return self.spark.table(_NAME)

    def drop(self) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {_NAME}")


class _Parquet(_Table):
    @property
    def path(self) -> str:
        return str(self.folder / "parquet-3.5")

    def create(self, rows: DataFrame, partition: Sequence[str]) -> None:  # noqa: ARG002 - the append makes it
        self.drop()

    def append(self, rows: DataFrame, partition: Sequence[str]) -> None:
        rows.write.mode("append").partitionBy(*partition).parquet(self.path)

    def load(self) -> DataFrame:
        return self.spark.read.parquet(self.path)

    def drop(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Worker:
    """The session with its tables."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._sources: dict[str, DataFrame] = {}

    def close(self) -> None:
        """Stop the session, if there is one."""
        if session := SparkSession.getActiveSession():
            session.stop()

    def open(self, request: dict[str, Any]) -> str:
        """Start the session with the settings of the request, and return its version."""
        builder = SparkSession.builder
        for key, value in request["settings"].items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        folder = Path(request["folder"])
        self._tables = {"paimon": _Paimon(spark, folder), "parquet": _Parquet(spark, folder)}
        return str(spark.version)

    def create(self, request: dict[str, Any]) -> None:
        """Create an empty table for the rows of a source, and collect garbage, as for all others."""
        table = self._table(request)
        table.create(self._source(request), request["partition"])
        table.spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def append(self, request: dict[str, Any]) -> None:
        """Add the rows of a source."""
        self._table(request).append(self._source(request), request["partition"])

    def query(self, request: dict[str, Any]) -> list[Any]:
        """Return a row of aggregates over the rows that match a condition."""
        (row,) = self._table(request).load().where(request["condition"]).selectExpr(*request["columns"]).collect()
        return list(row)

    def drop(self, request: dict[str, Any]) -> None:
        """Remove a table."""
        self._table(request).drop()

    def _table(self, request: dict[str, Any]) -> _Table:
        return self._tables[request["table"]]

    def _source(self, request: dict[str, Any]) -> DataFrame:
        """Open a source once, when a table is created for it, so that no append is timed with that."""
        path = request["source"]
        if path not in self._sources:
            self._sources[path] = self._table(request).spark.read.parquet(path)
        return self._sources[path]


def main() -> None:
    """Serve until standard input ends."""
    worker = Worker()
    steps = (worker.open, worker.create, worker.append, worker.query, worker.drop)
    try:
        serve({step.__name__: step for step in steps})
    finally:
        worker.close()


if __name__ == "__main__":
    main()
