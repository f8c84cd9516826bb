"""Apache Paimon append tables for PySpark, in Python, without JARs."""

import importlib
from typing import TYPE_CHECKING, Final

from penstock.errors import (
    AlreadyExistsError,
    CheckpointError,
    CommitConflictError,
    CommitUnknownError,
    DataLossError,
    DataLossWarning,
    FormatError,
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    InvalidSqlError,
    LeaseHeldError,
    NotFoundError,
    OptionWarning,
    OtherEngineWarning,
    OutOfMemoryError,
    SchemaMismatchError,
    StorageError,
    TableStoreError,
    TimedOutError,
    UnsupportedFeatureError,
)

__all__ = [
    "AddColumn",
    "AlreadyExistsError",
    "BackgroundCompactor",
    "Catalog",
    "ChangeResult",
    "ChangedFile",
    "CheckpointError",
    "CommitConflictError",
    "CommitKind",
    "CommitUnknownError",
    "CompactionResult",
    "CompactionState",
    "ConsumerReset",
    "Conversion",
    "ConversionPlan",
    "DataField",
    "DataLossError",
    "DataLossWarning",
    "DonePartition",
    "DropColumn",
    "Expiration",
    "ExpiredPartition",
    "Finding",
    "FindingKind",
    "FormatError",
    "FsckReport",
    "HiveFile",
    "InvalidFilterError",
    "InvalidOptionError",
    "InvalidSchemaError",
    "InvalidSqlError",
    "LeaseHeldError",
    "ManifestCompaction",
    "MergeDelete",
    "MergeInsert",
    "MergeUpdate",
    "MergedFiles",
    "MetricsExport",
    "Migration",
    "MissingFile",
    "MissingManifest",
    "MoveColumn",
    "NotFoundError",
    "OptionWarning",
    "OrphanFile",
    "OrphanKind",
    "OrphanReport",
    "OtherEngineWarning",
    "OutOfMemoryError",
    "ParquetExport",
    "PartitionResult",
    "Position",
    "Predicate",
    "ReadAt",
    "Removal",
    "RemoveOption",
    "RenameColumn",
    "RescaledPartition",
    "Retainer",
    "RetainerKind",
    "RollbackPlan",
    "SchemaChange",
    "SchemaMismatchError",
    "SetOption",
    "Snapshot",
    "StorageError",
    "StreamProgress",
    "Table",
    "TableCompaction",
    "TableInspection",
    "TableMaintenance",
    "TableMigration",
    "TablePreview",
    "TableSchema",
    "TableStoreError",
    "TableSummary",
    "TableVersions",
    "TimedOutError",
    "UnsupportedFeatureError",
    "UpdateColumnComment",
    "UpdateColumnDefault",
    "UpdateColumnNullability",
    "UpdateColumnType",
    "UpdateComment",
    "View",
    "WaitingFiles",
    "WriteProgress",
    "after",
    "attach",
    "before",
    "col",
    "convert",
    "export_metrics",
    "export_parquet",
    "last_progress",
    "last_write",
    "register",
    "ship",
    "sql",
]

if TYPE_CHECKING:
    from penstock.api.catalog import Catalog
    from penstock.api.compact_tables import TableCompaction
    from penstock.api.exchange.convert import Conversion, ConversionPlan, convert
    from penstock.api.exchange.export import ParquetExport, export_parquet
    from penstock.api.inspection import TableInspection
    from penstock.api.maintenance import TableMaintenance
    from penstock.api.migrate import Migration, TableMigration
    from penstock.api.monitor.prometheus import MetricsExport, export_metrics
    from penstock.api.preview import TablePreview
    from penstock.api.read_at import ReadAt
    from penstock.api.register import register, ship
    from penstock.api.table import Table
    from penstock.api.versions import TableVersions
    from penstock.catalog.changes import (
        AddColumn,
        DropColumn,
        MoveColumn,
        Position,
        RemoveOption,
        RenameColumn,
        SchemaChange,
        SetOption,
        UpdateColumnComment,
        UpdateColumnDefault,
        UpdateColumnNullability,
        UpdateColumnType,
        UpdateComment,
        after,
        before,
    )
    from penstock.catalog.stored_view import View
    from penstock.dialect.attach import attach
    from penstock.dialect.session import sql
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import CommitKind, Snapshot
    from penstock.format.types.data_types import DataField
    from penstock.predicate.tree import Predicate, col
    from penstock.spark.stream.progress import StreamProgress, last_progress
    from penstock.spark.write.progress import WriteProgress, last_write
    from penstock.table.actions.manifests import ManifestCompaction
    from penstock.table.actions.missing_files import MissingFile
    from penstock.table.actions.missing_manifests import MissingManifest
    from penstock.table.actions.rescale import RescaledPartition
    from penstock.table.compact.background import BackgroundCompactor
    from penstock.table.compact.job import CompactionResult, PartitionResult
    from penstock.table.compact.state import CompactionState, WaitingFiles
    from penstock.table.compact.task import MergedFiles
    from penstock.table.dml.merge import MergeDelete, MergeInsert, MergeUpdate
    from penstock.table.dml.result import ChangedFile, ChangeResult
    from penstock.table.expire.orphan_candidates import OrphanFile, OrphanKind
    from penstock.table.expire.orphans import OrphanReport
    from penstock.table.expire.partitions import ExpiredPartition
    from penstock.table.expire.plan import Retainer, RetainerKind
    from penstock.table.expire.rollback import RollbackPlan
    from penstock.table.expire.snapshots import Expiration
    from penstock.table.inspect.fsck import Finding, FindingKind, FsckReport
    from penstock.table.inspect.summary import TableSummary
    from penstock.table.mark_done.marker import DonePartition
    from penstock.table.stream.consumers import ConsumerReset
    from penstock.table.write.hive_import import HiveFile
    from penstock.table.write.preview import Removal

# Imported on first use: a worker that only unpickles an error, and a command that prints its help, need no Arrow, and
# only SQL needs sqlglot.
_HOMES: Final = {
    "BackgroundCompactor": "penstock.table.compact.background",
    "ConsumerReset": "penstock.table.stream.consumers",
    "HiveFile": "penstock.table.write.hive_import",
    "Removal": "penstock.table.write.preview",
    "Migration": "penstock.api.migrate",
    "TablePreview": "penstock.api.preview",
    "TableSummary": "penstock.table.inspect.summary",
    "AddColumn": "penstock.catalog.changes",
    "Catalog": "penstock.api.catalog",
    "ChangeResult": "penstock.table.dml.result",
    "ChangedFile": "penstock.table.dml.result",
    "CommitKind": "penstock.format.snapshot",
    "CompactionResult": "penstock.table.compact.job",
    "CompactionState": "penstock.table.compact.state",
    "WaitingFiles": "penstock.table.compact.state",
    "Conversion": "penstock.api.exchange.convert",
    "ConversionPlan": "penstock.api.exchange.convert",
    "DataField": "penstock.format.types.data_types",
    "DonePartition": "penstock.table.mark_done.marker",
    "DropColumn": "penstock.catalog.changes",
    "Expiration": "penstock.table.expire.snapshots",
    "ExpiredPartition": "penstock.table.expire.partitions",
    "Finding": "penstock.table.inspect.fsck",
    "FindingKind": "penstock.table.inspect.fsck",
    "FsckReport": "penstock.table.inspect.fsck",
    "ManifestCompaction": "penstock.table.actions.manifests",
    "MergedFiles": "penstock.table.compact.task",
    "MissingFile": "penstock.table.actions.missing_files",
    "MissingManifest": "penstock.table.actions.missing_manifests",
    "MergeDelete": "penstock.table.dml.merge",
    "MergeInsert": "penstock.table.dml.merge",
    "MergeUpdate": "penstock.table.dml.merge",
    "MetricsExport": "penstock.api.monitor.prometheus",
    "MoveColumn": "penstock.catalog.changes",
    "OrphanFile": "penstock.table.expire.orphan_candidates",
    "OrphanKind": "penstock.table.expire.orphan_candidates",
    "OrphanReport": "penstock.table.expire.orphans",
    "ParquetExport": "penstock.api.exchange.export",
    "PartitionResult": "penstock.table.compact.job",
    "Position": "penstock.catalog.changes",
    "Predicate": "penstock.predicate.tree",
    "ReadAt": "penstock.api.read_at",
    "RemoveOption": "penstock.catalog.changes",
    "RenameColumn": "penstock.catalog.changes",
    "RescaledPartition": "penstock.table.actions.rescale",
    "Retainer": "penstock.table.expire.plan",
    "RetainerKind": "penstock.table.expire.plan",
    "RollbackPlan": "penstock.table.expire.rollback",
    "SchemaChange": "penstock.catalog.changes",
    "SetOption": "penstock.catalog.changes",
    "Snapshot": "penstock.format.snapshot",
    "StreamProgress": "penstock.spark.stream.progress",
    "Table": "penstock.api.table",
    "TableCompaction": "penstock.api.compact_tables",
    "TableMigration": "penstock.api.migrate",
    "TableInspection": "penstock.api.inspection",
    "TableMaintenance": "penstock.api.maintenance",
    "TableSchema": "penstock.format.schema",
    "TableVersions": "penstock.api.versions",
    "UpdateColumnComment": "penstock.catalog.changes",
    "UpdateColumnDefault": "penstock.catalog.changes",
    "UpdateColumnNullability": "penstock.catalog.changes",
    "UpdateColumnType": "penstock.catalog.changes",
    "UpdateComment": "penstock.catalog.changes",
    "View": "penstock.catalog.stored_view",
    "WriteProgress": "penstock.spark.write.progress",
    "after": "penstock.catalog.changes",
    "before": "penstock.catalog.changes",
    "attach": "penstock.dialect.attach",
    "col": "penstock.predicate.tree",
    "convert": "penstock.api.exchange.convert",
    "export_metrics": "penstock.api.monitor.prometheus",
    "export_parquet": "penstock.api.exchange.export",
    "last_progress": "penstock.spark.stream.progress",
    "last_write": "penstock.spark.write.progress",
    "register": "penstock.api.register",
    "ship": "penstock.api.register",
    "sql": "penstock.dialect.session",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found: object = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
