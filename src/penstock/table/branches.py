"""Branches of a table: they have snapshots and tags of their own, and share its manifests and data files.

Source:
    Paimon ``core:utils/FileSystemBranchManager.java``; spec/format.md section 1, spec/commit.md section 7.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import NotFoundError
from penstock.spec.layout import (
    branch_name_of,
    branch_path,
    branches_directory,
    snapshot_directory,
    snapshot_id_of,
    snapshot_path,
    tag_directory,
    tag_name_of,
)
from penstock.spec.snapshot_json import decode_snapshot
from penstock.spec.tag import decode_tag
from penstock.table.expire_files import NamedSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.io.file_io import FileIO
    from penstock.spec.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def list_branches(file_io: FileIO, location: str) -> tuple[str, ...]:
    """Names of the branches beside the main one, sorted."""
    names = (branch_name_of(status.name) for status in file_io.list(branches_directory(location)) if status.is_dir)
    return tuple(sorted(name for name in names if name is not None))


def load_oldest_of_branches(store: MetadataStore) -> list[NamedSnapshot]:
    """Load the earliest snapshot and the tagged ones of each branch.

    A branch begins with files of the main one, and only ever loses them: what its earliest snapshot and its tags do
    not read, none of its snapshots reads.

    Raises:
        FormatError: one is damaged.
    """
    return [
        NamedSnapshot(name=name, snapshot=snapshot)
        for name in list_branches(store.file_io, store.location)
        for snapshot in _oldest(store.file_io, branch_path(store.location, name))
    ]


def _oldest(file_io: FileIO, root: str) -> Iterator[Snapshot]:
    ids = (snapshot_id_of(status.name) for status in file_io.list(snapshot_directory(root)))
    for snapshot_id in sorted(each for each in ids if each is not None):
        path = snapshot_path(root, snapshot_id)
        try:
            yield decode_snapshot(file_io.read(path), path)
        except NotFoundError:  # it expires beside us
            continue
        break
    for status in file_io.list(tag_directory(root)):
        if tag_name_of(status.name) is not None:
            try:
                yield decode_tag(file_io.read(status.path), status.path).snapshot
            except NotFoundError:
                continue
