"""How far a stream has come, as a value that a checkpoint keeps.

Source:
    docs/spec/streaming.md sections 1 and 2; PySpark's Python Data Source API for what an offset may hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

BucketWatermarks: TypeAlias = tuple[tuple[int, int], ...]
"""Buckets with their watermarks, ms of event time, by bucket."""

_UNRESOLVED: Final = "unresolved"


class Phase(StrEnum):
    """What is delivered of a snapshot; the value is the text in an offset."""

    FULL = "full"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in the table's history; everything before it is delivered.

    Attributes:
        snapshot_id: the snapshot to go on in; in phase CHANGES it may not exist yet.
        index: units of that snapshot that are delivered already.
        phase: FULL while all live files of the snapshot are delivered, CHANGES when only what it added.
    """

    snapshot_id: int
    index: int = 0
    phase: Phase = Phase.CHANGES

    @property
    def is_inside(self) -> bool:
        """Whether the snapshot must exist already: it is delivered whole, or in part."""
        return self.phase is Phase.FULL or self.index > 0

    @property
    def rests_on(self) -> int:
        """The last snapshot that must have existed: the one that it is inside of, else the one before."""
        return self.snapshot_id if self.is_inside else self.snapshot_id - 1

    def behind(self) -> Position:
        """Return the position after the whole snapshot."""
        return Position(snapshot_id=self.snapshot_id + 1)

    def at(self, index: int) -> Position:
        """Return the position inside the same snapshot, behind that many units."""
        return replace(self, index=index)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """The whole state of a stream.

    Attributes:
        start: where the stream began, resolved once; None while nobody could say.
        position: where it goes on; None as long as ``start`` is.
        by_value: partitions come in the order of their values, else of their creation; stays as the query began.
        ended: a bound was reached; nothing comes after.
        table: digest of the table's first schema file, which tells it from one made later in the same place.
        overwrites: what OVERWRITE snapshots added was delivered up to here.
        seen: digest of the snapshot that the position is in, or at its beginning of the one before it; a rollback
            shows by it. None where there was none.
        created_from: only files created at or after it, a wall clock as ms since 1970-01-01; None for all.
        last_id: the last snapshot to deliver, fixed at the start by ``scan.bounded``; None where nothing fixes it.
        watermarks: of the buckets that had rows with a time, behind the last snapshot that is delivered to its end;
            None where the table declares no watermark.
        waits: how often a query that ends by itself was asked and had to wait for others; it only makes this offset
            another one, so that the query goes on.
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


UNRESOLVED: Final = StreamOffset()
"""Nothing is known yet: the first offset of every query, the same whenever it is asked for."""


def encode_offset(offset: StreamOffset) -> dict[str, Any]:
    """Encode as nested dicts of texts, integers and truth values."""
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
    if offset.waits:
        optional["waits"] = offset.waits
    if offset.watermarks is not None:
        optional["watermarks"] = {str(bucket): millis for bucket, millis in offset.watermarks}
    return encoded | {name: value for name, value in optional.items() if value is not None}


def decode_offset(encoded: Mapping[str, Any]) -> StreamOffset:
    """Decode what ``encode_offset`` made.

    Raises:
        FormatError: something else, or made by a newer version.
    """
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
