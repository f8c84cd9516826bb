"""The offset of a stream: its whole progress as a value that a checkpoint stores.

Source:
    docs/spec/streaming.md sections 1 and 2; PySpark's Python Data Source API for the permitted content of an offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

BucketWatermarks: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of bucket and watermark, ms of event time, sorted by bucket."""

END_OF_INPUT_MS: Final = 9_000_000_000_000_000
"""Watermark that Spark gets when a bounded input has ended: in microseconds, near the end of what 64 bits hold."""

_UNRESOLVED: Final = "unresolved"


class Phase(StrEnum):
    """Which files of a snapshot are delivered; the value is the text in an offset."""

    FULL = "full"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position in the table's history; everything before it is delivered.

    Attributes:
        snapshot_id: the snapshot to read next; in phase CHANGES it may not exist yet.
        index: number of files of that snapshot that are already delivered.
        phase: FULL if all live files of the snapshot are delivered, CHANGES if only the files that it added.
    """

    snapshot_id: int
    index: int = 0
    phase: Phase = Phase.CHANGES

    @property
    def is_inside(self) -> bool:
        """Whether the snapshot must already exist: it is in phase FULL, or partly delivered."""
        return self.phase is Phase.FULL or self.index > 0

    @property
    def rests_on(self) -> int:
        """Id of the last snapshot that must have existed: this one if the position is inside it, else the previous."""
        return self.snapshot_id if self.is_inside else self.snapshot_id - 1

    def after(self) -> Position:
        """Return the position after the whole snapshot."""
        return Position(snapshot_id=self.snapshot_id + 1)

    def at(self, index: int) -> Position:
        """Return the position in the same snapshot after that many files."""
        return replace(self, index=index)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """The whole progress of a stream.

    Attributes:
        start: where the stream began, resolved once; None while it is not resolved.
        position: where the stream continues; None while ``start`` is None.
        by_value: partitions are ordered by their values, else by their creation time; never changes for a query.
        ended: a bound was reached; there are no more rows.
        table: digest of what identifies the table or branch, which distinguishes the table from a later one at the same
            location.
        overwrites: whether the files that OVERWRITE snapshots added are delivered.
        seen: digest of the snapshot that the position is inside of, else of the previous one; it reveals a rollback.
            None where there was none.
        created_from: only files created at or after it, a wall clock as ms since 1970-01-01; None for all.
        last_id: the last snapshot to deliver, fixed at the start by ``scan.bounded``; None where it is not fixed.
        watermarks: of the buckets that had rows with a time, after the last completely delivered snapshot; None where
            the table declares no watermark.
        waits: how often a query under ``availableNow`` had to wait for other sources; it only makes the offset a new
            value, so that the query continues.
        closed: the bound at which Spark's watermark was advanced to ``END_OF_INPUT_MS``, so that later rows would be
            late; None if it was not advanced.
    """

    start: Position | None = None
    position: Position | None = None
    by_value: bool = False
    ended: bool = False
    table: str = ""
    overwrites: bool = False
    seen: str | None = None
    created_from: int | None = None
    last_id: int | None = None
    watermarks: BucketWatermarks | None = None
    waits: int = 0
    closed: str | None = None


UNRESOLVED: Final = StreamOffset()
"""The first offset of every query, before its start is resolved."""


def encode_offset(offset: StreamOffset) -> dict[str, Any]:
    """Encode an offset as nested dicts of strings, integers and booleans."""
    if offset.start is None or offset.position is None:
        return {_UNRESOLVED: True}
    encoded = {
        "version": 1,
        "table": offset.table,
        "start": _encode_position(offset.start),
        "position": _encode_position(offset.position),
        "by_value": offset.by_value,
        "overwrites": offset.overwrites,
        "ended": offset.ended,
    }
    optional: dict[str, Any] = {"seen": offset.seen, "created_from": offset.created_from, "last_id": offset.last_id}
    optional["closed"] = offset.closed
    if offset.waits:
        optional["waits"] = offset.waits
    if offset.watermarks is not None:
        optional["watermarks"] = {str(bucket): millis for bucket, millis in offset.watermarks}
    return encoded | {name: value for name, value in optional.items() if value is not None}


def decode_offset(encoded: Mapping[str, Any]) -> StreamOffset:
    """Decode the result of ``encode_offset``."""
    if encoded.get(_UNRESOLVED):
        return UNRESOLVED
    if encoded.get("version") != 1:
        raise FormatError(
            f"offset {dict(encoded)!r} is not of this version of Penstock; start the query with the version that wrote "
            "its checkpoint, or with a new checkpoint"
        )
    try:
        return StreamOffset(
            start=_decode_position(encoded["start"]),
            position=_decode_position(encoded["position"]),
            by_value=bool(encoded["by_value"]),
            ended=bool(encoded["ended"]),
            table=str(encoded["table"]),
            overwrites=bool(encoded["overwrites"]),
            seen=encoded.get("seen"),
            created_from=encoded.get("created_from"),
            last_id=encoded.get("last_id"),
            watermarks=_decode_watermarks(encoded.get("watermarks")),
            waits=int(encoded.get("waits", 0)),
            closed=encoded.get("closed"),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"offset {dict(encoded)!r} is damaged ({error!r}); start with a new checkpoint") from error


def _decode_watermarks(encoded: Mapping[str, Any] | None) -> BucketWatermarks | None:
    if encoded is None:
        return None
    return tuple(sorted((int(bucket), int(millis)) for bucket, millis in encoded.items()))


def _encode_position(position: Position) -> dict[str, Any]:
    return {"snapshot": position.snapshot_id, "index": position.index, "phase": position.phase.value}


def _decode_position(encoded: Mapping[str, Any]) -> Position:
    return Position(
        snapshot_id=int(encoded["snapshot"]), index=int(encoded["index"]), phase=Phase(str(encoded["phase"]))
    )
