"""Merging of all manifests of a table on request, by a commit that changes no rows.

Source:
    Paimon ``core:operation/FileStoreCommitImpl.java`` (``compactManifest``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.format.snapshot import CommitKind
from penstock.printable import Result
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.manifests import PartitionOrder, merge_manifests
from penstock.table.read.live import pruner_of_partitions

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.options import ManifestOptions
    from penstock.table.commit.committer import TableCommitter


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ManifestCompaction(Result):
    """The result of a manifest compaction, or of its dry run.

    Attributes:
        manifests_before: number of manifests of the previous snapshot.
        rewritten: number of those that are rewritten.
        manifests_after: None in a dry run.
        snapshot: the new snapshot; None if there was nothing to merge, and in a dry run.
    """

    manifests_before: int
    rewritten: int
    manifests_after: int | None
    snapshot: Snapshot | None


def compact_manifests(committer: TableCommitter, *, dry_run: bool = False) -> ManifestCompaction:
    """Merge the manifests that are small or contain entries of deleted files, whatever their number."""
    store = committer.store
    committer.manifest_options = merge_everything(committer.manifest_options)
    base = store.load_latest_snapshot()
    manifests = store.load_manifests(base) if base is not None else ()
    if dry_run:
        merges = merge_manifests(
            manifests,
            committer.manifest_options,
            lambda meta: store.load_manifest(meta.file_name, meta.file_size),
            lambda _entries: (),
            find_holders=lambda partitions: pruner_of_partitions(committer.ref.schema, partitions).may_hold,
            order=PartitionOrder.of(committer.ref.schema, committer.manifest_options),
        )
        rewritten = sum(len(part.inputs) for merge in merges for part in merge.parts)
        return ManifestCompaction(
            manifests_before=len(manifests), rewritten=rewritten, manifests_after=None, snapshot=None
        )
    snapshot = None
    if manifests:
        snapshot = committer.commit(
            CommitRequest(
                commit_user=new_commit_user(committer.options.user_prefix),
                kind=CommitKind.COMPACT,
                merges_manifests=True,
            )
        )
    after = store.load_manifests(snapshot) if snapshot is not None else manifests
    return ManifestCompaction(
        manifests_before=len(manifests),
        rewritten=len({meta.file_name for meta in manifests} - {meta.file_name for meta in after}),
        manifests_after=len(after),
        snapshot=snapshot,
    )


def merge_everything(options: ManifestOptions) -> ManifestOptions:
    """Return the options with thresholds that are always reached, also if entries only have to be sorted."""
    return replace(options, manifest_full_compaction_threshold_bytes=0, manifest_merge_min_count=1)
