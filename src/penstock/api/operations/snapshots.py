"""Operations that limit a table's storage, or repair it: they remove snapshots and files, or what refers to them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from penstock.api.arguments import INTEGER, Progress, no_progress
from penstock.api.handle import Bar, TableHandle
from penstock.api.operations.declaration import Operation
from penstock.api.operations.procedure import Extra, Procedure, ResultRows
from penstock.catalog.checks.features import check_writable
from penstock.clocks import to_millis
from penstock.errors import DamagedFileWarning, warn
from penstock.table.actions.changes import open_committer
from penstock.table.actions.missing_files import (
    MissingFile,
    MissingManifest,
    drop_missing_files,
    drop_missing_manifests,
    find_missing_files,
    find_missing_manifests,
)
from penstock.table.expire.orphans import OrphanReport, remove_orphan_files
from penstock.table.expire.snapshots import Expiration, SnapshotExpirer


def _report_of(progress: Progress, bar: Bar) -> Progress:
    """Return the function of the caller, or that of the bar if there is none."""
    return bar.report if progress is no_progress else progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSnapshots(Operation[TableHandle, Expiration]):
    """Expire old snapshots, and delete the files that only they use.

    Snapshots that a consumer has not read, and files of tags, are retained. Commits expire snapshots automatically,
    unless the option ``write-only`` is set.

    Args:
        retain_max: maximum number of snapshots to retain, whatever their age; by default the option
            ``snapshot.num-retained.max``.
        retain_min: number of newest snapshots to retain, whatever their age; by default the option
            ``snapshot.num-retained.min``.
        older_than: states of the table since this time stay readable; by default now less
            ``snapshot.time-retained``.
        max_deletes: maximum number of snapshots to expire; by default no limit.
        dry_run: only return what would be deleted.
        progress: called with the number of files deleted so far.

    Returns:
        What was deleted, and what retains the rest.

    Raises:
        InvalidOptionError: arguments that contradict each other.
        FormatError: the latest snapshot, a tag, a consumer or what one of them needs cannot be read; nothing that it
            may need was deleted. Of older damaged snapshots a ``DamagedFileWarning`` tells.
        StorageError: not everything could be deleted; repeat the call to continue.
        UnsupportedFeatureError: a table that Penstock only reads.
    """

    retain_max: int | None = None
    retain_min: int | None = None
    older_than: datetime | int | None = None
    max_deletes: int | None = None
    dry_run: bool = False
    progress: Progress = no_progress

    def run(self, table: TableHandle, /) -> Expiration:
        check_writable(table.ref)
        expirer = SnapshotExpirer(table.ref, table.checked_store)
        rules = expirer.rules(
            retain_max=self.retain_max,
            retain_min=self.retain_min,
            older_than=None if self.older_than is None else to_millis(self.older_than),
            max_deletes=self.max_deletes,
        )
        with table.progress("expiring snapshots of", "files") as bar:
            found = expirer.run(rules, dry_run=self.dry_run, progress=_report_of(self.progress, bar))
        name, gone = table.ref.name, found.snapshot_ids
        for snapshot_id in found.unreadable_ids:
            cure = (
                "files that only it used are orphans then: 'penstock remove-orphan-files' finds them"
                if snapshot_id in gone
                else f"'penstock fsck {name}' shows why"
            )
            expired = ", and expires nevertheless" if snapshot_id in gone else ""
            warn(f"table {name}: snapshot {snapshot_id} is damaged{expired}; {cure}", DamagedFileWarning)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOrphanFiles(Operation[TableHandle, OrphanReport]):
    """Find files of failed jobs that nothing uses, and delete them unless ``dry_run``.

    Args:
        older_than: delete files last modified before this time; by default a day ago. It must be further back than any
            job takes from its first file to its commit, since files that are not committed yet look like orphans.
        dry_run: only return them.
        allow_recent: accept an ``older_than`` of less than an hour ago; nothing may write to the table then.
        progress: called with the number of files listed and read so far, then of files deleted.

    Raises:
        InvalidOptionError: ``older_than`` is too recent, or in the future.
        FormatError: metadata is damaged or missing, so it is unknown which files are used; nothing was deleted.
        StorageError: something cannot be listed, read or deleted.
        UnsupportedFeatureError: a table that Penstock only reads.
    """

    older_than: datetime | int | None = None
    dry_run: bool = False
    allow_recent: bool = False
    progress: Progress = no_progress

    def run(self, table: TableHandle, /) -> OrphanReport:
        check_writable(table.ref)
        with table.progress("finding orphan files of", "files") as bar:
            return remove_orphan_files(
                table.ref,
                older_than_millis=None if self.older_than is None else to_millis(self.older_than),
                dry_run=self.dry_run,
                allow_recent=self.allow_recent,
                progress=_report_of(self.progress, bar),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMissingFiles(Operation[TableHandle, tuple[MissingFile, ...]]):
    """Find data files of the latest snapshot that are missing on storage, and remove them unless ``dry_run``.

    Their rows are lost then, and the other rows can be read again. Before that, try to restore the files from a
    snapshot or a backup.

    Args:
        dry_run: only return them.

    Raises:
        StorageError: a directory cannot be listed.
        CommitConflictError: another commit has replaced one of them meanwhile; repeat the call.
    """

    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[MissingFile, ...]:
        check_writable(table.ref)
        missing = find_missing_files(table.ref, table.checked_store)
        if not self.dry_run:
            drop_missing_files(open_committer(table.ref, table.store, adds_rows=False), missing)
        return missing


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMissingManifests(Operation[TableHandle, tuple[MissingManifest, ...]]):
    """Find manifests of the latest snapshot that are missing on storage, and remove them unless ``dry_run``.

    A new snapshot makes the latest state readable again: without the rows of files that only these manifests had added,
    but again with those of files that they had deleted, for example by a compaction. Older snapshots are not changed.
    Before that, try to restore the manifests from a backup.

    Args:
        dry_run: only return them.

    Raises:
        NotFoundError: a manifest list is missing, which only a rollback to an older snapshot can repair.
        CommitConflictError: others committed at every attempt; repeat the call.
    """

    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[MissingManifest, ...]:
        check_writable(table.ref)
        if self.dry_run:
            return find_missing_manifests(table.checked_store)
        return drop_missing_manifests(open_committer(table.ref, table.checked_store, adds_rows=False))


def _expired(table: TableHandle, operation: ExpireSnapshots) -> ResultRows:
    done = operation.run(table)
    return [(len(done.snapshot_ids), done.data_files, done.data_bytes)]


def _orphans(table: TableHandle, operation: RemoveOrphanFiles) -> ResultRows:
    report = operation.run(table)
    return [(table.name, len(report.orphans), report.bytes)]


def _missing_manifests(table: TableHandle, operation: RemoveMissingManifests) -> ResultRows:
    return [(each.path, each.added_files, each.deleted_files) for each in operation.run(table)]


_MODE: Final = Extra(
    "mode",
    only=("local", "distributed"),
    refusal="expects 'local' or 'distributed' for mode; files are deleted from this process",
)

PROCEDURES: Final = (
    Procedure(
        "expire_snapshots", ExpireSnapshots, "table, retain_max, retain_min, older_than, max_deletes, options",
        "expired_snapshots BIGINT, data_files BIGINT, data_bytes BIGINT", _expired
    ),
    Procedure(
        "remove_orphan_files", RemoveOrphanFiles, "table, older_than, dry_run, parallelism, mode",
        "table STRING, orphan_files BIGINT, orphan_bytes BIGINT", _orphans,
        extras=(Extra("parallelism", INTEGER, option="file-operation.thread-num"), _MODE), takes_database=True,
        note="`parallelism` files are deleted at a time, whatever `mode` is"
    ),
    Procedure(
        "remove_unexisting_files", RemoveMissingFiles, "table, dry_run, parallelism",
        "path STRING, lost_rows BIGINT",
        lambda table, operation: [(each.path, each.row_count) for each in operation.run(table)],
        extras=(Extra("parallelism", INTEGER),), takes_database=True,  # directories are listed one after another
        note="their rows are lost"
    ),
    Procedure(
        "remove_unexisting_manifests", RemoveMissingManifests, "table, dry_run",
        "path STRING, added_files BIGINT, deleted_files BIGINT", _missing_manifests, table_aliases=("tableId",),
        note="rows that they added are lost, files that they deleted become live again"
    ),
)  # fmt: skip
