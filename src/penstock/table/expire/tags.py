"""Deletion of tags, by age or on request, with the files that only they read.

Source:
    Paimon ``core:operation/TagDeletion.java``, ``core:tag/TagTimeExpire.java``; docs/spec/commit.md section 7.2.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from penstock.clocks import EPOCH, local_now, to_wall_clock
from penstock.errors import FormatError, NotFoundError, TableStoreError
from penstock.format.layout import tag_name_of
from penstock.format.tag import encode_tag
from penstock.options import RetentionOptions, TagOptions
from penstock.table.bulk_files import delete_files, thread_count
from penstock.table.expire.files import (
    Deletion,
    NamedSnapshot,
    ReaddedFiles,
    data_paths,
    find_metadata,
    is_restored,
    load_branch_readers,
    retain_added,
    retain_read,
    retain_readded,
)
from penstock.table.read.live import load_live_entries
from penstock.table.ref import FileLocator
from penstock.table.tags import TagReader, is_retained, tag_of, write_tag_success_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.format.snapshot import Snapshot
    from penstock.format.tag import Tag
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


def delete_tag(ref: TableRef, store: MetadataStore, name: str) -> Snapshot | None:
    """Delete a tag; if its snapshot has expired, also delete the files that only the tag kept.

    The tag file is deleted first: after an interruption, or if a file cannot be deleted, the other files are orphans.

    Returns:
        The snapshot that the tag named; None if the tag was damaged: then the files that only it kept are orphans.
    """
    snapshot = None
    with suppress(FormatError):
        snapshot = store.load_tag(name).snapshot
    store.file_io.delete(store.layout.tag_path(name))
    if ref.parsed(TagOptions).create_success_file:
        store.file_io.delete(store.layout.tag_success_path(name))
    if snapshot is not None:
        forget_snapshot(ref, store, snapshot)
    return snapshot


def replace_tag(
    ref: TableRef,
    store: MetadataStore,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained: str | None = None,
    now: Callable[[], datetime] = local_now,
) -> Tag:
    """Move a tag to another snapshot; if the former snapshot has expired, its files are deleted.

    The file is replaced in one step, so readers always find a tag.

    Args:
        snapshot_id: None for the latest.
        time_retained: such as ``7 d``; None for the table's option, or forever if it is not set.
    """
    before, options, path = store.load_tag(name), ref.parsed(TagOptions), store.layout.tag_path(name)
    tag = tag_of(store, snapshot_id, time_retained, options, now=now)
    store.file_io.write(path, encode_tag(tag))
    if tag.snapshot.id != before.snapshot.id and not is_retained(store, name, tag.snapshot):
        store.file_io.write(path, encode_tag(before))
        raise NotFoundError(
            f"table {store.name}: snapshot {tag.snapshot.id} is about to expire, its files are being deleted, or was "
            "rolled back: tag a later one"
        )
    write_tag_success_file(store, name, options)
    if tag.snapshot.id != before.snapshot.id:
        forget_snapshot(ref, store, before.snapshot)
    return tag


def forget_snapshot(ref: TableRef, store: MetadataStore, snapshot: Snapshot) -> None:
    """Delete the files of a snapshot that has lost a tag, unless the snapshot or another tag of it still exists.

    Errors are ignored; files that cannot be deleted remain as orphans.
    """
    if ref.file_io.branch_name is not None:  # other branches may read the files
        return
    with suppress(TableStoreError):
        _delete_files(ref, store, snapshot)


def find_expired_tags(tags: Mapping[str, Tag], *, now: Callable[[], datetime] = local_now) -> tuple[str, ...]:
    """Return the names of the tags whose retention time has passed, sorted.

    Args:
        now: wall clock of this machine's zone, taken as if it were UTC, as the tags' own times are.
    """
    now_micros = (now() - EPOCH) // timedelta(microseconds=1)
    return tuple(
        sorted(
            name
            for name, tag in tags.items()
            if tag.create_time is not None
            and tag.retained_seconds is not None
            and tag.create_time / 1000 + float(tag.retained_seconds) * 1_000_000 < now_micros
        )
    )


def expire_tags(
    ref: TableRef,
    store: MetadataStore,
    *,
    older_than_millis: int | None = None,
    dry_run: bool = False,
    tags: Mapping[str, Tag] | None = None,
) -> tuple[str, ...]:
    """Delete the tags whose retention time has passed; return their names, sorted.

    Args:
        older_than_millis: also delete all tags created before this time, ms since 1970-01-01 UTC; a tag without a
            retention time stores no creation time, so its file's modification time is used, as in the reference.
        dry_run: only find them.
        tags: all tags of the table, if they are loaded.
    """
    tags = TagReader(ref.file_io, ref.location).load() if tags is None else tags
    names = set(find_expired_tags(tags))
    if older_than_millis is not None:
        names |= _made_before(ref, tags, older_than_millis)
    for name in () if dry_run else sorted(names):
        with suppress(NotFoundError):  # another process has deleted the tag
            delete_tag(ref, store, name)
    return tuple(sorted(names))


def _made_before(ref: TableRef, tags: Mapping[str, Tag], millis: int) -> set[str]:
    """Return the tags created before a time. Tags whose file has no modification time are not included."""
    files = {tag_name_of(each.name): each.modified_millis for each in ref.file_io.list(ref.layout.tag_directory)}
    wall_clock_nanos = to_wall_clock(millis) * 1_000_000
    found = set()
    for name, tag in tags.items():
        if tag.create_time is not None and tag.retained_seconds is not None:
            is_before = tag.create_time < wall_clock_nanos
        else:
            is_before = 0 < files.get(name, 0) < millis
        if is_before:
            found.add(name)
    return found


def _delete_files(ref: TableRef, store: MetadataStore, gone: Snapshot) -> None:
    tags = TagReader(ref.file_io, ref.location).load()
    if store.find_snapshot(gone.id) is not None or any(tag.snapshot.id == gone.id for tag in tags.values()):
        return
    earliest = store.load_earliest_snapshot()
    if earliest is None or earliest.id < gone.id:
        return  # the snapshot was not deleted by an expiration, so its files are left alone
    neighbours = _neighbours(tags, gone.id, earliest, restored=is_restored(store))
    branches = load_branch_readers(store, up_to=earliest.id)
    readers = [*(NamedSnapshot(name="", snapshot=each) for each in neighbours), *branches.oldest]
    live = load_live_entries(store, gone)
    deletions = {entry.key: Deletion(entry=entry, snapshot_id=gone.id + 1) for entry in live.values()}
    retain_read(ref, store, deletions, readers)
    retain_added(store, deletions, branches.later)
    threads = thread_count(ref.parsed(RetentionOptions).file_operation_threads, ref.file_io)
    latest_id = store.latest_snapshot_id() or earliest.id
    later = ReaddedFiles().find(store, after_id=earliest.id, latest_id=latest_id, threads=threads)
    retain_readded(store, deletions, later.adding)
    retain_read(ref, store, deletions, [NamedSnapshot(name="", snapshot=each) for each in later.after_gaps])
    manifests, lists = find_metadata(store, [gone], [*neighbours, *branches.snapshots, *later.snapshots])
    entries = [deletion.entry for deletion in deletions.values()]
    delete_files(ref.file_io, data_paths(FileLocator.of(ref), entries), threads=threads)
    delete_files(ref.file_io, manifests, threads=threads)
    delete_files(ref.file_io, lists, threads=threads)


def _neighbours(tags: Mapping[str, Tag], gone_id: int, earliest: Snapshot, *, restored: bool) -> list[Snapshot]:
    """Return the nearest readable snapshots before and after ``gone_id``, or all if files may have been restored.

    Else a file is live in consecutive snapshots only, so one that neither of the two reads is read by no other.
    """
    tagged = {tag.snapshot.id: tag.snapshot for tag in tags.values()}
    tagged[earliest.id] = earliest
    ids = sorted(tagged)
    place = bisect_left(ids, gone_id)
    return [tagged[each] for each in (ids if restored else ids[max(0, place - 1) : place + 1])]
