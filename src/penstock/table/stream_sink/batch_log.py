"""Penstock's files in a streaming query's checkpoint: the table it belongs to, and a note for each batch.

An unreadable file counts as missing: each file is written before the action that it announces, so a truncated file
means that the process was killed during the write and did nothing afterwards.

A checkpoint belongs to one table, which may be moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import CheckpointError, FormatError
from penstock.format.layout import TableLayout
from penstock.format.text.json import decode_json, encode_json
from penstock.io.local import is_same_file
from penstock.table.assumptions import load_identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.text.json import JsonObject
    from penstock.table.ref import TableRef


_MARK: Final = "table"
_NOTE_PREFIX: Final = "base-"
_KEPT_NOTES: Final = 2


class CheckpointFiles(Protocol):
    """Penstock's directory inside a query's checkpoint. Every failure is a ``StorageError``."""

    @property
    def place(self) -> str:
        """The checkpoint's location, for messages."""
        ...

    def list(self) -> Sequence[str]:
        """List the names of the files, in any order; empty where there is no directory."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None when it does not exist. An incomplete file may be visible."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMark:
    """The table that a checkpoint belongs to.

    Attributes:
        location: of the table.
        identity: from ``load_identity``.
        base_id: id of the table's latest snapshot when the mark was written; 0 if there was none, or if the query may
            have committed before.
    """

    location: str
    identity: str
    base_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNote:
    """The state before a micro-batch is written.

    Attributes:
        base_id: id of the latest snapshot; neither it nor an earlier one holds the batch.
        job_id: of the files that the batch writes.
        killed_jobs: job ids of earlier attempts at the same batch, whose files may still exist.
        upstream_times: event times of the observed partitions before the batch, or after it where it made no snapshot;
            None where no partition is observed.
    """

    batch_id: int
    base_id: int
    job_id: str
    killed_jobs: tuple[str, ...] = ()
    upstream_times: str | None = None


class BatchNotes:
    """Reads and writes the mark and the notes; keeps the notes of the last two batches."""

    def __init__(self, files: CheckpointFiles) -> None:
        self._files = files
        self._names: list[str] | None = None

    @property
    def place(self) -> str:
        """The checkpoint's location, for messages."""
        return self._files.place

    def load_mark(self) -> CheckpointMark | None:
        """Load the mark of the checkpoint; None when it belongs to no table yet."""
        values = self._load(_MARK)
        if values is None:
            return None
        try:
            return CheckpointMark(
                location=values.text("table"), identity=values.text("identity"), base_id=values.integer("base")
            )
        except FormatError:
            return None

    def write_mark(self, mark: CheckpointMark) -> None:
        """Assign the checkpoint to a table."""
        self._files.write(_MARK, encode_json({"table": mark.location, "identity": mark.identity, "base": mark.base_id}))

    def load_newest(self) -> BatchNote | None:
        """Load the note of the largest batch id; None when there is none."""
        for name in reversed(self._list()):
            values = self._load(name)
            try:
                if values is not None:
                    return BatchNote(
                        batch_id=values.integer("batch"),
                        base_id=values.integer("base"),
                        job_id=values.text("job"),
                        killed_jobs=values.texts("killed"),
                        upstream_times=values.optional_text("times"),
                    )
            except FormatError:
                continue
        return None

    def write(self, note: BatchNote) -> None:
        """Write a note, and delete those that are not needed any more."""
        name = f"{_NOTE_PREFIX}{note.batch_id}"
        values = {
            "batch": note.batch_id,
            "base": note.base_id,
            "job": note.job_id,
            "killed": [*note.killed_jobs],
            "times": note.upstream_times,
        }
        self._files.write(name, encode_json({key: value for key, value in values.items() if value is not None}))
        names = sorted({*self._list(), name}, key=_batch_id)
        # Notes of later batches exist if the checkpoint was restored from an older copy: they are deleted too.
        place = names.index(name) + 1
        self._names = names[max(0, place - _KEPT_NOTES) : place]
        for each in names:
            if each not in self._names:
                self._files.delete(each)

    def _list(self) -> list[str]:
        if self._names is None:
            self._names = sorted((name for name in self._files.list() if _batch_id(name) >= 0), key=_batch_id)
        return self._names

    def _load(self, name: str) -> JsonObject | None:
        data = self._files.read(name)
        try:
            return None if data is None else decode_json(data, "note", f"{self.place}/penstock/{name}")
        except FormatError:
            return None


def _batch_id(name: str) -> int:
    digits = name.removeprefix(_NOTE_PREFIX)
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else -1


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
