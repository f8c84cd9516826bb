"""Branches of a table: they have snapshots and tags of their own, and share its manifests and data files.

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
    from penstock.io.file_io import FileIO
    from penstock.table.store import MetadataStore


def list_branches(file_io: FileIO, location: str) -> tuple[str, ...]:
    """Names of the branches beside the main one, sorted."""
    names = (branch_name_of(status.name) for status in file_io.list(branches_directory(location)) if status.is_dir)
    return tuple(sorted(name for name in names if name is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReaders:
    """Snapshots of branches that may read what the main one no longer does.

    Attributes:
        oldest: the earliest snapshot and the tagged ones of each branch.
        later: others, ascending in each branch, that add files to those.
    """

    oldest: tuple[NamedSnapshot, ...]
    later: tuple[NamedSnapshot, ...]

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All of them."""
        return tuple(each.snapshot for each in (*self.oldest, *self.later))


def load_branch_readers(store: MetadataStore, *, up_to: int) -> BranchReaders:
    """Load the snapshots of branches that may read files of main snapshots up to that one.

    A branch shares the files that it began with, and after a fast-forward to it those that it added too: such
    snapshots have the same numbers in both.

    Raises:
        FormatError: one is damaged.
    """
    oldest: list[NamedSnapshot] = []
    later: list[NamedSnapshot] = []
    for name in list_branches(store.file_io, store.location):
        root = branch_path(store.location, name)
        snapshots = [NamedSnapshot(name=name, snapshot=each) for each in _snapshots(store.file_io, root, up_to)]
        oldest += snapshots[:1]
        later += snapshots[1:]
        oldest += (NamedSnapshot(name=name, snapshot=each) for each in _tagged(store.file_io, root))
    return BranchReaders(oldest=tuple(oldest), later=tuple(later))


def _snapshots(file_io: FileIO, root: str, up_to: int) -> Iterator[Snapshot]:
    """Yield the earliest snapshot, whatever its number, and the others up to that one, ascending."""
    is_first = True
    ids = (snapshot_id_of(status.name) for status in file_io.list(snapshot_directory(root)))
    for snapshot_id in sorted(each for each in ids if each is not None):
        if snapshot_id > up_to and not is_first:
            break
        path = snapshot_path(root, snapshot_id)
        try:
            yield decode_snapshot(file_io.read(path), path)
        except NotFoundError:  # it expires beside us
            continue
        is_first = False


def _tagged(file_io: FileIO, root: str) -> Iterator[Snapshot]:
    for status in file_io.list(tag_directory(root)):
        if tag_name_of(status.name) is not None:
            try:
                yield decode_tag(file_io.read(status.path), status.path).snapshot
            except NotFoundError:
                continue
