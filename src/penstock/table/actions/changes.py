"""The changes of a table's rows, each one commit: append, overwrite, truncate, drop partitions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError
from penstock.format.snapshot import CommitKind
from penstock.options import CommitOptions, ManifestOptions, WriteOptions
from penstock.table.actions.after_commit import PostCommitHooks
from penstock.table.commit.cleanup import commit_or_discard
from penstock.table.commit.committer import TableCommitter, new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.partition_scope import OverwriteScope, WholeTable, WrittenPartitions, scope_of_specs
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


def open_committer(
    ref: TableRef, store: MetadataStore | None = None, *, adds_rows: bool = True, before: TableCommitter | None = None
) -> TableCommitter:
    """Return a committer with the table's options, which runs maintenance after its commits unless that is turned off.

    Args:
        store: pass one to share its cache.
        adds_rows: False for a job that adds none, which marks no partition done.
        before: the committer of the table's earlier schema, whose sequence numbers and clock are reused.
    """
    committer = TableCommitter(
        ref=ref,
        store=store or MetadataStore(ref),
        options=ref.parsed(CommitOptions),
        manifest_options=ref.parsed(ManifestOptions),
    )
    if before is not None:
        committer = replace(committer, index=before.index, sleep=before.sleep, clock_millis=before.clock_millis)
    return replace(committer, new_hooks=partial(_hooks_of, adds_rows=adds_rows))


def _hooks_of(committer: TableCommitter, *, adds_rows: bool) -> PostCommitHooks | None:
    hooks = PostCommitHooks(committer, adds_rows=adds_rows)
    return hooks if hooks.has_work else None


def commit_append(
    committer: TableCommitter, messages: tuple[CommitMessage, ...], *, commit_user: str | None = None
) -> Snapshot | None:
    """Commit rows to append; None if there are none.

    Args:
        messages: in input order.
        commit_user: None for a fresh one.
    """
    return commit_or_discard(
        committer,
        CommitRequest(
            commit_user=commit_user or _fresh_user(committer),
            kind=CommitKind.APPEND,
            messages=messages,
            commit_empty=committer.options.ignore_empty_commit is False,
        ),
    )


def commit_overwrite(
    committer: TableCommitter,
    messages: tuple[CommitMessage, ...],
    scope: OverwriteScope,
    *,
    commit_user: str | None = None,
) -> Snapshot | None:
    """Commit rows that replace the rows in scope.

    Returns:
        None if the scope is the written partitions and there are none, otherwise a snapshot.
    """
    return commit_or_discard(
        committer,
        CommitRequest(
            commit_user=commit_user or _fresh_user(committer),
            kind=CommitKind.OVERWRITE,
            messages=messages,
            scope=scope,
            commit_empty=not isinstance(scope, WrittenPartitions),
        ),
    )


def overwrite_scope(ref: TableRef, partition: Mapping[str, object] | None) -> OverwriteScope:
    """Return what an overwrite replaces.

    Args:
        partition: the partitions to replace, ``{}`` for the whole table; None to follow the option
            ``dynamic-partition-overwrite``: the partitions that receive rows, or everything.

    Source:
        docs/spec/commit.md section 4.4.
    """
    if partition is not None:
        return scope_of_specs(ref, [partition])
    dynamic = ref.parsed(WriteOptions).dynamic_partition_overwrite
    return WrittenPartitions() if ref.schema.partition_keys and dynamic else WholeTable()


def truncate(committer: TableCommitter) -> Snapshot | None:
    """Remove all rows in a new snapshot; older snapshots keep them until they expire."""
    return commit_overwrite(committer, (), WholeTable())


def drop_partitions(committer: TableCommitter, specs: Sequence[Mapping[str, object]]) -> Snapshot | None:
    """Remove the rows of partitions in a new snapshot."""
    if not specs or any(not spec for spec in specs):
        raise InvalidOptionError(
            f"table {committer.ref.name}: name the partitions to drop, such as {{'dt': '2026-01-01'}}; "
            "truncate removes all rows"
        )
    return commit_overwrite(committer, (), scope_of_specs(committer.ref, specs))


def _fresh_user(committer: TableCommitter) -> str:
    return new_commit_user(committer.options.user_prefix)
