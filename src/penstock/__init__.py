"""Apache Paimon append tables for PySpark, in Python, without JARs."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from penstock.api.lazy import load_module
from penstock.errors import (
    AlreadyExistsError,
    CheckpointError,
    CommitConflictError,
    CommitUnknownError,
    DamagedFileWarning,
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
    "DamagedFileWarning",
    "DataField",
    "DataLossError",
    "DataLossWarning",
    "DonePartition",
    "DropColumn",
    "Expiration",
    "ExpiredPartition",
    "FileIndexRewrite",
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
    "serve",
    "ship",
    "show_progress",
    "sql",
]

if TYPE_CHECKING:
    from penstock.api.catalog import Catalog
    from penstock.api.exchange.convert import Conversion, ConversionPlan, convert
    from penstock.api.exchange.export import ParquetExport, export_parquet
    from penstock.api.handle import show_progress
    from penstock.api.inspection import TableInspection
    from penstock.api.maintenance import TableMaintenance, TableVersions
    from penstock.api.migrate import Migration, TableMigration
    from penstock.api.operations.compaction import TableCompaction
    from penstock.api.preview import TablePreview
    from penstock.api.prometheus import MetricsExport, export_metrics
    from penstock.api.reads import ReadAt
    from penstock.api.register import attach, register, serve, ship
    from penstock.api.table import Table
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
    from penstock.dialect import sql
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import CommitKind, Snapshot
    from penstock.format.types.data_types import DataField
    from penstock.predicate.tree import Predicate, col
    from penstock.spark.stream.progress import StreamProgress, WriteProgress, last_progress, last_write
    from penstock.table.actions.file_indexes import FileIndexRewrite
    from penstock.table.actions.manifests import ManifestCompaction
    from penstock.table.actions.missing_files import MissingFile, MissingManifest
    from penstock.table.actions.rescale import RescaledPartition
    from penstock.table.compact.background import BackgroundCompactor
    from penstock.table.compact.job import CompactionResult, PartitionResult
    from penstock.table.compact.task import CompactionState, MergedFiles, WaitingFiles
    from penstock.table.dml.change import ChangedFile, ChangeResult
    from penstock.table.dml.merge import MergeDelete, MergeInsert, MergeUpdate
    from penstock.table.expire.orphans import OrphanFile, OrphanKind, OrphanReport
    from penstock.table.expire.partitions import ExpiredPartition
    from penstock.table.expire.plan import Retainer, RetainerKind
    from penstock.table.expire.rollback import RollbackPlan
    from penstock.table.expire.snapshots import Expiration
    from penstock.table.inspect.fsck import Finding, FindingKind, FsckReport
    from penstock.table.inspect.summary import TableSummary
    from penstock.table.mark_done.marks import DonePartition
    from penstock.table.stream.consumers import ConsumerReset
    from penstock.table.write.imports import HiveFile
    from penstock.table.write.preview import Removal

# Imported on first use: a worker that only unpickles an error, and a command that prints its help, need no Arrow, and
# only SQL needs sqlglot.
_MODULES: Final = {
    "penstock.api.catalog": ("Catalog",),
    "penstock.api.operations.compaction": ("TableCompaction",),
    "penstock.api.exchange.convert": ("Conversion", "ConversionPlan", "convert"),
    "penstock.api.exchange.export": ("ParquetExport", "export_parquet"),
    "penstock.api.handle": ("show_progress",),
    "penstock.api.inspection": ("TableInspection",),
    "penstock.api.maintenance": ("TableMaintenance", "TableVersions"),
    "penstock.api.migrate": ("Migration", "TableMigration"),
    "penstock.api.preview": ("TablePreview",),
    "penstock.api.prometheus": ("MetricsExport", "export_metrics"),
    "penstock.api.reads": ("ReadAt",),
    "penstock.api.register": ("attach", "register", "serve", "ship"),
    "penstock.api.table": ("Table",),
    "penstock.catalog.changes": (
        "AddColumn",
        "DropColumn",
        "MoveColumn",
        "Position",
        "RemoveOption",
        "RenameColumn",
        "SchemaChange",
        "SetOption",
        "UpdateColumnComment",
        "UpdateColumnDefault",
        "UpdateColumnNullability",
        "UpdateColumnType",
        "UpdateComment",
        "after",
        "before",
    ),
    "penstock.catalog.stored_view": ("View",),
    "penstock.dialect": ("sql",),
    "penstock.format.schema": ("TableSchema",),
    "penstock.format.snapshot": ("CommitKind", "Snapshot"),
    "penstock.format.types.data_types": ("DataField",),
    "penstock.predicate.tree": ("Predicate", "col"),
    "penstock.spark.stream.progress": ("StreamProgress", "WriteProgress", "last_progress", "last_write"),
    "penstock.table.actions.file_indexes": ("FileIndexRewrite",),
    "penstock.table.actions.manifests": ("ManifestCompaction",),
    "penstock.table.actions.missing_files": ("MissingFile", "MissingManifest"),
    "penstock.table.actions.rescale": ("RescaledPartition",),
    "penstock.table.compact.background": ("BackgroundCompactor",),
    "penstock.table.compact.job": ("CompactionResult", "PartitionResult"),
    "penstock.table.compact.task": ("CompactionState", "MergedFiles", "WaitingFiles"),
    "penstock.table.dml.merge": ("MergeDelete", "MergeInsert", "MergeUpdate"),
    "penstock.table.dml.change": ("ChangeResult", "ChangedFile"),
    "penstock.table.expire.orphans": ("OrphanFile", "OrphanKind", "OrphanReport"),
    "penstock.table.expire.partitions": ("ExpiredPartition",),
    "penstock.table.expire.plan": ("Retainer", "RetainerKind"),
    "penstock.table.expire.rollback": ("RollbackPlan",),
    "penstock.table.expire.snapshots": ("Expiration",),
    "penstock.table.inspect.fsck": ("Finding", "FindingKind", "FsckReport"),
    "penstock.table.inspect.summary": ("TableSummary",),
    "penstock.table.mark_done.marks": ("DonePartition",),
    "penstock.table.stream.consumers": ("ConsumerReset",),
    "penstock.table.write.imports": ("HiveFile",),
    "penstock.table.write.preview": ("Removal",),
}
_SPARK: Final = "penstock.spark."


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):
        return False


if not _is_installed("pyspark"):
    # So that ``from penstock import *`` works; each of them raises an error that names what to install.
    for _module in (module for module in _MODULES if module.startswith(_SPARK)):
        for _name in _MODULES[_module]:
            __all__.remove(_name)  # noqa: PYI056 - type checkers shall see all names

_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(load_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
