"""Reads of one snapshot, and explanations of their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from penstock.api.arguments import INTEGER, NAMES, NONE, Names, Options, accepts, check_spark, limit_of, names_of
from penstock.api.exports import library
from penstock.api.handle import TableMethods
from penstock.api.lazy import lazy_dataset, lazy_spark
from penstock.api.pandas_frame import pandas_frame
from penstock.api.read_at import ReadAt, position_options
from penstock.table.inspect.explain import explain_plan, plan_values
from penstock.table.read.batches import open_batches, read_arrow

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

    from penstock.predicate.tree import Predicate


class TableReads(TableMethods):
    """Reads of one snapshot."""

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_arrow(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pa.Table:
        """Read into memory, without Spark and without a JVM.

        Args:
            columns: names in the desired order; None for all.
            filter: such as ``"dt = '2026-01-01' AND price > 10"`` or ``penstock.col("price") > 10``.
            limit: maximum number of rows; None for all.
            options: ``scan.*`` options of this read.
            **at: the snapshot: ``snapshot_id``, ``timestamp_millis``, ``tag`` or ``watermark``, see ``ReadAt``; by
                default the latest.

        Returns:
            The rows; in a queue, those of each bucket are in write order.

        Raises:
            NotFoundError: no such snapshot, tag or column.
            InvalidFilterError: the filter does not match the table.
            InvalidOptionError: a limit below zero.
        """
        query = self._table.plan(filter, options, position_options(at, "to_arrow"), with_vectors=True)
        return read_arrow(
            query.ref, self._table.store, query.plan, names_of(columns), limit_of(limit, self._table.name)
        )

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_batches(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pa.RecordBatchReader:
        """Read batch by batch: like ``to_arrow``, but files are opened while the reader is consumed."""
        query = self._table.plan(filter, options, position_options(at, "to_batches"), with_vectors=True)
        return open_batches(
            query.ref, self._table.store, query.plan, names_of(columns), limit_of(limit, self._table.name)
        )

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_pandas(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pd.DataFrame:
        """Read into a pandas DataFrame; arguments as for ``to_arrow``.

        Integer columns with NULLs have the nullable types of pandas, such as ``Int64``, so that no number changes;
        other columns are converted as pyarrow does it.
        """
        library("pandas", self._table.name)
        rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
        return pandas_frame(rows, self._table.name)

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_polars(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pl.DataFrame:
        """Read into a polars DataFrame; arguments as for ``to_arrow``."""
        rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
        frame: pl.DataFrame = library("polars", self._table.name).from_arrow(rows)
        return frame

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_duckdb(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> duckdb.DuckDBPyRelation:
        """Read into memory as a DuckDB relation; other arguments as for ``to_arrow``.

        Args:
            connection: a DuckDB connection; None for the default one.
        """
        module = library("duckdb", self._table.name)
        rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
        relation: duckdb.DuckDBPyRelation = (connection or module.default_connection()).from_arrow(rows)
        return relation

    def to_dataset(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> ds.Dataset:
        """Return the files of one snapshot as a pyarrow dataset, which DuckDB and Polars can scan lazily.

        Their filters prune partitions and row groups, and they read only the columns that they need. The rows are
        unordered. The files must exist while the dataset is scanned, so retain the snapshot by a tag if expiration may
        run.

        Args:
            filter: prunes files by the table's metadata before the dataset is created; it does not filter rows.
            **at: the snapshot, as for ``to_arrow``.

        Raises:
            UnsupportedFeatureError: such a reader would misread a file, see the message; use ``to_batches`` instead.
        """
        query = self._table.plan(filter, options, position_options(at, "to_dataset"), with_vectors=True)
        return lazy_dataset.to_dataset(query, self._table.store)

    @accepts(columns=NAMES | NONE)
    def to_spark(
        self,
        spark: SparkSession,
        *,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> DataFrame:
        """Return a DataFrame of exactly one snapshot, read by Spark's own readers.

        Args:
            filter: prunes partitions, buckets and files before Spark gets the list of files; as for ``to_arrow``.
            **at: the snapshot, as for ``to_arrow``.
        """
        check_spark(spark, self._table.name, f"spark.read.format('penstock').load('{self._table.ref.location}')")
        zone = spark.conf.get("spark.sql.session.timeZone")
        query = self._table.plan(filter, options, position_options(at, "to_spark"), zone, with_vectors=True)
        return lazy_spark.batch_frame(spark, query, self._table.store, names_of(columns))

    def explain(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> str:
        """Return text about which files a read would open, and how the others are pruned; reads metadata only."""
        return explain_plan(self._table.plan(filter, options, position_options(at, "explain")).plan)

    def explain_values(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> dict[str, Any]:
        """Return the result of ``explain`` as values, for programs."""
        return plan_values(self._table.plan(filter, options, position_options(at, "explain_values")).plan)
