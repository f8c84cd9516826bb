"""Branches of a table: each has its own snapshots and tags, and shares manifests and data files with the table.

Source:
    Paimon ``core:utils/FileSystemBranchManager.java``; docs/spec/format.md section 1, docs/spec/commit.md section 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import NotFoundError
from penstock.format.layout import (
    branch_name_of,
    branch_path,
    branches_directory,
    snapshot_directory,
    snapshot_id_of,
    snapshot_path,
    tag_directory,
    tag_name_of,
)
from penstock.format.snapshot_json import decode_snapshot
from penstock.format.tag import decode_tag
from penstock.table.expire.files import NamedSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import Directories, FileIO
    from penstock.table.store import MetadataStore


def list_branches(directories: Directories, location: str) -> tuple[str, ...]:
    """Return the names of all branches except the main one, sorted."""
    names = (branch_name_of(status.name) for status in directories.list(branches_directory(location)) if status.is_dir)
    return tuple(sorted(name for name in names if name is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReaders:
    """Snapshots of branches that may read files that the main branch does not read any more.

    Attributes:
        names: of all branches except the main one, sorted.
        oldest: the earliest snapshot and the tagged ones of each branch.
        later: further snapshots, ascending in each branch, which may add files to those.
    """

    names: tuple[str, ...]
    oldest: tuple[NamedSnapshot, ...]
    later: tuple[NamedSnapshot, ...]

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots of ``oldest`` and ``later``."""
        return tuple(each.snapshot for each in (*self.oldest, *self.later))


def load_branch_readers(store: MetadataStore, *, up_to: int) -> BranchReaders:
    """Load the snapshots of branches that may read files of main snapshots with ids up to ``up_to``.

    A branch shares the files that it started with. After the main branch was fast-forwarded to a branch, it also shares
    the files that the branch added; these snapshots have the same ids in both.

    Raises:
        FormatError: a snapshot or tag is damaged.
    """
    oldest: list[NamedSnapshot] = []
    later: list[NamedSnapshot] = []
    names = list_branches(store.file_io, store.location)
    for name in names:
        root = branch_path(store.location, name)
        snapshots = [NamedSnapshot(name=name, snapshot=each) for each in _snapshots(store.file_io, root, up_to)]
        oldest += snapshots[:1]
        later += snapshots[1:]
        oldest += (NamedSnapshot(name=name, snapshot=each) for each in _tagged(store.file_io, root))
    return BranchReaders(names=names, oldest=tuple(oldest), later=tuple(later))


def _snapshots(file_io: FileIO, root: str, up_to: int) -> Iterator[Snapshot]:
    """Yield the earliest snapshot, whatever its id, and the others with ids up to ``up_to``, ascending."""
    is_first = True
    ids = (snapshot_id_of(status.name) for status in file_io.list(snapshot_directory(root)))
    for snapshot_id in sorted(each for each in ids if each is not None):
        if snapshot_id > up_to and not is_first:
            break
        path = snapshot_path(root, snapshot_id)
        try:
            yield decode_snapshot(file_io.read(path), path)
        except NotFoundError:  # a concurrent expiration has deleted it
            continue
        is_first = False


def _tagged(file_io: FileIO, root: str) -> Iterator[Snapshot]:
    for status in file_io.list(tag_directory(root)):
        if tag_name_of(status.name) is not None:
            try:
                yield decode_tag(file_io.read(status.path), status.path).snapshot
            except NotFoundError:
                continue
