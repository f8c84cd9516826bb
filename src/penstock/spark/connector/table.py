"""A table in Spark's catalog API."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from pyspark.sql.types import LongType, StructField

from penstock.catalog.checks.features import check_writable
from penstock.errors import TableStoreError, UnsupportedFeatureError
from penstock.options import check_keys
from penstock.printable import mask_options
from penstock.spark.connector.actions.defaults import with_defaults
from penstock.spark.connector.actions.partitions import PartitionManagement
from penstock.spark.connector.changes.group_scan import ChangeScan, ChangeScanBuilder, GroupScan
from penstock.spark.connector.changes.operation import (
    DeltaOperation,
    RowChangeBuilder,
    RowChangeOperation,
    check_row_level,
    metadata_of_changes,
)
from penstock.spark.connector.changes.row_deltas import takes_deltas
from penstock.spark.connector.definition import is_evolution
from penstock.spark.connector.metadata_column import metadata_columns, places_of
from penstock.spark.connector.partition_keys import partition_keys_of
from penstock.spark.connector.proxy import from_spark
from penstock.spark.connector.pushdown import conjunction_of, take_filters
from penstock.spark.connector.scan import TableRead
from penstock.spark.connector.scan_builder import TableScanBuilder, read_variant_fields
from penstock.spark.connector.stream.table_write import StreamSinks
from penstock.spark.connector.write import TableWriteBuilder, own_options, partition_scope
from penstock.spark.types import nullable, to_catalog_schema, to_declared_schema, to_spark_schema
from penstock.spark.versions.facts import DELTA_OPTIONS, SCHEMA_EVOLUTION, capabilities_here
from penstock.spark.versions.python_api import is_evolving_merge
from penstock.table.actions.changes import commit_overwrite, open_committer, truncate
from penstock.table.assumptions import load_identity
from penstock.table.dml.by_filter import DeleteRows
from penstock.table.dml.run import run_change
from penstock.table.read.query import KEY as FALLBACK
from penstock.table.read.query import PinnedRead, fallback_of, pin_read
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.predicate.tree import Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject, SessionReference
    from penstock.table.ref import TableRef

_Builder = TypeVar("_Builder", bound=TableScanBuilder)

_CATALOG: Final = "org.apache.spark.sql.connector.catalog."
_TIME_TRAVEL: Final = frozenset({"versionasof", "timestampasof"})
# Spark provides the rows of most writes as a DataFrame (V1_BATCH_WRITE), but not those of a dynamic overwrite.
_CAPABILITIES: Final = (
    "BATCH_READ",
    "MICRO_BATCH_READ",
    "STREAMING_WRITE",
    "V1_BATCH_WRITE",
    "BATCH_WRITE",
    "TRUNCATE",
    "OVERWRITE_BY_FILTER",
    "OVERWRITE_DYNAMIC",
    "AUTOMATIC_SCHEMA_EVOLUTION",
)


def check_columns_of_now(ref: TableRef, read: TableRef) -> None:
    """Raise unless the columns that Spark takes for those of a table are those that it has now.

    Args:
        read: the table with the columns that it has for Spark.
    """
    if read.schema.fields != ref.schema.fields:
        raise UnsupportedFeatureError(
            f"table {ref.name}: rows are written to the columns that it has now, and these are altered, but settings "
            "spark.paimon.scan.* of the session name a past state, which has others: unset them"
        )


class CatalogTable(PartitionManagement):
    """A table pinned to one snapshot: all its scans see the same rows.

    It has no ``version``: Spark reloads a table with one on every action, so that a DataFrame would change.

    Args:
        name: full name including the catalog, as messages and plans show it.
    """

    interfaces: ClassVar = (
        f"{_CATALOG}SupportsRead",
        f"{_CATALOG}SupportsWrite",
        f"{_CATALOG}SupportsDeleteV2",
        f"{_CATALOG}SupportsRowLevelOperations",
        f"{_CATALOG}SupportsAtomicPartitionManagement",
        f"{_CATALOG}SupportsSchemaEvolution",
        f"{_CATALOG}SupportsMetadataColumns",
    )

    shared_methods: ClassVar = frozenset(
        {"capabilities", "columns", "id", "name", "partitioning", "properties", "schema"}
    )

    def __init__(self, bridge: Bridge, session: SessionReference, name: str, ref: TableRef) -> None:
        self._ref = ref
        self._store = MetadataStore(ref)
        self._unreadable: TableStoreError | None = None
        self._read = self._loaded_read()
        self._reads: dict[tuple[tuple[str, str], ...], PinnedRead] = {}
        self._identity = load_identity(ref)
        self._session = session
        self._sinks = StreamSinks(bridge)
        self._name = name
        fields = self._read.ref.schema.fields
        self._schema = nullable(to_spark_schema(fields))
        self._partition_keys = partition_keys_of(self._read.ref)
        self.schema_key = f"{name} {self._identity} {self._read.ref.schema.id} {sorted(self._read.ref.dynamic_options)}"
        """Equal for tables that differ in their snapshots only."""
        self.state = self._read.state
        self.changes_rows = False
        """Whether the table is loaded for an UPDATE, a DELETE or a MERGE."""
        super().__init__(bridge, f"{self.schema_key} {self.state}")
        read_variant_fields(bridge, bridge.session, fields)

    @property
    def is_behind(self) -> bool:
        """Whether others put a newer schema before the snapshot that is read, but after the schema was loaded."""
        point = self._read.point
        if point is None or point.snapshot is None or not point.is_latest:
            return False
        return point.snapshot.schema_id > self._ref.schema.id

    @cached_property
    def _takes_deltas(self) -> bool:
        return takes_deltas(self._bridge, self._ref)

    def _loaded_read(self) -> PinnedRead:
        """Pin the read; keep an error of the fallback branch for scans, so that ALTER TABLE can remove the option."""
        try:
            return pin_read(self._ref, self._store)
        except TableStoreError as error:
            if fallback_of(self._ref.options) is None:
                raise
            read = pin_read(self._ref.with_options({FALLBACK: ""}), self._store)
            self._unreadable = error
            return read

    def name(self) -> str:
        """Return the name."""
        return self._name

    def id(self) -> str:
        """Return the identity of the table, which changes if the table is dropped and created again."""
        return self._identity

    @from_spark
    def schema(self) -> JavaObject:
        """Return the columns as they were declared; the driver shows these to statements that describe the table."""
        fields = self._read.ref.schema.fields
        return self._bridge.schema(with_defaults(to_declared_schema(fields), fields))

    @from_spark
    def columns(self) -> JavaObject:
        """Return the columns, all nullable: files written before a column became NOT NULL may have nulls."""
        fields = self._read.ref.schema.fields
        return self._bridge.columns(self._bridge.schema(with_defaults(nullable(to_catalog_schema(fields)), fields)))

    @from_spark
    def partitioning(self) -> JavaObject:
        """Return the partition columns."""
        return self._bridge.identities(self._read.ref.schema.partition_keys)

    @from_spark
    def properties(self) -> JavaObject:
        """Return the options and the comment."""
        schema = self._read.ref.schema
        found = mask_options(schema.options)
        found["location"] = self._read.ref.location
        found["is_managed_location"] = "true"
        found["provider"] = "penstock"
        if schema.comment:
            found["comment"] = schema.comment
        return self._bridge.java_map(found)

    @from_spark
    def capabilities(self) -> JavaObject:
        """Return the capabilities."""
        return self._bridge.values_of("catalog.TableCapability", capabilities_here(_CAPABILITIES))

    @from_spark
    def metadataColumns(self) -> JavaObject:
        """Return the columns that say where a row is, and those that a change of rows needs."""
        takes_deltas = self.changes_rows and self._takes_deltas
        changes = metadata_of_changes(self._ref) if self.changes_rows and not takes_deltas else ()
        added = (StructField(name, LongType()) for name in changes)
        places = places_of(self._read.ref, name_rows=takes_deltas)
        return metadata_columns(self._bridge, (*places, *added))

    @from_spark
    def supportsColumnChange(self, change: JavaObject) -> bool:
        """Whether ``WITH SCHEMA EVOLUTION`` makes a change; Spark casts the values of a type that does not change."""
        if self.changes_rows:
            check_row_level(self._ref, "MERGE", takes_deltas=self._takes_deltas)
        return is_evolution(change, self._read.ref.schema, self._ref.name)

    @from_spark
    def newScanBuilder(self, options: JavaObject) -> JavaObject:
        """Return the scan builder.

        Args:
            options: options of ``spark.read.option(...).table(...)`` or of ``WITH (...)``.
        """
        return self._scan_builder(options, TableScanBuilder)

    def _change_scan_builder(self, options: JavaObject, made: Callable[[ChangeScan], None]) -> ChangeScanBuilder:
        kind = ChangeScan if self._takes_deltas else GroupScan
        return self._scan_builder(options, partial(ChangeScanBuilder, made, kind))

    def _scan_builder(self, options: JavaObject, kind: Callable[..., _Builder]) -> _Builder:
        own = own_options(self._bridge, options)
        if self._ref.dynamic_options:
            # Spark passes the option, too, by which it has loaded this state.
            own = {key: value for key, value in own.items() if key.lower() not in _TIME_TRAVEL}
        if not _TIME_TRAVEL.isdisjoint(key.lower() for key in own):
            DELTA_OPTIONS.check(f"table {self._ref.name}")
        check_keys(own, table=self._ref.name)
        # A stream, too, has the columns that Spark has taken.
        ref = replace(self._ref, schema=self._read.ref.schema).with_options(own)
        return kind(
            self._bridge,
            self._session.get(),
            TableRead(ref, self._identity, partial(self._read_with, own), self._partition_keys),
            self._schema,
        )

    @from_spark
    def newWriteBuilder(self, info: JavaObject) -> JavaObject:
        """Return the write builder, of a MERGE too that only inserts."""
        self._check_evolution()
        check_columns_of_now(self._ref, self._read.ref)
        return TableWriteBuilder(self._bridge, self._session.get(), self._ref, info, sinks=self._sinks)

    def _check_evolution(self) -> None:
        if not SCHEMA_EVOLUTION.is_here and is_evolving_merge():
            SCHEMA_EVOLUTION.check(f"table {self._ref.name}")

    @from_spark
    def newRowLevelOperationBuilder(self, info: JavaObject) -> JavaObject:
        """Return the builder of an UPDATE, a MERGE, or a DELETE that ``canDeleteWhere`` does not take."""
        command = str(info.command().toString())
        self._check_latest(command)
        self._check_evolution()
        if command != "DELETE":
            check_row_level(self._ref, command, takes_deltas=self._takes_deltas)
        kind = DeltaOperation if self._takes_deltas else RowChangeOperation
        operation = kind(self._bridge, self._ref, self._change_scan_builder, command)
        return RowChangeBuilder(self._bridge, operation)

    @from_spark
    def canDeleteWhere(self, predicates: JavaObject) -> bool:
        """Whether a DELETE needs no Spark job: it covers whole partitions, or Penstock evaluates its condition."""
        self._check_latest("DELETE")
        if partition_scope(self._bridge, self._ref, predicates) is not None or self._condition(predicates) is not None:
            return True
        check_row_level(self._ref, "DELETE", takes_deltas=self._takes_deltas)
        return False

    @from_spark
    def deleteWhere(self, predicates: JavaObject, _options: JavaObject = None) -> None:
        """Remove the partitions or rows that match a condition. The options of Spark 4.3 have no effect."""
        check_writable(self._ref)
        scope = partition_scope(self._bridge, self._ref, predicates)
        if scope is not None:
            commit_overwrite(open_committer(self._ref, adds_rows=False), (), scope)
            return
        condition = self._condition(predicates)
        assert condition is not None  # noqa: S101 - Spark asks canDeleteWhere first
        change = DeleteRows(predicate=condition)
        run_change(open_committer(self._ref, adds_rows=False), lambda _: change)

    @from_spark
    def truncateTable(self, _options: JavaObject = None) -> bool:
        """Remove all rows with a new snapshot."""
        check_writable(self._ref)
        truncate(open_committer(self._ref, adds_rows=False))
        return True

    def _check_latest(self, command: str) -> None:
        """Refuse to change rows of a past state, which settings of the session may name."""
        if self._read.point is None or not self._read.point.is_latest:
            raise UnsupportedFeatureError(
                f"table {self._ref.name}: {command} changes the latest rows, but settings spark.paimon.scan.* of the "
                "session name a past state: unset them"
            )

    def _read_with(self, own: Mapping[str, str]) -> PinnedRead:
        """Return the read of uses with these options, always the same."""
        if self._unreadable is not None and FALLBACK not in own:
            raise self._unreadable
        if not own:
            return self._read
        key = tuple(sorted(own.items()))
        if key not in self._reads:
            self._reads[key] = self._pinned(own)
        return self._reads[key]

    def _pinned(self, own: Mapping[str, str]) -> PinnedRead:
        loaded = self._read
        is_latest = loaded.point is not None and loaded.point.is_latest
        # Spark passes options after it has taken the columns of the table, which a past state may not have had.
        found = pin_read(loaded.ref.with_options(own), MetadataStore(self._ref), keeps_columns=is_latest)
        is_latest = is_latest and found.point is not None and found.point.is_latest
        if is_latest and found.point is not None and loaded.point is not None and FALLBACK not in own:
            point = replace(found.point, snapshot=loaded.point.snapshot)
            found = replace(found, point=point, fallback=loaded.fallback if found.fallback else None)
        return replace(found, ref=replace(found.ref, schema=loaded.ref.schema))

    def _condition(self, predicates: JavaObject) -> Predicate | None:
        """Return the condition of a DELETE; None if Penstock does not evaluate it as Spark does."""
        taken = take_filters(self._bridge, self._ref, predicates)
        exact = tuple(each for each in taken if each is not None and each.is_exact_for_rows)
        return conjunction_of(exact) if len(exact) == len(taken) else None
