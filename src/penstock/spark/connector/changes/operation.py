"""UPDATE, MERGE and DELETE with subqueries through Spark's catalog: Spark computes the rows.

Source:
    ``SupportsRowLevelOperations`` of Spark: it names the rows that change (``SupportsDelta``), or reads whole files and
    writes all their rows again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.catalog.checks.features import check_writable
from penstock.datafile.types import has_leaf, is_char
from penstock.errors import UnsupportedFeatureError
from penstock.options import BucketOptions
from penstock.spark.connector.changes.replace_files import Arrangement, ReplaceFiles, Statement
from penstock.spark.connector.changes.row_deltas import DeltaWrite, is_queue
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.metadata_column import POSITION, TRACKED, metadata_column_of
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.staging_directory import why_not_staged
from penstock.spark.types import has_nanoseconds
from penstock.spark.versions.facts import NEEDS_METADATA_COLUMN, ROW_DELTAS
from penstock.table.row_tracking import is_tracked
from penstock.table.write.rolling import plan_buckets

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spark.connector.changes.group_scan import ChangeScan, ChangeScanBuilder
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.dml.replacement import ReadFiles
    from penstock.table.ref import TableRef

_WRITE: Final = "org.apache.spark.sql.connector.write."
_CURES: Final = {
    "DELETE": "Table.delete(where), or penstock.sql; for rows that match those of a query, Table.merge(query, on, "
    "matched=MergeDelete()), or MERGE ... WHEN MATCHED THEN DELETE in penstock.sql",
    "UPDATE": "Table.update(set, where), or penstock.sql",
    "MERGE": "Table.merge(source, on), whose source may be a DataFrame, or penstock.sql",
}
# Spark adds columns of these names to its plan of a statement, and then finds the columns of the table by name.
_PLAN_COLUMNS: Final = {
    "DELETE": frozenset({"__row_operation"}),
    "UPDATE": frozenset({"__row_operation"}),
    "MERGE": frozenset({"__row_operation", "__row_from_source", "__row_from_target", "__row_id"}),
}


def check_row_level(ref: TableRef, command: str, *, takes_deltas: bool) -> None:
    """Refuse tables whose rows Spark must not rewrite.

    Args:
        takes_deltas: whether Spark names the rows that change.
    """
    check_writable(ref)
    names = _PLAN_COLUMNS[command] | (frozenset(POSITION) if takes_deltas else frozenset())
    taken = [name for name in ref.schema.field_names if name.casefold() in names]
    reason = f"Spark itself uses the name of its column '{taken[0]}' there" if taken else None
    nanos = [field.name for field in ref.schema.fields if has_leaf(field.type, has_nanoseconds)]
    if nanos:
        reason = f"Spark would cut the nanoseconds of its column '{nanos[0]}' in all rows that it writes again"
    if not takes_deltas and (is_queue(ref) or is_tracked(ref.options)):
        ROW_DELTAS.check(f"table {ref.name}")
        kind = "is a queue" if is_queue(ref) else "tracks its rows"
        reason = f"it {kind}, and has a column of VARIANT, or executors load no class that this session adds"
    elif is_queue(ref):
        keys = plan_buckets(ref).key
        if any(field.name in keys and is_char(field.type) for field in ref.schema.fields):
            reason = "Spark pads its bucket key, a CHAR, and rows would change their buckets"
    elif ref.parsed(BucketOptions).bucket != -1:
        reason = "its rows are in buckets, whose order Spark would not keep"
    reason = reason or why_not_staged(ref)
    if reason is not None:
        raise UnsupportedFeatureError(
            f"table {ref.name}: {command} through Spark's catalog does not work for it, because {reason}: use "
            f"{_CURES[command]}"
        )


def metadata_of_changes(ref: TableRef) -> tuple[str, ...]:
    """Return the names of the metadata columns by which whole files change."""
    return (metadata_column_of(ref.schema.field_names),) if NEEDS_METADATA_COLUMN else ()


class RowChangeBuilder(Proxy):
    """Builds the operation, or as a subclass its write; Spark passes no settings to it."""

    interfaces: ClassVar = (f"{_WRITE}RowLevelOperationBuilder",)

    def __init__(self, bridge: Bridge, built: RowChangeOperation | ReplaceFiles | DeltaWrite) -> None:
        super().__init__(bridge, f"{built.description()} {id(self)}")
        self._built = built

    @from_spark
    def build(self) -> JavaObject:
        """Return what was built."""
        return self._built


class ReplaceFilesBuilder(RowChangeBuilder):
    """Builds the write that replaces files."""

    interfaces: ClassVar = (f"{_WRITE}WriteBuilder",)


class DeltaWriteBuilder(RowChangeBuilder):
    """Builds the write of single rows."""

    interfaces: ClassVar = (f"{_WRITE}DeltaWriteBuilder",)


class RowChangeOperation(Proxy):
    """One UPDATE, MERGE or DELETE. Its write replaces the files that its scan has read.

    Args:
        new_builder: returns a scan builder of the table for the options of the read and a callback for the scan.
        command: as Spark names it, such as ``UPDATE``.
    """

    interfaces: ClassVar = (f"{_WRITE}RowLevelOperation",)

    def __init__(
        self,
        bridge: Bridge,
        ref: TableRef,
        new_builder: Callable[[JavaObject, Callable[[ChangeScan], None]], ChangeScanBuilder],
        command: str,
    ) -> None:
        super().__init__(bridge, f"{command} of {ref.name} {id(self)}")
        self._ref = ref
        self._new_builder = new_builder
        self._command = command
        self._scan: ChangeScan | None = None

    def description(self) -> str:
        """Return the name of the operation."""
        return f"{self._command} of {self._ref.name}"

    @from_spark
    def command(self) -> JavaObject:
        """Return the kind of the statement."""
        return self._bridge.value_of("write.RowLevelOperation$Command", self._command)

    @from_spark
    def requiredMetadataAttributes(self) -> JavaObject:
        """Return a column where Spark needs one to take the others out."""
        return self._bridge.references(metadata_of_changes(self._ref))

    @from_spark
    def newScanBuilder(self, options: JavaObject) -> JavaObject:
        """Return the builder of a scan of whole files."""
        return self._new_builder(options, self._take)

    @from_spark
    def newWriteBuilder(self, info: JavaObject) -> JavaObject:
        """Return the builder of the write."""
        statement = Statement(
            command=self._command,
            scan_text=lambda: "" if self._scan is None else self._scan.toString(),
            read_files=self._read_files,
            arrangement=self._arrangement,
            check=partial(check_row_level, command=self._command, takes_deltas=False),
        )
        return ReplaceFilesBuilder(self._bridge, ReplaceFiles(self._bridge, self._ref, info, statement))

    def _take(self, scan: ChangeScan) -> None:
        self._scan = scan

    def _arrangement(self) -> Arrangement:
        """Return the required distribution and order of the rows, so that each file gets rows of one partition."""
        if not self._ref.schema.partition_keys:
            return Arrangement.AS_READ
        if self._command == "MERGE":
            # The join may be on any columns and may add new rows.
            return Arrangement.CLUSTERED
        is_one = self._scan is None or self._scan.partition_count() <= 1
        return Arrangement.AS_READ if is_one else Arrangement.SORTED

    def _read_files(self) -> ReadFiles:
        """Return the files to replace: those that the scan has read, or would read if Spark had not removed it."""
        if self._scan is None:
            # Spark found that no row of the table is kept, before it planned the scan.
            self._new_builder(self._bridge.case_insensitive({}), self._take).build()
        assert self._scan is not None  # noqa: S101 - the builder has passed it
        return replace(self._scan.read_files(), adds_rows=self._command != "DELETE")


class DeltaOperation(RowChangeOperation):
    """One UPDATE, MERGE or DELETE whose rows Spark names by their positions."""

    interfaces: ClassVar = (f"{_WRITE}SupportsDelta",)

    @from_spark
    def requiredMetadataAttributes(self) -> JavaObject:
        """Return what a condition is likely to have, which Spark else does not find in all conditions."""
        return self._bridge.references(TRACKED if is_tracked(self._ref.options) else ())

    @from_spark
    def rowId(self) -> JavaObject:
        """Return the columns that name a row."""
        return self._bridge.references(POSITION)

    @from_spark
    def newWriteBuilder(self, info: JavaObject) -> JavaObject:
        """Return the builder of the write."""
        columns, check = schema_of(info.schema()), partial(check_row_level, command=self._command, takes_deltas=True)
        write = DeltaWrite(self._bridge, self._ref, columns, self._read_files, check)
        return DeltaWriteBuilder(self._bridge, write)
