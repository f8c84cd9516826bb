"""Restoring an older state in a new snapshot, which keeps the snapshots in between.

Source:
    Paimon ``flink:procedure/RollbackToAsLatestProcedure.java``, ``core:operation/FileStoreCommitImpl.java``.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import CommitConflictError, FormatError, InvalidOptionError, StorageError
from penstock.format.manifest.index_manifest import NewVector
from penstock.format.snapshot import RESTORES, CommitKind
from penstock.format.tag import Tag
from penstock.options import TagOptions
from penstock.table.actions.manifests import merge_everything
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.vectors import VectorFrames
from penstock.table.expire.files import note_restored
from penstock.table.expire.tags import delete_tag
from penstock.table.message import CommitMessage
from penstock.table.read.batches import DeletedRows
from penstock.table.read.live import load_live_entries
from penstock.table.read.scan import check_index_files, load_vector_places
from penstock.table.tags import put_tag, tag_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.format.manifest.entry import FileIdentity, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_TRIES = 5
_PREFIX = "rollback-to-as-latest-"


def restore_snapshot(
    committer: TableCommitter, *, snapshot_id: int | None = None, tag: str | None = None
) -> Snapshot | None:
    """Commit the files of an older snapshot, and no others, with their deletion vectors as a new OVERWRITE snapshot.

    An older snapshot without a tag gets one, ``rollback-to-as-latest-<id>-<uuid>``, as in the reference: its files are
    live again, and expirations of other engines would delete them with the snapshots between.

    Returns:
        The new snapshot; None if the latest snapshot has exactly these files and vectors.
    """
    ref, store = committer.ref, committer.store
    # Readers of the reference first collect the names of all DELETE entries, and then skip the ADD entries of those
    # files: no DELETE entry of a file that comes back may stay in the base manifests.
    committer.manifest_options = merge_everything(committer.manifest_options)
    if (snapshot_id is None) == (tag is None):
        raise InvalidOptionError(f"table {ref.name}: name either a snapshot id or a tag to go back to")
    _check_latest_schema(store)
    options = TagOptions()
    own = tag_of(store, snapshot_id, None, options) if tag is None else Tag(snapshot=store.load_tag(tag).snapshot)
    # Also for the time of the commit, as others may delete the given tag, and with it the files.
    made = f"{_PREFIX}{own.snapshot.id}-{uuid.uuid4()}"
    put_tag(store, made, own, options)
    try:
        restored = _restore(committer, own.snapshot)
    except BaseException:
        if not committer.may_be_committed:
            delete_tag(ref, store, made)
        raise
    if restored is None or tag is not None:
        with suppress(StorageError):
            delete_tag(ref, store, made)
    return restored


def _check_latest_schema(store: MetadataStore) -> None:
    """Raise if the newest schema, which the new snapshot would name, is damaged."""
    schema_id = store.latest_schema_id()
    try:
        store.load_schema(schema_id)
    except FormatError as error:
        latest = store.load_latest_snapshot()
        if latest is not None and schema_id > latest.schema_id:
            cure = (
                f"'penstock rollback {store.name} --snapshot-id {latest.id}' deletes it, and no snapshot; then repeat "
                "this"
            )
        else:
            cure = "without a copy of it, roll back without as-latest to a snapshot with an older schema"
        raise FormatError(f"{error}; a new snapshot would need schema-{schema_id}: {cure}") from error


def _restore(committer: TableCommitter, target: Snapshot) -> Snapshot | None:
    store = committer.store
    check_index_files(store, target)
    wanted = load_live_entries(store, target)
    for number in range(_TRIES):
        base = store.load_latest_snapshot()
        check_index_files(store, base)
        live = {} if base is None else load_live_entries(store, base)
        messages = (*_messages(live, wanted), *_vector_messages(committer.ref, store, base, target, wanted.values()))
        if not messages:
            return None
        note_restored(store)
        try:
            return committer.commit(
                CommitRequest(
                    commit_user=new_commit_user(committer.options.user_prefix),
                    kind=CommitKind.OVERWRITE,
                    messages=messages,
                    has_read=True,
                    read=base,
                    restores=True,
                    properties=((RESTORES, str(target.id)),),
                )
            )
        except CommitConflictError:
            if number == _TRIES - 1:
                raise
    return None


def _vector_messages(
    ref: TableRef, store: MetadataStore, base: Snapshot | None, target: Snapshot, wanted: Iterable[ManifestEntry]
) -> Iterator[CommitMessage]:
    """Yield messages that give the wanted files the deletion vectors that they had, or none."""
    now, then = ({} if each is None else load_vector_places(store, each) for each in (base, target))
    frames, deleted = VectorFrames(ref), DeletedRows(ref)
    for entry in wanted:
        place = then.get(entry.key)
        if not frames.are_same(place, now.get(entry.key)):
            framed, count = (b"", 0) if place is None else (frames.read(place), deleted.count_of(place))
            yield CommitMessage(
                partition=entry.partition,
                bucket=entry.bucket,
                total_buckets=entry.total_buckets,
                new_vectors=(NewVector(data_file=entry.file.file_name, framed=framed, row_count=count),),
            )


def _messages(
    live: Mapping[FileIdentity, ManifestEntry], wanted: Mapping[FileIdentity, ManifestEntry]
) -> tuple[CommitMessage, ...]:
    """Return messages that replace the live files by the wanted ones; files in both sets are not touched."""
    groups: dict[tuple[bytes, int, int], tuple[list[ManifestEntry], list[ManifestEntry]]] = defaultdict(
        lambda: ([], [])
    )
    for place, entries, others in ((0, live, wanted), (1, wanted, live)):
        for identity, entry in entries.items():
            if identity not in others:
                groups[entry.partition, entry.bucket, entry.total_buckets][place].append(entry)
    return tuple(
        CommitMessage(
            partition=partition,
            bucket=bucket,
            total_buckets=total,
            compact_before=tuple(entry.file for entry in gone),
            compact_after=tuple(entry.file for entry in back),
        )
        for (partition, bucket, total), (gone, back) in groups.items()
    )
