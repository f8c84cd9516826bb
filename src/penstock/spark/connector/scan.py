"""Scan of a table: the files that push-down keeps, read by Spark's own reader or by Python workers."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Final, Self

from pyspark.sql.types import StructField, StructType

from penstock.options import BucketOptions, ClusteringOptions, ReadOptions
from penstock.predicate.bind import columns_of
from penstock.predicate.tree import And
from penstock.printable import bytes_text
from penstock.spark.connector.executor_classes import executors_have_classes
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.jvm.driver import places_text
from penstock.spark.connector.metadata_column import MADE, NUMBERED, ORIGINS, PLACES, constants_of
from penstock.spark.connector.native_reader import native_factory
from penstock.spark.connector.partition_keys import keyed_files, read_keys, transforms_text
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import Pushed, conjunction_of, take_filters
from penstock.spark.connector.python_workers import python_factory, python_partitions
from penstock.spark.connector.stream.micro_batches import BatchReader, TableStream
from penstock.spark.native_settings import clone_session
from penstock.spark.read.frame import ReadTask
from penstock.spark.read.native_listing import list_native
from penstock.spark.read.native_reading import describe_reading, plan_reading
from penstock.spark.stream.progress import listen
from penstock.spark.types import to_spark_schema
from penstock.spark.versions.facts import GROUPS_SCANS
from penstock.table.inspect.explain import format_predicate
from penstock.table.read.batches import select_fields
from penstock.table.read.prune import ColumnStatsReader
from penstock.table.read.split import iter_bucket_splits, iter_splits, pack_splits, with_origins
from penstock.table.read.top import files_of_top
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from penstock.format.manifest.entry import FileKey
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.partition_keys import PartitionKey
    from penstock.spark.read.native_reading import NativeReading
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.read.top import Top
    from penstock.table.ref import TableRef
_LOG: Final = logging.getLogger(__name__)
_PADDING: Final = "spark.sql.readSideCharPadding"
_AS_STRING: Final = "spark.sql.legacy.charVarcharAsString"
_READ: Final = "org.apache.spark.sql.connector.read."


class TableRead:
    """The state that a batch read is fixed to, loaded at its first use: a stream has the table and its options only.

    Attributes:
        ref: the table with the options of the read.
        identity: identity of the table.
        store: of the table; stores of one identity share what they have decoded.
        partition_keys: keys by which files of the table are kept apart.
    """

    def __init__(
        self,
        ref: TableRef,
        identity: str,
        load: Callable[[], PinnedRead],
        partition_keys: tuple[PartitionKey, ...] = (),
    ) -> None:
        self.ref = ref
        self.partition_keys = partition_keys
        self.identity = identity
        self._load = load
        self.store = MetadataStore(ref, identity=identity)
        self._last: tuple[Predicate | None, ScanPlan] | None = None

    @cached_property
    def pinned(self) -> PinnedRead:
        """The fixed state."""
        return self._load()

    def start_from(self, plan: ScanPlan) -> None:
        """Reuse an existing plan of the read without the filters of the query."""
        self._last = None, plan

    def plan(self, predicate: Predicate | None) -> ScanPlan:
        """Plan the read; Spark asks for its size and then for its files, so the last plan is cached."""
        if self._last is None or self._last[0] != predicate:
            self._last = predicate, self.pinned.plan(self.store, predicate, with_vectors=True)
        return self._last[1]

    def without_fallback(self) -> TableRead:
        """Return the read without the rows of a fallback branch."""
        return TableRead(self.ref, self.identity, lambda: replace(self.pinned, fallback=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """Input of a scan.

    Attributes:
        schema: the columns to read, in Spark's types.
        filters: Spark's filters, a ``Predicate[]``.
        pushed: the filters that skip files.
        limit: number of matching rows that suffices; None for all.
        top: the first rows of an order, which suffice; None for all.
        metadata: the metadata columns to return, in the order of readers.
        pads: whether the scan pads values of CHAR: Spark does so itself for a query.
    """

    spark: SparkSession
    read: TableRead
    schema: StructType
    filters: JavaObject
    pushed: tuple[Pushed, ...]
    limit: int | None
    top: Top | None = None
    metadata: StructType = field(default_factory=StructType)
    pads: bool = False

    def key(self) -> str:
        """Return the key of a batch scan: scans with equal keys read the same rows."""
        read = self.read.pinned
        fixed = () if read.predicate is None else (read.predicate,)
        filters = format_predicate(And(operands=(*fixed, *(each.predicate for each in self.pushed))))
        options = sorted(read.ref.dynamic_options)
        return (
            f"{self.read.identity} schema {read.ref.schema.id} snapshot {read.state} options {options} columns "
            f"{self.schema.json()} {self.metadata.json()} filter {filters} limit {self.limit} {self.top}"
        )

    def plan(self, runtime: Sequence[Pushed] = ()) -> ScanPlan:
        """Plan the files of a batch scan.

        Args:
            runtime: filters whose values Spark determined while the query runs.
        """
        return self.read.plan(conjunction_of((*self.pushed, *runtime)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """The files of a batch scan before runtime filters, and the way in which they are read.

    Attributes:
        columns: the columns that the reader returns.
        reading: how Spark's own reader reads them, or why it does not.
        top: the order by whose first rows others were left out.
    """

    plan: ScanPlan
    splits: tuple[DataSplit, ...]
    columns: StructType
    reading: NativeReading | str
    top: Top | None

    @classmethod
    def of(cls, bridge: Bridge, request: ScanRequest, *, refusal: str | None = None) -> Self:
        """Plan the files, and choose their reader.

        Args:
            refusal: why Spark's own reader must not read; None if it may.
        """
        ref = request.read.pinned.ref
        plan = request.plan()
        splits = _enough(ref, plan, request.limit)
        top = request.top if request.read.pinned.fallback is None else None
        if top is not None:
            by = select_fields(ref, (top.column,))
            splits = files_of_top(splits, ColumnStatsReader(request.read.store.load_schema, by), top)
        columns = request.schema
        made = tuple(name for name in request.metadata.fieldNames() if name in MADE)

        def planned() -> NativeReading | str:
            found = refusal or plan_reading(
                ref,
                request.read.store,
                splits,
                select_fields(ref, columns.fieldNames()) if len(columns) else (),
                has_class=partial(executors_have_classes, bridge),
                pads=request.pads,
            )
            reason = _why_no_places(request, found)
            if made and reason is None and not isinstance(found, str):
                found = (
                    replace(found, made=made) if executors_have_classes(bridge) else "executors load no class for this"
                )
            return reason or found

        reading = planned()
        if not len(columns) and _left_of(reading) is not None:
            # Arrow batches without columns lose their rows, so read at least one column.
            columns = to_spark_schema(ref.schema.fields[:1])
            reading = planned()
        left = _left_of(reading)
        if left is not None and left != refusal:
            some = "" if isinstance(reading, str) else f"{len(reading.left)} of {reading.file_count} files "
            _LOG.warning("table %s: %sread by Python workers, not by Spark's own reader: %s", ref.name, some, left)
        return cls(plan=plan, splits=splits, columns=columns, reading=reading, top=top)

    def description(self) -> str:
        """Describe the files and their reader, for ``explain``."""
        plan, funnel = self.plan, self.plan.funnel
        if plan.snapshot is None:
            return "nothing was committed yet"
        pushed = format_predicate(plan.predicate.root, plan.predicate.fields)
        steps = [f"{stage.name} {stage.files}" for stage in funnel.stages[1:]]
        left = f" (left by {', '.join(steps)})" if steps else ""
        kept, live = (funnel.stages[place].bytes for place in (-1, 0))
        unread = funnel.manifests_total - funnel.manifests_read
        of_live = (
            f"{bytes_text(kept)} of {bytes_text(live)}{f' in {funnel.manifests_read} manifests' if unread else ''}"
        )
        structs = [field.name for field in self.columns if "__VARIANT_METADATA_KEY" in field.json()]
        taken = f", read fields of {', '.join(structs)}" if structs else ""
        first = "" if self.top is None else f", {self.top} in {sum(len(each.files) for each in self.splits)} files"
        return (
            f"snapshot {plan.snapshot.id}, {plan.file_count} of {funnel.files_total} files{left}, {of_live}, by "
            f"{describe_reading(self.reading)}{taken}, filter: {pushed}{first}"
        )


class TableScan(Proxy):
    """One scan, of which Spark says only after it was built whether it is a batch or a stream.

    The files of a batch are planned when Spark first needs them.
    """

    interfaces: ClassVar = (
        f"{_READ}SupportsRuntimeV2Filtering",
        f"{_READ}SupportsReportStatistics",
        f"{_READ}SupportsReportPartitioning",
        f"{_READ}SupportsPushDownVariantExtractions",
    )
    # Spark copies its plan, and asks for the batch again for each copy.
    cached_methods: ClassVar = frozenset(
        {"description", "estimateStatistics", "filterAttributes", "readSchema", "toBatch"}
    )
    driver_methods: ClassVar = frozenset({"outputPartitioning"})

    def __init__(self, bridge: Bridge, request: ScanRequest, files: _Files | None = None) -> None:
        self._planned = files
        self._keys = read_keys(request.read.partition_keys, request.schema.fieldNames())
        super().__init__(bridge, self._text, keys_text=transforms_text(self._keys))
        self._request = request
        self._stream: TableStream | None = None
        self._request_of_fields = request
        self._runtime: tuple[Pushed, ...] = ()
        self._factory: JavaObject | None = None

    @cached_property
    def _files(self) -> _Files:
        if self._planned is not None:
            return self._planned
        return _Files.of(self._bridge, self._request, refusal=self._refusal())

    def _text(self) -> str:
        return self._request.key() if self._stream is None else self._stream.toString()

    # Scan

    @from_spark
    def readSchema(self) -> JavaObject:
        """Return the columns of the rows."""
        return self._bridge.schema(self._request.schema if self._stream is not None else self._returned)

    @property
    def _returned(self) -> StructType:
        """Columns of the rows of a batch."""
        return StructType([*self._files.columns, *self._request.metadata])

    @from_spark
    def description(self) -> str:
        """Describe the scan, for ``explain``."""
        return self._files.description() if self._stream is None else self._stream.description()

    @from_spark
    def toBatch(self) -> JavaObject:
        """Return the partitions to read, pruned by the runtime filters that Spark has passed, if any."""
        splits = self._files.splits
        if self._runtime:
            plan = self._request.plan(self._runtime)
            splits = tuple(iter_bucket_splits(self._request.read.pinned.ref, plan, in_order=False))
        return TableBatch(self._bridge, self, splits, self._runtime)

    @from_spark
    def toMicroBatchStream(self, location: str) -> JavaObject:
        """Return the source of a streaming query; its checkpoint has a place for the source, which is not used."""
        request = self._request
        listen(request.spark).follow(stream_id := uuid.uuid4().hex, request.read.ref)
        files = BatchReader(
            self._bridge, request.spark, request.read.ref, request.schema, pads=is_padded(request.spark)
        )
        self._stream = TableStream(self._bridge, files, stream_id=stream_id)
        return self._stream

    # SupportsReportStatistics

    @from_spark
    def estimateStatistics(self) -> JavaObject:
        """Return the rows of the files to read, and the approximate bytes of the columns; none for a stream."""
        if self._stream is not None:
            return self._bridge.driver.statistics(-1, -1)
        files = self._files
        size = sum(split.byte_count for split in files.splits)
        rows = sum(split.row_count for split in files.splits)
        # As in Spark's own scans: the columns' share of the default sizes of all columns.
        whole = self._bridge.schema(to_spark_schema(self._request.read.pinned.ref.schema.fields)).defaultSize()
        share = self._bridge.schema(files.columns).defaultSize() / max(whole, 1)
        return self._bridge.driver.statistics(int(size * share), rows)

    # SupportsRuntimeV2Filtering

    @from_spark
    def filterAttributes(self) -> JavaObject:
        """Return the columns by which a join may prune this scan at run time."""
        return self._bridge.references(self._laid_out())

    def _laid_out(self) -> list[str]:
        """Return the columns by which rows are laid out; values of other columns are spread over most files."""
        ref = self._request.read.pinned.ref
        wanted = set(self._request.schema.fieldNames())
        laid_out = (
            *ref.schema.partition_keys,
            *ref.parsed(BucketOptions).bucket_key,
            *ref.parsed(ClusteringOptions).names,
        )
        return list(dict.fromkeys(name for name in laid_out if name in wanted))

    @from_spark
    def filter(self, predicates: JavaObject) -> None:
        """Take the runtime filters, whose values Spark determines while the query runs."""
        self._runtime = tuple(filter(None, take_filters(self._bridge, self._request.read.pinned.ref, predicates)))

    # SupportsPushDownVariantExtractions, which our own rule calls: see VariantFields.java

    @from_spark
    def pushVariantExtractions(self, extractions: JavaObject) -> JavaObject:
        """Take the structs of fields that are to be read instead of columns of VARIANT, all or none."""
        reading = self._files.reading
        is_taken = not isinstance(reading, str) and reading.reads_variants
        if is_taken:
            structs = {str(each.columnName()[0]): schema_of(each.expectedDataType()) for each in extractions}
            fields = [
                StructField(field.name, structs.get(field.name, field.dataType)) for field in self._request.schema
            ]
            self._request_of_fields = replace(self._request, schema=StructType(fields))
        return self._bridge.booleans([is_taken] * len(extractions))

    @from_spark
    def build(self) -> JavaObject:
        """Return the scan of the fields that were taken last."""
        request = self._request_of_fields
        return TableScan(self._bridge, request, replace(self._files, columns=request.schema))

    # Helpers

    def _refusal(self) -> str | None:
        """Return why Spark's own reader must not read the files; None if it may."""
        return None

    def partitions_of(self, splits: Sequence[DataSplit]) -> tuple[JavaObject, JavaObject]:
        """Return the partitions and their reader factory."""
        bridge, reading, ref = self._bridge, self._files.reading, self._request.read.pinned.ref
        if not ORIGINS.isdisjoint(self._request.metadata.fieldNames()):
            splits = [with_origins(split, self._origins) for split in splits]
        if isinstance(reading, str):
            return self._python_partitions(splits), self._python_factory()
        native, left = reading.divided(splits) if reading.left else (splits, ())
        session = bridge.session()
        settings = _split_settings(ref)
        packing = clone_session(session, settings) if settings else session
        partitions = self._packed(packing, native, reading)
        if left:
            # First, since they take longer.
            partitions = bridge.driver.joined(self._python_partitions(left), partitions)
        return partitions, self._native_factory(reading)

    @cached_property
    def _origins(self) -> dict[FileKey, Snapshot]:
        read = self._request.read
        return read.pinned.load_origins(read.store, self._files.plan)

    def _python_partitions(self, splits: Sequence[DataSplit]) -> JavaObject:
        options = self._request.read.pinned.ref.parsed(ReadOptions)
        return python_partitions(self._bridge, tuple(pack_splits(splits, options)))

    def _python_factory(self) -> JavaObject:
        request = self._request
        columns, metadata = (tuple(each.fieldNames()) for each in (self._files.columns, request.metadata))
        task = ReadTask(ref=request.read.pinned.ref, columns=columns, pads=request.pads, metadata=metadata)
        return python_factory(self._bridge, request.spark, task, self._returned)

    def _packed(self, session: JavaObject, splits: Sequence[DataSplit], reading: NativeReading) -> JavaObject:
        """Return partitions for Spark's readers, with keys where that is worth it."""
        read = self._request.read.pinned
        constants = constants_of(self._request.metadata).fieldNames()

        def listed(some: Sequence[DataSplit]) -> str:
            return list_native(read.ref, some, reading, constants)

        # Files of a fallback branch may be in other buckets, and partitions of Python workers have no keys.
        text = (
            None
            if read.fallback is not None or reading.left
            else keyed_files(read.ref, self._request.read.store.load_schema, self._keys, splits, listed)
        )
        if text is None:
            with self._bridge.long_text(listed(splits)) as files:
                return self._bridge.driver.packed(session, files)
        cells = ",".join(key.cell for key in self._keys)
        with self._bridge.long_text(text) as files:
            return self._bridge.driver.keyed(session, files, cells, *self._sizes, GROUPS_SCANS)

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        """Bytes, number and number of keys of the files before runtime filters."""
        splits = self._files.splits
        size, count = sum(split.byte_count for split in splits), sum(len(split.files) for split in splits)
        return size, count, len({tuple(key.value(split) for key in self._keys) for split in splits})

    def _native_factory(self, reading: NativeReading) -> JavaObject:
        """Return the factory of Spark's readers; one for all plans of the scan, as it broadcasts a configuration."""
        if self._factory is None:
            columns, metadata = self._files.columns, self._request.metadata
            self._factory = native_factory(
                self._bridge, reading, columns, metadata, self._filters_for, self._python_factory
            )
        return self._factory

    def _filters_for(self, pushable: frozenset[str]) -> JavaObject:
        """Return the filters by which a reader may skip row groups."""
        request = self._request
        # Spark's Parquet reader treats a column that it does not read as NULL, and would skip all rows. Spark does
        # not read the columns of exact filters, which hold for all rows of these partitions.
        places = [
            each.place
            for each in request.pushed
            if each.is_for_files and pushable.issuperset(columns_of(each.predicate))
        ]
        return self._bridge.driver.filters(request.filters, places_text(places))


def _left_of(reading: NativeReading | str) -> str | None:
    """Return why files are left to Python workers; None if none are."""
    return reading if isinstance(reading, str) else reading.reason if reading.left else None


def _why_no_places(request: ScanRequest, reading: NativeReading | str) -> str | None:
    """Return why Python workers have to return the metadata columns of a query; None if Spark's own reader does."""
    names, left = request.metadata.fieldNames(), _left_of(reading)
    if left is not None:
        return left if any(name in PLACES for name in names) else None
    if isinstance(reading, str) or reading.numbers_rows or not any(name in NUMBERED for name in names):
        return None
    return f"Spark cannot number the rows of these {reading.formats} files"


def is_padded(spark: SparkSession) -> bool:
    """Whether Spark pads the values of CHAR that it reads."""
    conf = spark.conf
    return conf.get(_PADDING, "true") == "true" and conf.get(_AS_STRING, "false") == "false"


def _split_settings(ref: TableRef) -> dict[str, str]:
    """Return Spark's settings that do what the options of the read and of the table say of splits; empty without any.

    Source:
        Paimon ``spark:read/BinPackingSplits.scala``: without an option, Spark's setting decides.
    """
    options = ref.parsed(ReadOptions)
    spark_settings = {
        "source.split.target-size": ("spark.sql.files.maxPartitionBytes", options.split_target_bytes),
        "source.split.open-file-cost": ("spark.sql.files.openCostInBytes", options.split_open_file_cost_bytes),
    }
    return {setting: str(value) for key, (setting, value) in spark_settings.items() if key in ref.options}


def _enough(ref: TableRef, plan: ScanPlan, limit: int | None) -> tuple[DataSplit, ...]:
    """Return the first splits that certainly have ``limit`` rows together; all splits if there are not so many rows."""
    if limit is None:
        # Spark packs the files by size.
        return tuple(iter_bucket_splits(ref, plan, in_order=False))
    found: list[DataSplit] = []
    rows = 0
    for split in iter_splits(ref, plan):
        found.append(split)
        # How many rows a filter or a deletion vector leaves is not known before they are read.
        rows += split.row_count if split.rest.is_always_true and not split.vectors else 0
        if rows >= limit:
            break
    return tuple(found)


class TableBatch(Proxy):
    """The partitions of a scan, created at Spark's first call."""

    interfaces: ClassVar = (f"{_READ}Batch",)
    cached_methods: ClassVar = frozenset({"createReaderFactory", "planInputPartitions"})

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
