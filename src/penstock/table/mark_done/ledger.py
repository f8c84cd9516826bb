"""A cache of the partitions that were marked done, so that a starting job need not read each mark.

The success files contain what it lacks, so losing it only costs time. It also holds the number of rows of a partition
at the time of its mark, which distinguishes later rows from a compaction even after they were compacted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, NotFoundError
from penstock.format.layout import TableLayout
from penstock.format.text.json import decode_json, encode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO

_LOOKED: Final = "lookedMillis"
_NEXT_DUE: Final = "nextDue"
_PARTITIONS: Final = "partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A partition as it was when it was marked.

    Attributes:
        rows: in its live files.
        millis: time of the mark, ms since 1970-01-01 UTC.
    """

    rows: int
    millis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The cached marks of a table.

    Attributes:
        looked_millis: when a job last checked all partitions, ms since 1970-01-01 UTC; 0 for never.
        next_due: time of the configured clock at which the first pending partition becomes done; None if there was
            none.
        partitions: by directory.
    """

    looked_millis: int = 0
    next_due: int | None = None
    partitions: Mapping[str, Marked] = field(default_factory=dict)


def load_ledger(file_io: FileIO, location: str) -> Ledger:
    """Load the cache; empty if the file is missing or damaged."""
    path = TableLayout(location).done_ledger_path
    try:
        json = decode_json(file_io.read(path), "ledger of done partitions", path)
        return Ledger(
            looked_millis=json.integer(_LOOKED),
            next_due=json.optional_integer(_NEXT_DUE),
            partitions={
                directory: Marked(rows=int(rows), millis=int(millis))
                for directory, (rows, millis) in dict(json.values[_PARTITIONS]).items()
            },
        )
    except (NotFoundError, FormatError, KeyError, TypeError, ValueError):
        return Ledger()


def save_ledger(file_io: FileIO, location: str, ledger: Ledger) -> None:
    """Replace the cache. If two jobs do so at once, the last content wins."""
    partitions = {directory: [each.rows, each.millis] for directory, each in sorted(ledger.partitions.items())}
    values = {_LOOKED: ledger.looked_millis, _NEXT_DUE: ledger.next_due, _PARTITIONS: partitions}
    file_io.write(TableLayout(location).done_ledger_path, encode_json(values))


def add_to_ledger(file_io: FileIO, location: str, marked: Mapping[str, Marked]) -> None:
    """Add partitions that were marked, by directory."""
    known = load_ledger(file_io, location)
    save_ledger(file_io, location, replace(known, partitions={**known.partitions, **marked}))
