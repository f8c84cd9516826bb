"""Reads of one snapshot, and explanations of their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

import pyarrow as pa

from penstock.api.arguments import (
    DTYPE_BACKEND,
    INTEGER,
    NAMES,
    NONE,
    Filter,
    Names,
    Options,
    accepts,
    check_limit,
    check_spark,
    to_names,
    to_predicate,
)
from penstock.api.handle import TableMethods
from penstock.api.lazy import import_library, is_connect_object, lazy_dataset, lazy_spark
from penstock.api.notebook import PlanText
from penstock.datafile.conform import leaf_arrays
from penstock.table.inspect.explain import explain_plan, plan_values
from penstock.table.read.batches import open_batches, read_arrow

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

    from penstock.datafile.types import ArrowAny


class ReadAt(TypedDict, total=False):
    """Keyword arguments that select the snapshot of a read; at most one, and by default the latest.

    Attributes:
        snapshot_id: the snapshot with this id.
        timestamp_millis: the newest snapshot committed at or before it, ms since 1970-01-01 UTC.
        tag: the snapshot with this tag.
        watermark: the first snapshot whose watermark (ms of event time) has reached it.
    """

    snapshot_id: int | None
    timestamp_millis: int | None
    tag: str | None
    watermark: int | None


_OPTIONS: Final = {
    "snapshot_id": "scan.snapshot-id",
    "timestamp_millis": "scan.timestamp-millis",
    "tag": "scan.tag-name",
    "watermark": "scan.watermark",
}


def position_options(at: ReadAt, method: str) -> dict[str, str]:
    """Return the keyword arguments as options of a read.

    Raises:
        TypeError: a keyword that ``method`` does not accept.
    """
    for keyword in at:
        if keyword not in _OPTIONS:
            raise TypeError(f"{method}() got an unexpected keyword argument {keyword!r}")
    return {_OPTIONS[keyword]: str(value) for keyword, value in at.items() if value is not None}


class TableReads(TableMethods):
    """Reads of one snapshot."""

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_arrow(
        self,
        columns: Names | None = None,
        filter: Filter | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pa.Table:
        """Read into memory, without Spark and without a JVM.

        Args:
            columns: names in the desired order; None for all.
            filter: such as ``"dt = '2026-01-01' AND price > 10"``, ``penstock.col("price") > 10``, or an expression of
                ``pyarrow.compute``: ``pc.field("price") > 10``.
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
        query = self._handle.plan(filter, options, position_options(at, "to_arrow"), with_vectors=True)
        most = check_limit(limit, self._handle.name)
        with self._handle.progress("reading", "read") as bar:
            if bar.is_shown and most is None:
                bar.total = sum(each.row_count for each in query.plan.partitions)
            return read_arrow(query.ref, self._handle.store, query.plan, to_names(columns), most)

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_batches(
        self,
        columns: Names | None = None,
        filter: Filter | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pa.RecordBatchReader:
        """Read batch by batch: like ``to_arrow``, but files are opened while the reader is consumed."""
        query = self._handle.plan(filter, options, position_options(at, "to_batches"), with_vectors=True)
        return open_batches(
            query.ref, self._handle.store, query.plan, to_names(columns), check_limit(limit, self._handle.name)
        )

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE, dtype_backend=DTYPE_BACKEND | NONE)
    def to_pandas(
        self,
        columns: Names | None = None,
        filter: Filter | None = None,
        *,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pd.DataFrame:
        """Read into a pandas DataFrame; other arguments as for ``to_arrow``.

        Args:
            dtype_backend: as for ``pandas.read_parquet``: the nullable types of pandas for all columns that have one,
                or Arrow's types. By default, integer columns with NULLs have the nullable types, such as ``Int64``, so
                that no number changes, and other columns are converted as pyarrow does it.
        """
        import_library("pandas", self._handle.name)
        position_options(at, "to_pandas")
        with self._handle.progress("reading", "read") as bar:
            rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
            if rows.num_rows >= _SLOW_ROWS:
                bar.draw()
            return pandas_frame(rows, self._handle.name, dtype_backend)

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_polars(
        self,
        columns: Names | None = None,
        filter: Filter | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pl.DataFrame:
        """Read into a polars DataFrame; arguments as for ``to_arrow``."""
        position_options(at, "to_polars")
        with self._handle.progress("reading", "read"):
            rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
            frame: pl.DataFrame = import_library("polars", self._handle.name).from_arrow(rows)
            return frame

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE)
    def to_duckdb(
        self,
        columns: Names | None = None,
        filter: Filter | None = None,
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
        module = import_library("duckdb", self._handle.name)
        position_options(at, "to_duckdb")
        rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
        relation: duckdb.DuckDBPyRelation = (connection or module.default_connection()).from_arrow(rows)
        return relation

    def to_dataset(
        self,
        filter: Filter | None = None,
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
        query = self._handle.plan(filter, options, position_options(at, "to_dataset"), with_vectors=True)
        return lazy_dataset.to_dataset(query, self._handle.store)

    @accepts(columns=NAMES | NONE)
    def to_spark(
        self,
        spark: SparkSession,
        *,
        columns: Names | None = None,
        filter: Filter | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> DataFrame:
        """Return a DataFrame of exactly one snapshot, read by Spark's own readers.

        With a session of Spark Connect, the tasks of ``format("penstock")`` read that snapshot.

        Args:
            filter: prunes partitions, buckets and files before Spark gets the list of files; as for ``to_arrow``.
            **at: the snapshot, as for ``to_arrow``.
        """
        handle, position = self._handle, position_options(at, "to_spark")
        check_spark(spark, handle.name)
        zone = spark.conf.get("spark.sql.session.timeZone")
        names = to_names(columns)
        if is_connect_object(spark):
            ref = handle.read_ref(options, position, zone)
            return lazy_spark.read_pinned(spark, ref, handle.store, names, to_predicate(filter, handle.name))
        query = handle.plan(filter, options, position, zone, with_vectors=True)
        return lazy_spark.batch_frame(spark, query, handle.store, names)

    def explain(
        self,
        filter: Filter | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> str:
        """Return text about which files a read would open, and how the others are pruned; reads metadata only."""
        position = position_options(at, "explain")
        return PlanText(explain_plan(self._handle.plan(filter, options, position, with_vectors=True).plan))

    def explain_values(
        self,
        filter: Filter | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> dict[str, Any]:
        """Return the result of ``explain`` as values, for programs."""
        position = position_options(at, "explain_values")
        return plan_values(self._handle.plan(filter, options, position, with_vectors=True).plan)


# So many rows may take pyarrow more than two seconds, in which it lets no other thread run.
_SLOW_ROWS: Final = 1_000_000
_NULLABLE: Final = ("Int8", "Int16", "Int32", "Int64", "Float32", "Float64")


def pandas_frame(
    rows: pa.Table, table: str, dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None
) -> pd.DataFrame:
    """Return rows as a DataFrame; columns are converted as pyarrow does it, except where that would change values.

    Integers with NULLs get the nullable types of pandas, such as ``Int64``: pyarrow makes them floating-point numbers.
    Nested values with NULLs become lists and dicts instead of arrays of numpy.

    Args:
        table: name for messages.
        dtype_backend: as for ``to_pandas``.
    """
    module: Any = import_library("pandas", table)
    match dtype_backend:
        case "pyarrow":
            typed: pd.DataFrame = rows.to_pandas(types_mapper=module.ArrowDtype)
            return typed
        case "numpy_nullable":
            nullable_types = {
                **{getattr(pa, name.lower())(): getattr(module, f"{name}Dtype")() for name in _NULLABLE},
                pa.bool_(): module.BooleanDtype(),
                pa.string(): module.StringDtype(),
            }
            frame: pd.DataFrame = rows.to_pandas(types_mapper=nullable_types.get)
        case None:
            frame = rows.to_pandas()
    for place, column in enumerate(rows.columns):
        if pa.types.is_integer(column.type) and column.null_count and dtype_backend is None:
            nullable = getattr(module, f"Int{column.type.bit_width}Dtype")()
            frame.isetitem(place, nullable.__from_arrow__(column))
        elif pa.types.is_nested(column.type) and not all(map(_is_exact_in_numpy, leaf_arrays(column.chunks))):
            values = module.Series(column.to_pylist(), index=frame.index, dtype=object)
            frame.isetitem(place, values)
    return frame


def _is_exact_in_numpy(chunks: list[ArrowAny]) -> bool:
    """Whether arrays of numpy hold the values: they have no NULL among numbers, and no time zones."""
    kind = chunks[0].type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return False
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return not is_number or not any(chunk.null_count for chunk in chunks)
