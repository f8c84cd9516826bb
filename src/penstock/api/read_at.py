"""The keyword arguments that select the snapshot of a read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from penstock.options import ReadOptions
from penstock.options.choices import ScanMode
from penstock.table.read.travel import resolve_default

if TYPE_CHECKING:
    from collections.abc import Mapping


class ReadAt(TypedDict, total=False):
    """Keyword arguments that select the snapshot of a read; at most one, and by default the latest.

    Attributes:
        snapshot_id: the snapshot with this id.
        timestamp_millis: the newest snapshot committed at or before it, ms since 1970-01-01 UTC.
        tag: the snapshot with this tag.
        watermark: the first snapshot whose watermark (ms of event time) has reached it.
    """

    snapshot_id: int | None
    timestamp_millis: int | None
    tag: str | None
    watermark: int | None


_OPTIONS: Final = {
    "snapshot_id": "scan.snapshot-id",
    "timestamp_millis": "scan.timestamp-millis",
    "tag": "scan.tag-name",
    "watermark": "scan.watermark",
}


def position_options(at: ReadAt, method: str) -> dict[str, str]:
    """Return the keyword arguments as options of a read.

    Raises:
        TypeError: a keyword that ``method`` does not accept.
    """
    for keyword in at:
        if keyword not in _OPTIONS:
            raise TypeError(f"{method}() got an unexpected keyword argument {keyword!r}")
    return {_OPTIONS[keyword]: str(value) for keyword, value in at.items() if value is not None}


def names_a_start(options: Mapping[str, str], table: str) -> bool:
    """Whether options set where a stream begins; otherwise it begins with all rows."""
    mode = resolve_default(ReadOptions.parse(options, table=table))
    return "scan.mode" in options or mode is not ScanMode.LATEST_FULL
