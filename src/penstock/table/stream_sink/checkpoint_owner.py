"""Binds a query's checkpoint to one table, which may be moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.errors import CheckpointError
from penstock.format.layout import TableLayout
from penstock.io.local import is_same_file
from penstock.table.assumptions import load_identity
from penstock.table.stream_sink.batch_log import CheckpointMark

if TYPE_CHECKING:
    from penstock.table.ref import TableRef
    from penstock.table.stream_sink.batch_log import BatchNotes

ACCEPT: Final = "set the write option 'penstock.accept-unknown-batch' = 'true' for this start"


def claim_checkpoint(
    ref: TableRef, notes: BatchNotes, *, base_id: int, has_batches: bool, accept_unknown: bool
) -> CheckpointMark:
    """Return the mark of a checkpoint; a checkpoint without a mark is assigned to the table now.

    A branch counts as a table, in the directory of its metadata. A mark written by a start that ran no batch is
    replaced. If the table was moved, its mark gets the new location.

    Args:
        base_id: id of the table's latest snapshot; 0 for none.
        has_batches: whether a query has already run with the checkpoint.
        accept_unknown: take over a checkpoint without a mark that a query has already run with.

    Raises:
        CheckpointError: it belongs to another table, or to another sink.
        NotFoundError: there is no table.
    """
    identity, root = load_identity(ref), ref.file_io.metadata_root(ref.location)
    mark = notes.load_mark()
    if mark is not None and (mark.location, mark.identity) == (root, identity):
        return mark
    if mark is not None and (has_batches or notes.load_newest() is not None):
        check_identity(mark, identity, ref, notes)
        moved = replace(mark, location=root)
    else:
        if has_batches and not accept_unknown:
            raise CheckpointError(
                f"table {ref.name}: checkpoint {notes.place} belongs to a query that wrote somewhere else, so its "
                "batches are not in this table; use a new checkpoint; or, to continue here with the next batch, "
                f"{ACCEPT}"
            )
        # The query may have committed to this table under the same id through another API that writes no mark.
        moved = CheckpointMark(location=root, identity=identity, base_id=0 if has_batches else base_id)
    notes.write_mark(moved)
    return moved


def check_identity(mark: CheckpointMark, identity: str, ref: TableRef, notes: BatchNotes) -> None:
    """Raise ``CheckpointError`` if the table is not the one that the checkpoint belongs to."""
    is_same = mark.identity == identity
    if is_same and (_is_same_place(mark.location, ref) or not _may_be_there(ref, mark.location)):
        return
    if mark.location != ref.file_io.metadata_root(ref.location):
        cure = "use a new checkpoint for this one"
        if is_same:
            cure += f", a copy of that; or, if both paths lead to one table, load it from {mark.location}"
        owner = "branch of the table" if _table_of(mark.location) == ref.location else "table"
        raise CheckpointError(
            f"table {ref.name}: checkpoint {notes.place} belongs to another {owner}, at {mark.location}; {cure}"
        )
    raise CheckpointError(
        f"table {ref.name}: it was dropped and created again since the query with checkpoint {notes.place} began, so "
        "the batches before this one are not in it; start with a new checkpoint to write all rows again"
    )


def _is_same_place(location: str, ref: TableRef) -> bool:
    """Whether a location is the table's, possibly by another path to the directory, such as a link or a mount."""
    root = ref.file_io.metadata_root(ref.location)
    if location == root:
        return True
    return ref.file_io.is_local and is_same_file(Path(location), Path(root))


def _table_of(location: str) -> str:
    """Return the directory of the table for that of a table or branch."""
    return location.partition(f"{TableLayout('').branches_directory}/")[0]


def _may_be_there(ref: TableRef, location: str) -> bool:
    """Whether a table may exist at a location; True for another storage, which cannot be checked from here."""
    return _storage_of(location) != _storage_of(ref.location) or ref.file_io.unconfined().exists(
        TableLayout(location).schema_path(0)
    )


def _storage_of(location: str) -> str:
    scheme, mark, path = location.partition("://")
    return f"{scheme}://{path.partition('/')[0]}" if mark else ""
