"""Operations on partitions: expiration, and marks of those that are done."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from penstock.api.handle import TableHandle
from penstock.api.operations.declaration import Operation
from penstock.api.operations.procedure import Extra, Procedure, ResultRows
from penstock.catalog.checks.features import check_writable
from penstock.options import PartitionExpireOptions
from penstock.table.actions.changes import open_committer
from penstock.table.expire.partitions import ExpiredPartition, drop_expired_partitions, find_expired_partitions
from penstock.table.mark_done.marks import DonePartition
from penstock.table.mark_done.trigger import mark_due_partitions, mark_named_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpirePartitions(Operation[TableHandle, tuple[ExpiredPartition, ...]]):
    """Drop the partitions that are older than ``partition.expiration-time``, the oldest first.

    The options ``partition.expiration-strategy``, ``partition.timestamp-pattern`` and ``partition.timestamp-formatter``
    determine the age of a partition; a partition whose values are not a time is kept. At most
    ``partition.expiration-max-num`` are dropped. Rows that are added to them meanwhile are kept.

    Args:
        expiration_time: age such as ``7 d``; by default the option ``partition.expiration-time``.
        dry_run: only return them.

    Raises:
        InvalidOptionError: no expiration time, no partition columns, or a pattern that does not fit them.
        CommitConflictError: others replaced some of the files meanwhile; repeat the call.
    """

    expiration_time: str | None = None
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[ExpiredPartition, ...]:
        check_writable(table.ref)
        overrides = {} if self.expiration_time is None else {"partition.expiration-time": self.expiration_time}
        options = PartitionExpireOptions.parse(table.ref.options, overrides, table=table.name)
        expired = find_expired_partitions(table.ref, table.checked_store, options=options)
        if not self.dry_run:
            committer = open_committer(table.ref, table.store, adds_rows=False)
            drop_expired_partitions(committer, expired, batch_size=options.batch_size)
        return expired


@dataclass(frozen=True, slots=True)
class MarkPartitionsDone(Operation[TableHandle, tuple[DonePartition, ...]]):
    """Mark partitions done by writing the file ``_SUCCESS`` into their directories, for jobs that wait for it.

    A partition that is marked again keeps the time of its first mark. Commits do this automatically if the options
    ``partition.idle-time-to-done`` or ``partition.end-input-to-done`` are set.

    Args:
        partitions: these, also if not due, such as ``dt=2026-01-01``; a spec that omits columns selects all matching
            partitions, a complete one may also select a partition without rows. By default those that are due by the
            options and have not been marked since their last rows.
        dry_run: only return them.

    Returns:
        The partitions with the times of their marks.

    Raises:
        InvalidOptionError: no partition, other columns, or values that do not fit; or with None, options that do not
            define when a partition is done.
        NotFoundError: no partition matches.
        UnsupportedFeatureError: ``partition.mark-done-action`` is not ``success-file``, or the table is read-only for
            Penstock.
    """

    partitions: Sequence[Mapping[str, object]] | None = None
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[DonePartition, ...]:
        check_writable(table.ref)
        if self.partitions is None:
            return mark_due_partitions(table.ref, table.checked_store, dry_run=self.dry_run)
        return mark_named_partitions(table.ref, table.checked_store, self.partitions, dry_run=self.dry_run)


def _directories(table: TableHandle, operation: ExpirePartitions | MarkPartitionsDone) -> ResultRows:
    return [(each.directory,) for each in operation.run(table)]


_OPTIONS: Final = (
    Extra("timestamp_formatter", option="partition.timestamp-formatter"),
    Extra("timestamp_pattern", option="partition.timestamp-pattern"),
    Extra("expire_strategy", option="partition.expiration-strategy"),
    Extra("max_expires", option="partition.expiration-max-num"),
)
PROCEDURES: Final = (
    Procedure(
        "mark_partition_done", MarkPartitionsDone, "table, partitions", "partition STRING", _directories,
        needed="partitions"
    ),
    Procedure(
        "expire_partitions", ExpirePartitions,
        "table, expiration_time, timestamp_formatter, timestamp_pattern, expire_strategy, max_expires, options",
        "expired_partitions STRING", _directories, extras=_OPTIONS
    ),
)  # fmt: skip
