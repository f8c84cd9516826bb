"""DataFrames of planned reads, for ``Table.to_spark``: the same scan as a catalog's, for a table without a catalog."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.datafile.types import has_leaf
from penstock.format.text.names import quoted
from penstock.predicate.tree import TRUE
from penstock.spark.connector.executor_classes import executors_have_classes
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.connector.partition_keys import partition_keys_of
from penstock.spark.connector.proxy import PlainTable, from_spark
from penstock.spark.connector.scan import TableRead
from penstock.spark.connector.scan_builder import TableScanBuilder, read_variant_fields
from penstock.spark.read.filters import to_column
from penstock.spark.read.frame import to_frame
from penstock.spark.read.native_reading import plan_reading
from penstock.spark.types import has_nanoseconds, nullable, to_spark_schema
from penstock.table.assumptions import load_identity
from penstock.table.read.batches import select_fields
from penstock.table.read.split import iter_bucket_splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.query import Query
    from penstock.table.store import MetadataStore

_CATALOG: Final = "org.apache.spark.sql.connector.catalog."


def batch_frame(
    spark: SparkSession, query: Query, store: MetadataStore, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return the rows of a planned read that match its filter; their order is not kept.

    If Spark's reader can read all files with one schema, the result is a scan that later filters and joins prune.
    Otherwise it is a union of scans by ``to_frame``, in which Python workers read only some of the files.

    Args:
        columns: column names, in the order of the result; None for all.
    """
    if query.pinned.point is None:
        return to_frame(spark, query.ref, store, query.plan, columns)
    bridge = open_bridge(spark)
    fields = select_fields(query.ref, columns)
    needed = (*fields, *(field for field in query.plan.predicate.fields if field not in fields))
    splits = tuple(iter_bucket_splits(query.ref, query.plan))
    reading = plan_reading(query.ref, store, splits, needed, has_class=partial(executors_have_classes, bridge))
    # The filter is applied to all rows, while those of Python workers come without nanoseconds.
    is_exact = not any(has_leaf(field.type, has_nanoseconds) for field in query.plan.predicate.fields)
    if isinstance(reading, str) or (reading.left and not is_exact):
        return to_frame(spark, query.ref, store, query.plan, columns)
    table = PlannedTable(bridge, spark, query)
    frame = bridge.batch_frame(spark, table.exposed())
    if query.plan.predicate.root != TRUE:
        frame = frame.where(to_column(query.plan.predicate))
    return frame if columns is None else frame.select(*[F.col(quoted(name)) for name in columns])


class PlannedTable(PlainTable):
    """A read with a fixed state and a filter, as the table of one DataFrame."""

    interfaces: ClassVar = (f"{_CATALOG}SupportsRead",)
    capability: ClassVar = "BATCH_READ"
    cached_methods: ClassVar = frozenset({"capabilities", "columns", "name", "schema"})

    def __init__(self, bridge: Bridge, spark: SparkSession, query: Query) -> None:
        ref = query.ref
        self._identity = load_identity(ref)
        schema = nullable(to_spark_schema(ref.schema.fields))
        # Two DataFrames are never the same relation to Spark, but their equal scans are.
        super().__init__(bridge, f"{ref.name} {self._identity} {id(self)}", ref.name, schema)
        read_variant_fields(bridge, lambda: spark._jsparkSession, ref.schema.fields)
        self._spark = spark
        self._query = query

    @from_spark
    def newScanBuilder(self, options: JavaObject) -> JavaObject:
        """Return the scan builder; ``to_spark`` has taken the options of the read."""
        query = self._query
        # A bucket is a function of a catalog to Spark, and this table has none.
        keys = partition_keys_of(query.ref, has_functions=False)
        read = TableRead(query.ref, self._identity, lambda: query.pinned, keys)
        read.start_from(query.plan)
        return TableScanBuilder(self._bridge, self._spark, read, self._schema)
