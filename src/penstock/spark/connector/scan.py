"""Scan of a table: the files that push-down keeps, read by Spark's own reader or by Python workers."""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.format.file_format import FileFormat
from penstock.predicate.tree import And
from penstock.printable import bytes_text
from penstock.spark.connector.native_files import common_format, list_native, why_not_native
from penstock.spark.connector.native_reader import native_scan
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import Pushed, conjunction_of, take_filter
from penstock.spark.connector.python_reader import python_factory, python_partitions
from penstock.spark.connector.statistics import ScanStatistics
from penstock.spark.types import to_spark_schema
from penstock.table.inspect.explain import format_predicate
from penstock.table.read.batches import select_fields
from penstock.table.read.split import plan_splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.store import MetadataStore

_LOG: Final = logging.getLogger(__name__)
_READ: Final = "org.apache.spark.sql.connector.read."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """Input of a scan.

    Attributes:
        schema: the columns to read, in Spark's types.
        pushed: filters that Spark pushed down.
        limit: number of matching rows that are enough; None for all.
        identity: identity of the table.
    """

    spark: SparkSession
    read: PinnedRead
    store: MetadataStore
    identity: str
    schema: StructType
    pushed: tuple[Pushed, ...]
    limit: int | None

    @property
    def key(self) -> str:
        """Key of the scan: scans with equal keys read the same rows."""
        filters = format_predicate(And(operands=tuple(each.predicate for each in self.pushed)))
        point = self.read.point
        snapshot = "changes" if point is None else point.snapshot.id if point.snapshot else "empty"
        options = sorted(self.read.ref.dynamic_options)
        return (
            f"{self.identity} schema {self.read.ref.schema.id} snapshot {snapshot} options {options} columns "
            f"{self.schema.json()} filter {filters} limit {self.limit}"
        )


class TableScan(Proxy):
    """One scan; its files are planned in the constructor."""

    interfaces: ClassVar = (f"{_READ}SupportsRuntimeV2Filtering", f"{_READ}SupportsReportStatistics")

    def __init__(self, bridge: Bridge, request: ScanRequest) -> None:
        super().__init__(bridge, request.key)
        self._request = request
        self._plan = self._planned(())
        self._splits = _enough(plan_splits(request.read.ref, self._plan), request.limit)
        ref = request.read.ref
        fields = select_fields(ref, request.schema.fieldNames()) if len(request.schema) else ()
        self._reason = why_not_native(ref, request.store, self._splits, fields)
        self._columns = request.schema
        self._format = common_format(self._splits) or FileFormat.PARQUET
        self._runtime: tuple[Pushed, ...] = ()
        if self._reason is not None:
            # Arrow batches without columns lose their rows, so read at least one column.
            self._columns = request.schema if fields else to_spark_schema(ref.schema.fields[:1])
            _LOG.warning("table %s: read by Python workers, not by Spark's own reader: %s", ref.name, self._reason)

    def _planned(self, more: Sequence[Pushed]) -> ScanPlan:
        request = self._request
        return request.read.plan(request.store, conjunction_of((*request.pushed, *more)))

    # Scan

    @from_spark
    def readSchema(self) -> JavaObject:
        """Return the columns of the rows."""
        return self._bridge.schema(self._columns)

    @from_spark
    def description(self) -> str:
        """Describe the scan, for ``explain``."""
        plan, funnel = self._plan, self._plan.funnel
        if plan.snapshot is None:
            return "nothing was committed yet"
        way = f"{self._format} reader of Spark" if self._reason is None else f"Python workers, because {self._reason}"
        pushed = format_predicate(plan.predicate.root, plan.predicate.fields)
        steps = [f"{stage.name} {stage.files}" for stage in funnel.stages[1:]]
        left = f" (left by {', '.join(steps)})" if steps else ""
        kept, live = (funnel.stages[place].bytes for place in (-1, 0))
        unread = funnel.manifests_total - funnel.manifests_read
        of_live = (
            f"{bytes_text(kept)} of {bytes_text(live)}{f' in {funnel.manifests_read} manifests' if unread else ''}"
        )
        return (
            f"snapshot {plan.snapshot.id}, {plan.file_count} of {funnel.files_total} files{left}, {of_live}, by {way}, "
            f"filter: {pushed}"
        )

    @from_spark
    def toBatch(self) -> JavaObject:
        """Return the partitions to read, pruned by runtime filters if Spark has passed some."""
        splits = self._splits
        if self._runtime:
            splits = plan_splits(self._request.read.ref, self._planned(self._runtime))
        return TableBatch(self._bridge, self, splits, self._runtime)

    def toMicroBatchStream(self, location: str) -> None:
        """Refuse: the table does not claim to be one."""
        self._refuse("a micro-batch stream")

    def toContinuousStream(self, location: str) -> None:
        """Refuse: the table does not claim to be one."""
        self._refuse("a continuous stream")

    def supportedCustomMetrics(self) -> JavaObject:
        """Return none."""
        return self._bridge.array(self._bridge.connector("metric.CustomMetric"), ())

    def reportDriverMetrics(self) -> JavaObject:
        """Return none."""
        return self._bridge.array(self._bridge.connector("metric.CustomTaskMetric"), ())

    def columnarSupportMode(self) -> JavaObject:
        """Let the reader decide for each partition."""
        return self._bridge.value_of("read.Scan$ColumnarSupportMode", "PARTITION_DEFINED")

    # SupportsReportStatistics

    @from_spark
    def estimateStatistics(self) -> JavaObject:
        """Return bytes and rows of the files to read."""
        size = sum(file.file_size for split in self._splits for file in split.files)
        rows = sum(split.row_count for split in self._splits)
        return ScanStatistics(self._bridge, size_bytes=size, rows=rows)

    # SupportsRuntimeV2Filtering

    @from_spark
    def filterAttributes(self) -> JavaObject:
        """Return the columns by which a join may prune this scan at run time."""
        wanted = set(self._request.schema.fieldNames())
        names = [field.name for field in self._request.read.ref.schema.partition_fields if field.name in wanted]
        return self._bridge.references(names)

    @from_spark
    def filter(self, predicates: JavaObject) -> None:
        """Take the runtime filters, whose values Spark has found while the query runs."""
        ref = self._request.read.ref
        self._runtime = tuple(found for each in predicates if (found := take_filter(ref, each)) is not None)

    def pushedPredicates(self) -> JavaObject:
        """Return none: Spark applies all filters to the rows again."""
        return self._bridge.array(self._bridge.connector("expressions.filter.Predicate"), ())

    def supportsIterativePushdown(self) -> bool:
        """Return false: Spark passes all filters in one call."""
        return False

    # Helpers

    def partitions_of(self, splits: Sequence[DataSplit]) -> tuple[JavaObject, JavaObject]:
        """Return the partitions and their reader factory."""
        request, bridge = self._request, self._bridge
        if self._reason is None:
            filters = [bridge.v1_filter(each.given) for each in request.pushed if each.is_for_files]
            native = list_native(request.read.ref, splits, self._format)
            scan = native_scan(bridge, native, self._columns, [each for each in filters if each is not None])
            return scan.planInputPartitions(), scan.createReaderFactory()
        return (
            python_partitions(bridge, splits),
            python_factory(bridge, request.spark, request.read.ref, self._columns),
        )

    def _refuse(self, what: str) -> None:
        raise NotImplementedError(f"{what} of a table")


def _enough(splits: tuple[DataSplit, ...], limit: int | None) -> tuple[DataSplit, ...]:
    """Return the first splits that have ``limit`` rows together; all splits if rows are still to be filtered."""
    if limit is None or not all(split.rest.is_always_true for split in splits):
        return splits
    rows = list(accumulate(split.row_count for split in splits))
    return splits[: bisect_left(rows, limit) + 1]


class TableBatch(Proxy):
    """The partitions of a scan, made at Spark's first call."""

    interfaces: ClassVar = (f"{_READ}Batch",)

    def __init__(
        self, bridge: Bridge, scan: TableScan, splits: Sequence[DataSplit], runtime: tuple[Pushed, ...]
    ) -> None:
        filters = format_predicate(And(operands=tuple(each.predicate for each in runtime)))
        super().__init__(bridge, f"{scan.toString()} at run time {filters}")
        self._scan = scan
        self._splits = splits
        self._made: tuple[JavaObject, JavaObject] | None = None

    @from_spark
    def planInputPartitions(self) -> JavaObject:
        """Return the partitions."""
        return self._parts()[0]

    @from_spark
    def createReaderFactory(self) -> JavaObject:
        """Return the factory of their readers."""
        return self._parts()[1]

    def _parts(self) -> tuple[JavaObject, JavaObject]:
        if self._made is None:
            self._made = self._scan.partitions_of(self._splits)
        return self._made
