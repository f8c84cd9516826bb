"""Branches of a table: creation, renaming, fast-forward and deletion.

A branch has its own schemas, snapshots, tags and consumers, and shares manifests and data files with the table. So
creating one copies only small files, and nothing that a branch reads may be deleted: expiration and orphan removal of
the main branch check all branches, and no operation on a branch deletes data files.

Source:
    Paimon ``core:utils/FileSystemBranchManager.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidOptionError,
    NotFoundError,
    UnsupportedFeatureError,
)
from penstock.format.hint import encode_hint
from penstock.format.layout import (
    MAIN_BRANCH,
    branch_path,
    latest_hint_path,
    schema_path,
    snapshot_path,
    tag_path,
)
from penstock.format.snapshot_json import encode_snapshot
from penstock.table.commit.announced import is_expiring
from penstock.table.commit.put import is_there
from penstock.table.other_engines import check_other_engines
from penstock.table.read.branch import at_branch, check_branch_name, load_branches
from penstock.table.read.fallback import KEY as FALLBACK
from penstock.table.read.fallback import fallback_of
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


def create_branch(ref: TableRef, branch: str, *, tag: str | None = None, snapshot_id: int | None = None) -> None:
    """Create a branch from a tag, from a snapshot, or without rows.

    Raises:
        AlreadyExistsError: there is such a branch.
        NotFoundError: there is no such tag or snapshot, or it is about to expire.
        InvalidOptionError: both a tag and a snapshot are given, or the name is invalid.
    """
    check_branch_name(ref.name, branch)
    if tag is not None and snapshot_id is not None:
        raise InvalidOptionError(f"table {ref.name}: a branch begins with a tag or with a snapshot, not with both")
    if any(each.name == branch for each in load_branches(ref)):
        raise AlreadyExistsError(f"table {ref.name} has a branch '{branch}' already; delete it, or choose another name")
    store = MetadataStore(ref)
    snapshot = None
    if tag is not None:
        snapshot = store.load_tag(tag).snapshot
    elif snapshot_id is not None:
        snapshot = store.load_snapshot(snapshot_id)
    root, file_io = branch_path(ref.location, branch), ref.file_io
    last_schema = store.latest_schema_id() if snapshot is None else snapshot.schema_id
    if tag is not None:
        file_io.write(tag_path(root, tag), file_io.read(tag_path(ref.location, tag)))
    if snapshot is not None:
        path = snapshot_path(root, snapshot.id)
        file_io.write(path, encode_snapshot(snapshot))
        file_io.write(latest_hint_path(root), encode_hint(snapshot.id))
        # From here on, expirations of the main branch see the snapshot; one that began earlier may delete its files.
        if is_expiring(store, snapshot.id) and (tag is None or not file_io.exists(tag_path(ref.location, tag))):
            file_io.delete(root, recursive=True)
            raise NotFoundError(
                f"table {ref.name}: snapshot {snapshot.id} is about to expire, its files are being deleted; no branch "
                "was created: create it from a later snapshot or a tag"
            )
    # The schemas are written last: without one there is no branch.
    for schema_id in [each for each in store.list_schema_ids() if each <= last_schema][::-1]:
        file_io.write(schema_path(root, schema_id), file_io.read(schema_path(ref.location, schema_id)))


def delete_branch(ref: TableRef, branch: str) -> None:
    """Delete a branch; files that only it uses become orphans.

    Raises:
        NotFoundError: there is no such branch.
        InvalidOptionError: reads of the table use it as their fallback branch.
    """
    at_branch(ref, branch)
    _check_other(ref, branch)
    _check_no_fallback(ref, branch, "deleted")
    ref.file_io.delete(branch_path(ref.location, branch), recursive=True)


def rename_branch(ref: TableRef, branch: str, new_name: str) -> None:
    """Rename a branch; nothing may write to it meanwhile.

    Raises:
        NotFoundError: there is no such branch.
        AlreadyExistsError: the new name is taken.
        InvalidOptionError: reads of the table use it as their fallback branch; Paimon renames it, and then reads only
            the other partitions.
    """
    at_branch(ref, branch)
    _check_other(ref, branch)
    _check_no_fallback(ref, branch, "renamed")
    check_branch_name(ref.name, new_name)
    if any(each.name == new_name for each in load_branches(ref)):
        raise AlreadyExistsError(f"table {ref.name} has a branch '{new_name}' already")
    if not ref.file_io.rename_dir(branch_path(ref.location, branch), branch_path(ref.location, new_name)):
        raise AlreadyExistsError(f"table {ref.name} has a branch '{new_name}' already")


def fast_forward(ref: TableRef, branch: str) -> int:
    """Add to the main branch the snapshots, schemas and tags that a branch has added since its creation.

    Snapshots are copied one after another, each only if its id is free, so a concurrent commit ends the operation.

    Returns:
        The number of snapshots added to the main branch.

    Raises:
        NotFoundError: there is no such branch.
        CommitConflictError: the main branch has received snapshots since the branch was created.
        UnsupportedFeatureError: on an object store, another engine created the latest snapshot.
    """
    theirs = at_branch(ref, branch)
    _check_other(ref, branch)
    store, other = MetadataStore(ref), MetadataStore(theirs)
    latest = store.load_latest_snapshot()
    check_other_engines(ref, latest)
    ids = other.list_snapshot_ids()
    if latest is not None and ids and (ids[0] > latest.id or latest.id not in ids):
        raise _diverged(ref, branch, ids[0])
    if latest is not None and latest.id in ids and other.load_snapshot(latest.id) != latest:
        raise _diverged(ref, branch, ids[0])
    for schema_id in other.list_schema_ids():
        _take_over(ref, theirs, schema_path(ref.location, schema_id), branch)
    new_ids = [each for each in ids if latest is None or each > latest.id]
    for snapshot_id in new_ids:
        path = snapshot_path(ref.location, snapshot_id)
        _take_over(ref, theirs, path, branch)
        if snapshot_id == new_ids[0] and latest is not None and not is_there(store, latest):
            # The id was used by a commit that has expired since, or the main branch was rolled back.
            ref.file_io.delete(path)
            raise _diverged(ref, branch, ids[0])
    for tag in other.list_tags():
        ref.file_io.put_if_absent(tag_path(ref.location, tag), theirs.file_io.read(tag_path(ref.location, tag)))
    if new_ids:
        ref.file_io.write(latest_hint_path(ref.location), encode_hint(new_ids[-1]))
    return len(new_ids)


def refuse_on_branch(file_io: FileIO, table: str, what: str) -> None:
    """Raise ``UnsupportedFeatureError`` if the storage is that of a branch, whose files the main branch may read."""
    branch = file_io.branch_name
    if branch is not None:
        raise UnsupportedFeatureError(
            f"table {table}: {what} of a branch could delete files that other branches read; delete the branch "
            f"'{branch}' when it is done with, then remove orphan files of the table"
        )


def _take_over(ref: TableRef, theirs: TableRef, path: str, branch: str) -> None:
    data = theirs.file_io.read(path)
    if not ref.file_io.put_if_absent(path, data) and ref.file_io.read(path) != data:
        raise CommitConflictError(
            f"table {ref.name}: {path.rpartition('/')[2]} of the main branch differs from that of branch "
            f"'{branch}': both have changed; what was taken over before remains"
        )


def _diverged(ref: TableRef, branch: str, first: int) -> CommitConflictError:
    return CommitConflictError(
        f"table {ref.name}: the main branch has commits that branch '{branch}', which begins with snapshot {first}, "
        f"does not have; nothing was changed: roll the main branch back first, if they may be lost"
    )


def _check_no_fallback(ref: TableRef, branch: str, what: str) -> None:
    stored = MetadataStore(ref).load_latest_schema().option_map
    if branch in {fallback_of(stored), fallback_of(ref.options)}:
        raise InvalidOptionError(
            f"table {ref.name}: branch '{branch}' cannot be {what}, because reads of the table use it by "
            f"'{FALLBACK}': remove that option first, with ALTER TABLE ... RESET ('{FALLBACK}')"
        )


def _check_other(ref: TableRef, branch: str) -> None:
    if branch == MAIN_BRANCH or ref.file_io.branch_name is not None:
        raise InvalidOptionError(f"table {ref.name}: do that with the table itself, and with another branch than main")
