"""Push-down of filters, columns, aggregates and limits into a scan."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.types import StructType

from penstock.spark.connector.aggregates import Answers, answer
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.local_rows import LocalRows
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import Pushed, conjunction_of, take_filter
from penstock.spark.connector.scan import ScanRequest, TableScan
from penstock.table.identity import check_same_table
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.query import PinnedRead
    from penstock.table.ref import TableRef

_READ: Final = "org.apache.spark.sql.connector.read."


class TableScanBuilder(Proxy):
    """Collects the push-downs of one scan; each scan has its own builder.

    Args:
        pin: loads the pinned read, if the scan is not one of a stream.
        stream: the table with the options of the read, for a stream.
        schema: all columns of the table, in Spark's types.
    """

    interfaces: ClassVar = (
        f"{_READ}SupportsPushDownV2Filters",
        f"{_READ}SupportsPushDownRequiredColumns",
        f"{_READ}SupportsPushDownAggregates",
        f"{_READ}SupportsPushDownLimit",
    )

    def __init__(
        self,
        bridge: Bridge,
        spark: SparkSession,
        pin: Callable[[], PinnedRead],
        stream: TableRef,
        identity: str,
        schema: StructType,
    ) -> None:
        super().__init__(bridge, f"{id(self)}")
        self._spark = spark
        self._pin = pin
        self._stream = stream
        # A separate store: threads may plan scans of one DataFrame at the same time.
        self._store = MetadataStore(stream)
        self._identity = identity
        self._schema = schema
        self._pushed: tuple[Pushed, ...] = ()
        self._answers: Answers | None = None
        self._limit: int | None = None

    @cached_property
    def _read(self) -> PinnedRead:
        return self._pin()

    @from_spark
    def pushPredicates(self, predicates: JavaObject) -> JavaObject:
        """Take the filters of the query that can prune; return those that Spark must still apply to each row."""
        given = list(predicates)
        taken = [take_filter(self._read.ref, each) for each in given]
        self._pushed = tuple(each for each in taken if each is not None)
        left = [each for each, found in zip(given, taken, strict=True) if found is None or not found.is_exact]
        return self._predicates(left)

    def pushedPredicates(self) -> JavaObject:
        """Return the filters that were taken."""
        return self._predicates([each.given for each in self._pushed])

    def supportsIterativePushdown(self) -> bool:
        """Return false: Spark passes all filters in one call."""
        return False

    @from_spark
    def pruneColumns(self, schema: JavaObject) -> None:
        """Take the columns that the query needs; nested fields are not pruned."""
        known = {field.name: field for field in self._schema.fields}
        self._schema = StructType([known[name] for name in schema_of(schema).fieldNames()])

    @from_spark
    def supportCompletePushDown(self, aggregation: JavaObject) -> bool:
        """Whether all aggregates of a query can be computed from metadata."""
        if self._read.point is None or not all(each.is_exact for each in self._pushed):
            return False
        plan = self._read.plan(self._store, conjunction_of(self._pushed), with_vectors=True)
        self._answers = answer(self._read, self._store, plan, aggregation)
        return self._answers is not None

    def pushAggregation(self, aggregation: JavaObject) -> bool:
        """Take the aggregates of a query, all or none."""
        return self.supportCompletePushDown(aggregation)

    def pushLimit(self, limit: int) -> bool:
        """Take the limit of rows."""
        self._limit = limit
        return True

    def isPartiallyPushed(self) -> bool:
        """Return true: the scan may return more rows than the limit."""
        return True

    @from_spark
    def build(self) -> JavaObject:
        """Plan the scan."""
        check_same_table(self._stream)
        if self._answers is not None:
            text = f"{self._identity} from metadata: {self._answers.text}"
            return LocalRows(self._bridge, text, self._answers.schema, partial(self._answers.to_rows, self._bridge))
        return TableScan(self._bridge, self._request())

    def _request(self) -> ScanRequest:
        return ScanRequest(
            spark=self._spark,
            pin=lambda: self._read,
            stream=self._stream,
            store=self._store,
            identity=self._identity,
            schema=self._schema,
            pushed=self._pushed,
            limit=self._limit,
        )

    def _predicates(self, items: list[JavaObject]) -> JavaObject:
        return self._bridge.array(self._bridge.connector("expressions.filter.Predicate"), items)
