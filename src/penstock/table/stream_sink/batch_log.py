"""What the checkpoint of a streaming query keeps for us: whose it is, and a note before each commit.

A file that cannot be read counts as not there: each is written before what it speaks of happens, so it was cut off
by the end of a process that did nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import FormatError
from penstock.format.text.json import decode_json, encode_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.text.json import JsonObject

_MARK: Final = "table"
_NOTE_PREFIX: Final = "base-"
_KEPT_NOTES: Final = 2


class CheckpointFiles(Protocol):
    """A directory of our own inside of a query's checkpoint. Every failure is a ``StorageError``."""

    @property
    def place(self) -> str:
        """The checkpoint's location, for messages."""
        ...

    def list(self) -> Sequence[str]:
        """Names of the files, in any order; empty where there is no directory."""
        ...

    def read(self, name: str) -> bytes | None:
        """Bytes of a file; None when it is not there. A file may be seen before it is whole."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Create or replace."""
        ...

    def delete(self, name: str) -> None:
        """Delete, if it is there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMark:
    """Which table a checkpoint belongs to.

    Attributes:
        location: of the table.
        identity: from ``load_identity``.
        base_id: the table's latest snapshot when the mark was made; 0 when there was none, or when the query may have
            committed before.
    """

    location: str
    identity: str
    base_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNote:
    """What was known before a micro-batch was written.

    Attributes:
        base_id: the latest snapshot, among which and whose predecessors the batch is not.
        job_id: of the files that the batch writes.
        killed_jobs: of earlier attempts at the same batch, whose files may still lie about.
        upstream_times: what observed partitions had come to before the batch, or behind it where it made no snapshot;
            None where none are observed.
    """

    batch_id: int
    base_id: int
    job_id: str
    killed_jobs: tuple[str, ...] = ()
    upstream_times: str | None = None


class BatchNotes:
    """Reads and writes them; the notes of the last two batches are kept."""

    def __init__(self, files: CheckpointFiles) -> None:
        self._files = files
        self._names: list[str] | None = None

    @property
    def place(self) -> str:
        """The checkpoint's location, for messages."""
        return self._files.place

    def load_mark(self) -> CheckpointMark | None:
        """Load whose checkpoint it is; None when it is nobody's."""
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
        """Make the checkpoint that table's."""
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
        """Write a note, and delete those that nobody needs any more."""
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
        # Notes of later batches are those of a checkpoint that was set back: they go too.
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
