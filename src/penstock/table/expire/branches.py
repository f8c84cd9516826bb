"""Branches of a table: each has its own snapshots and tags, and shares manifests and data files with the table.

Source:
    Paimon ``core:utils/FileSystemBranchManager.java``; docs/spec/format.md section 1, docs/spec/commit.md section 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.layout import TableLayout, branch_name_of, snapshot_id_of, tag_name_of
from penstock.format.snapshot_json import decode_snapshot
from penstock.format.tag import decode_tag
from penstock.table.expire.files import NamedSnapshot
from penstock.table.read.branch import has_branch
from penstock.table.read.live import load_live_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import Directories, FileIO
    from penstock.table.store import MetadataStore


_TRIES: Final = 10


def list_branches(directories: Directories, layout: TableLayout) -> tuple[str, ...]:
    """Return the names of all branches except the main one, sorted; also those that are being created or deleted."""
    names = (branch_name_of(status.name) for status in directories.list(layout.branches_directory) if status.is_dir)
    return tuple(sorted(name for name in names if name is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReaders:
    """Snapshots of branches that may read files that the main branch does not read any more.

    Attributes:
        names: as ``list_branches``.
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

    A branch that is being created has its snapshot already. What an interrupted creation has left may have lost files:
    such snapshots are skipped.

    Raises:
        FormatError: a snapshot or tag is damaged.
        StorageError: the storage failed, or branches are renamed faster than they can be read.
    """
    names = list_branches(store.file_io, store.layout)
    for _ in range(_TRIES):
        oldest: list[NamedSnapshot] = []
        later: list[NamedSnapshot] = []
        for name in names:
            layout = store.layout.branch(name)
            snapshots = [NamedSnapshot(name=name, snapshot=each) for each in _snapshots(store.file_io, layout, up_to)]
            tagged = [NamedSnapshot(name=name, snapshot=each) for each in _tagged(store.file_io, layout)]
            if not has_branch(store.file_io, store.location, name):
                snapshots, tagged = ([each for each in some if _is_whole(store, each)] for some in (snapshots, tagged))
            oldest += [*snapshots[:1], *tagged]
            later += snapshots[1:]
        # Snapshots of a branch that was renamed meanwhile may have been found under neither name.
        before, names = names, list_branches(store.file_io, store.layout)
        if names == before:
            return BranchReaders(names=names, oldest=tuple(oldest), later=tuple(later))
    raise StorageError(
        f"table {store.name}: its branches change faster than they can be read; try again when they do not",
        True,  # noqa: FBT003 - positional, so that pickling works
    )


def _is_whole(store: MetadataStore, named: NamedSnapshot) -> bool:
    """Whether all metadata of a snapshot can be read."""
    try:
        load_live_entries(store, named.snapshot, lambda _: False)
    except (NotFoundError, FormatError):
        return False
    return True


def _snapshots(file_io: FileIO, layout: TableLayout, up_to: int) -> Iterator[Snapshot]:
    """Yield the earliest snapshot, whatever its id, and the others with ids up to ``up_to``, ascending."""
    is_first = True
    ids = (snapshot_id_of(status.name) for status in file_io.list(layout.snapshot_directory))
    for snapshot_id in sorted(each for each in ids if each is not None):
        if snapshot_id > up_to and not is_first:
            break
        path = layout.snapshot_path(snapshot_id)
        try:
            yield decode_snapshot(file_io.read(path), path)
        except NotFoundError:  # a concurrent expiration has deleted it
            continue
        is_first = False


def _tagged(file_io: FileIO, layout: TableLayout) -> Iterator[Snapshot]:
    for status in file_io.list(layout.tag_directory):
        if tag_name_of(status.name) is not None:
            try:
                yield decode_tag(file_io.read(status.path), status.path).snapshot
            except NotFoundError:
                continue
