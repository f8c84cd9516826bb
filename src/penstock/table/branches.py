"""Branches of a table: creation, renaming, fast-forward and deletion.

A branch has its own schemas, snapshots, tags and consumers, and shares manifests and data files with the table. So
creating one copies only small files, and nothing that a branch reads may be deleted: expiration and orphan removal of
the main branch check all branches, and no operation on a branch deletes data files.

Source:
    Paimon ``core:utils/FileSystemBranchManager.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import uuid4

from penstock.clocks import utc_millis
from penstock.errors import (
    AlreadyExistsError,
    CommitConflictError,
    FormatError,
    InvalidOptionError,
    NotFoundError,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.format.layout import MAIN_BRANCH, TableLayout
from penstock.format.snapshot import encode_hint, encode_snapshot
from penstock.format.tag import decode_tag
from penstock.format.text.json import decode_json, encode_json
from penstock.table.assumptions import check_other_engines, check_schema_exists
from penstock.table.commit.expiring import is_announced
from penstock.table.commit.retry import note_change
from penstock.table.commit.reused_ids import is_there
from penstock.table.process import decode_process, encode_process, is_surely_dead, this_process
from penstock.table.read.branch import at_branch, check_branch_name, has_branch, no_branch
from penstock.table.read.query import KEY as FALLBACK
from penstock.table.read.query import fallback_of
from penstock.table.store import MetadataStore
from penstock.table.times import load_storage_millis

# A creation takes seconds.
_CREATION_MS: Final = 600_000

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


def create_branch(ref: TableRef, branch: str, *, tag: str | None = None, snapshot_id: int | None = None) -> None:
    """Create a branch from a tag, from a snapshot, or without rows; what an interrupted creation has left is replaced.

    The first schema file is written last, since without it there is no branch. If the creation fails, its files are
    deleted; those of a killed process are replaced by the next ``create_branch`` and deleted by ``delete_branch``.
    """
    layout, file_io = _branch_to_change(ref, branch), ref.file_io
    if tag is not None and snapshot_id is not None:
        raise InvalidOptionError(f"table {ref.name}: a branch begins with a tag or with a snapshot, not with both")
    _clear_name(ref, branch)
    snapshot, files = _load_beginning(ref, layout, tag=tag, snapshot_id=snapshot_id)
    first_schema = files.pop(layout.schema_path(0))
    creation = _Creation(
        ref=ref, branch=branch, claim=encode_json({"id": uuid4().hex, **encode_process(this_process())})
    )
    creation.begin()
    try:
        for path, data in files.items():
            creation.check()
            file_io.write(path, data)
        if snapshot is not None:
            _check_protected(ref, snapshot, tag)
        creation.check()
        if not file_io.put_if_absent(layout.schema_path(0), first_schema):
            creation.fail()
        creation.check()
    except BaseException:
        creation.undo()
        raise
    with suppress(TableStoreError):  # nobody reads the claim of a branch that exists
        file_io.delete(creation.path)


def delete_branch(ref: TableRef, branch: str, *, dry_run: bool = False) -> None:
    """Delete a branch, or what an interrupted creation or deletion has left; files that only it uses become orphans.

    Args:
        dry_run: only check that it may be deleted.
    """
    root = _branch_to_change(ref, branch).location
    _check_main(ref, branch)
    if has_branch(ref.file_io, ref.location, branch):
        _check_no_fallback(ref, branch, "deleted")
    elif not ref.file_io.exists(root):
        raise no_branch(ref, branch)
    if not dry_run:
        _delete_files(ref, branch)


def rename_branch(ref: TableRef, branch: str, new_name: str) -> None:
    """Rename a branch; nothing may write to it meanwhile."""
    at_branch(ref, branch)
    _check_main(ref, branch)
    _check_no_fallback(ref, branch, "renamed")
    new_root = _branch_to_change(ref, new_name).location
    _clear_name(ref, new_name)
    if not ref.file_io.rename_dir(ref.layout.branch(branch).location, new_root):
        raise _taken(ref, new_name)


def fast_forward(ref: TableRef, branch: str) -> int:
    """Add to the main branch the snapshots, schemas and tags that a branch has added since its creation.

    Snapshots are copied one after another, each only if its id is free, so a concurrent commit ends the operation.

    Returns:
        The number of snapshots added to the main branch.
    """
    theirs = at_branch(ref, branch)
    _check_main(ref, branch)
    store, other = MetadataStore(ref), MetadataStore(theirs)
    latest = store.load_latest_snapshot()
    check_other_engines(ref, latest)
    ids = other.list_snapshot_ids()
    if latest is not None and ids and (ids[0] > latest.id or latest.id not in ids):
        raise _diverged(ref, branch, ids[0])
    if latest is not None and latest.id in ids and other.load_snapshot(latest.id) != latest:
        raise _diverged(ref, branch, ids[0])
    check_schema_exists(store, latest, store.list_schema_ids())
    check_schema_exists(other, other.load_latest_snapshot(), other.list_schema_ids())
    new_ids = [each for each in ids if latest is None or each > latest.id]
    with _repeatable(ref, branch):
        for schema_id in other.list_schema_ids():
            _take_over(ref, theirs, ref.layout.schema_path(schema_id), branch)
        for snapshot_id in new_ids:
            path = ref.layout.snapshot_path(snapshot_id)
            _take_over(ref, theirs, path, branch)
            if snapshot_id == new_ids[0] and latest is not None and not is_there(store, latest):
                # The id was used by a commit that has expired since, or the main branch was rolled back.
                ref.file_io.delete(path)
                raise _diverged(ref, branch, ids[0])
        for tag in other.list_tags():
            ref.file_io.put_if_absent(ref.layout.tag_path(tag), theirs.file_io.read(ref.layout.tag_path(tag)))
        if new_ids:
            ref.file_io.write(ref.layout.latest_hint_path, encode_hint(new_ids[-1]))
    note_change(ref.location)
    return len(new_ids)


def check_not_on_branch(file_io: FileIO, table: str, what: str) -> None:
    """Raise ``UnsupportedFeatureError`` if the storage is that of a branch, whose files the main branch may read."""
    branch = file_io.branch_name
    if branch is not None:
        raise UnsupportedFeatureError(
            f"table {table}: {what} of a branch could delete files that other branches read; delete the branch "
            f"'{branch}' when it is done with, then remove orphan files of the table"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Creation:
    """The creation of a branch under a name that is free.

    Attributes:
        claim: content of a file that is there while the branch is created, unique.
    """

    ref: TableRef
    branch: str
    claim: bytes

    @property
    def path(self) -> str:
        return self.ref.layout.branch(self.branch).branch_claim_path

    def begin(self) -> None:
        """Claim the name. Raises ``AlreadyExistsError`` if another process has done so, or has created the branch."""
        file_io = self.ref.file_io
        try:
            if not file_io.put_if_absent(self.path, self.claim):
                self.fail()
            _check_free(self.ref, self.branch)  # a creation may have ended before the claim
        except BaseException:
            with suppress(TableStoreError):
                if self._load() == self.claim:
                    file_io.delete(self.path)
            raise

    def check(self) -> None:
        """Raise ``AlreadyExistsError`` if another process has deleted or replaced the branch."""
        if self._load() != self.claim:
            self.fail()

    def fail(self) -> NoReturn:
        raise AlreadyExistsError(
            f"table {self.ref.name}: another process creates or deletes branch '{self.branch}' at the same time, so "
            "this call has created none: look at the table's branches, and repeat it if there is none"
        )

    def undo(self) -> None:
        """Delete the files, unless they are those of another process; errors of the storage are ignored."""
        with suppress(TableStoreError):
            if self._load() in {None, self.claim}:
                _delete_files(self.ref, self.branch)

    def _load(self) -> bytes | None:
        try:
            return self.ref.file_io.read(self.path)
        except NotFoundError:
            return None


def _branch_to_change(ref: TableRef, branch: str) -> TableLayout:
    """Return the layout of a branch to create or delete; raise if the name is invalid or a server has the table."""
    check_branch_name(ref.name, branch)
    if ref.file_io.main.snapshot_commit.server is not None:
        raise UnsupportedFeatureError(
            f"table {ref.name}: only the table's REST catalog changes its branches: create and change them with Paimon"
        )
    return ref.layout.branch(branch)


def _clear_name(ref: TableRef, branch: str) -> None:
    """Delete what an interrupted creation or deletion of a branch has left."""
    file_io, layout = ref.file_io, ref.layout.branch(branch)
    root, claim = layout.location, layout.branch_claim_path
    _check_free(ref, branch)
    statuses = file_io.list(root)
    if not statuses:
        return
    for status in statuses:
        if f"{root}/{status.name}" == claim:
            _check_abandoned(ref, branch, claim, status.modified_millis)
    # A creation reads its claim after its last write. So either it finds that the claim is gone, or its branch is found
    # here.
    file_io.delete(claim)
    _check_free(ref, branch)
    file_io.delete(root, recursive=True)


def _check_abandoned(ref: TableRef, branch: str, claim: str, modified_millis: int) -> None:
    """Raise ``AlreadyExistsError`` if the creation of a branch may still be running."""
    try:
        creator = decode_process(decode_json(ref.file_io.read(claim), "claim of a branch", claim))
    except (NotFoundError, FormatError):
        return
    if is_surely_dead(creator):
        return
    now_millis = load_storage_millis(ref.file_io, ref.location) or utc_millis()
    if now_millis - modified_millis < _CREATION_MS:
        raise AlreadyExistsError(
            f"table {ref.name}: branch '{branch}' is being created by {creator}, or was when that was killed; if that "
            "has ended, delete the branch, which removes what is there of it, and repeat this call"
        )


def _delete_files(ref: TableRef, branch: str) -> None:
    """Delete the files of a branch; after the first of them it does not exist any more."""
    layout = ref.layout.branch(branch)
    ref.file_io.delete(layout.schema_path(0))
    ref.file_io.delete(layout.location, recursive=True)


def _load_beginning(
    ref: TableRef, layout: TableLayout, *, tag: str | None, snapshot_id: int | None
) -> tuple[Snapshot | None, dict[str, bytes]]:
    """Return the snapshot that a branch begins with, and the content of its files by their paths in the branch."""
    file_io, store = ref.file_io, MetadataStore(ref)
    files = {layout.branch_identity_path: uuid4().hex.encode()}
    snapshot = None
    if tag is not None:
        store.load_tag(tag)  # its error lists the tags
        path = ref.layout.tag_path(tag)
        data = files[layout.tag_path(tag)] = file_io.read(path)
        snapshot = decode_tag(data, path).snapshot
    elif snapshot_id is not None:
        snapshot = store.load_snapshot(snapshot_id)
    if snapshot is not None:
        files[layout.snapshot_path(snapshot.id)] = encode_snapshot(snapshot)
        files[layout.latest_hint_path] = encode_hint(snapshot.id)
    last_schema = store.latest_schema_id() if snapshot is None else snapshot.schema_id
    for schema_id in [each for each in store.list_schema_ids() if each <= last_schema]:
        files[layout.schema_path(schema_id)] = file_io.read(ref.layout.schema_path(schema_id))
    return snapshot, files


def _check_protected(ref: TableRef, snapshot: Snapshot, tag: str | None) -> None:
    """Raise ``NotFoundError`` if files of a new branch's snapshot may be deleted already.

    Called when the branch has the snapshot: expirations that are announced later, and deletions of the tag, find it.
    """
    store = MetadataStore(ref)
    with suppress(NotFoundError):
        if tag is not None and store.load_tag(tag).snapshot == snapshot:
            return
    if is_announced(store, snapshot.id) or not is_there(store, snapshot):
        raise NotFoundError(
            f"table {ref.name}: snapshot {snapshot.id} is about to expire, its files are being deleted; no branch was "
            "created: create it from a later snapshot or a tag"
        )


@contextmanager
def _repeatable(ref: TableRef, branch: str) -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise StorageError(
            f"table {ref.name}: the storage failed ({error}), and the main branch may have only some of the schemas, "
            f"snapshots and tags of branch '{branch}': repeat the fast-forward, which adds the others",
            error.retryable,
        ) from error


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


def _check_main(ref: TableRef, branch: str) -> None:
    """Refuse the main branch as the branch to change, and a handle of another one."""
    if branch == MAIN_BRANCH or ref.file_io.branch_name is not None:
        raise InvalidOptionError(f"table {ref.name}: do that with the table itself, and with another branch than main")


def _check_free(ref: TableRef, branch: str) -> None:
    if has_branch(ref.file_io, ref.location, branch):
        raise _taken(ref, branch)


def _taken(ref: TableRef, branch: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"table {ref.name} has a branch '{branch}' already; delete it, or choose another name")
