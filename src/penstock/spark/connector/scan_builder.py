"""Push-down of filters, columns, aggregates and limits into a scan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.types import StructType

from penstock.datafile.types import is_variant
from penstock.spark.connector.aggregates import Answers, answer, take_aggregates
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.jvm.driver import places_text
from penstock.spark.connector.local_rows import LocalRows
from penstock.spark.connector.metadata_column import in_order
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import Pushed, conjunction_of, take_filters, take_top
from penstock.spark.connector.scan import ScanRequest, TableScan
from penstock.spark.versions.facts import VARIANT_FIELDS
from penstock.table.assumptions import check_same_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.scan import TableRead
    from penstock.table.read.top import Top

_READ: Final = "org.apache.spark.sql.connector.read."


def read_variant_fields(bridge: Bridge, session: Callable[[], JavaObject], fields: Iterable[DataField]) -> None:
    """Have the optimizer of a session tell scans which fields of a table's VARIANTs a query takes."""
    if VARIANT_FIELDS.is_here and any(is_variant(field.type) for field in fields):
        bridge.driver.addRule(session(), bridge.variant_fields)


class TableScanBuilder(Proxy):
    """Collects the push-downs of one scan; each scan has its own builder.

    Args:
        schema: all columns of the table, in Spark's types.
    """

    interfaces: ClassVar = (
        f"{_READ}SupportsPushDownV2Filters",
        f"{_READ}SupportsPushDownRequiredColumns",
        f"{_READ}SupportsPushDownAggregates",
        f"{_READ}SupportsPushDownLimit",
        f"{_READ}SupportsPushDownTopN",
    )

    cached_methods: ClassVar = frozenset({"pushedPredicates"})

    def __init__(self, bridge: Bridge, spark: SparkSession, read: TableRead, schema: StructType) -> None:
        super().__init__(bridge, f"{id(self)}")
        self._spark = spark
        self._read = read
        self._schema = schema
        self._pushed: tuple[Pushed, ...] = ()
        self._answers: Answers | None = None
        self._limit: int | None = None
        self._top: Top | None = None
        self._metadata = StructType([])
        self._filters: JavaObject = bridge.no_items("expressions.filter.Predicate")
        self._filter_count = 0
        self._pads = False

    @from_spark
    def pushPredicates(self, predicates: JavaObject) -> JavaObject:
        """Take the filters of the query that can prune; return those that Spark must still apply to each row."""
        taken = take_filters(self._bridge, self._read.pinned.ref, predicates, pads=self._pads)
        self._pushed = tuple(each for each in taken if each is not None)
        self._filters = predicates
        self._filter_count = len(taken)
        left = [place for place, found in enumerate(taken) if found is None or not found.is_exact]
        return self._chosen(left)

    def pushedPredicates(self) -> JavaObject:
        """Return the filters that were taken."""
        return self._chosen([each.place for each in self._pushed])

    @from_spark
    def pruneColumns(self, schema: JavaObject) -> None:
        """Take the columns that the query needs; nested fields are not pruned."""
        known = {field.name: field for field in self._schema.fields}
        needed = schema_of(schema).fields
        self._schema = StructType([known[field.name] for field in needed if field.name in known])
        self._metadata = in_order(field for field in needed if field.name not in known)

    @from_spark
    def supportCompletePushDown(self, aggregation: JavaObject) -> bool:
        """Whether all aggregates of a query can be computed from metadata."""
        self._answers = None
        if self._read.pinned.point is None or not all(each.is_exact for each in self._pushed):
            return False
        aggregates = take_aggregates(self._bridge, aggregation)
        if aggregates is not None:
            plan = self._read.plan(conjunction_of(self._pushed))
            self._answers = answer(self._read.pinned, self._read.store, plan, aggregates)
        return self._answers is not None

    def pushAggregation(self, aggregation: JavaObject) -> bool:
        """Take the aggregates of a query, all or none."""
        return self.supportCompletePushDown(aggregation)

    def pushLimit(self, limit: int) -> bool:
        """Take the limit of rows."""
        self._limit = limit
        return True

    @from_spark
    def pushTopN(self, orders: JavaObject, limit: int) -> bool:
        """Take the order of which a query needs the first rows, to skip files; Spark still sorts what is left."""
        self._top = take_top(self._bridge, self._read.pinned.ref, orders, limit)
        return self._top is not None

    @from_spark
    def build(self) -> JavaObject:
        """Plan the scan."""
        check_same_table(self._read.ref)
        if self._answers is not None:
            text = f"{self._read.identity} from metadata: {self._answers.text}"
            return LocalRows(self._bridge, text, self._answers.schema, partial(self._answers.to_rows, self._bridge))
        return self._scan()

    def _scan(self) -> TableScan:
        return TableScan(self._bridge, self._request())

    def _request(self) -> ScanRequest:
        return ScanRequest(
            spark=self._spark,
            read=self._read,
            schema=self._schema,
            filters=self._filters,
            pushed=self._pushed,
            limit=self._limit,
            top=self._top,
            metadata=self._metadata,
            pads=self._pads,
        )

    def _chosen(self, places: list[int]) -> JavaObject:
        """Return some of Spark's filters."""
        if not places:
            return self._bridge.no_items("expressions.filter.Predicate")
        if len(places) == self._filter_count:
            return self._filters
        return self._bridge.driver.chosen(self._filters, places_text(places))
