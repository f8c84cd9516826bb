"""The tag file ``tag/tag-<name>``: a snapshot's JSON; with a retention, it has two more keys.

Source:
    Paimon ``core:tag/Tag.java``; docs/spec/format.md section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.format.snapshot import read_snapshot, snapshot_values
from penstock.format.text.json import Json, JsonObject, decode_json, encode_json

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot

_CREATE_TIME: Final = "tagCreateTime"
_TIME_RETAINED: Final = "tagTimeRetained"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the file holds a wall clock without a zone
_NANOS: Final = 1_000_000_000
_LONGEST_SECONDS: Final = 10**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A snapshot that expiration keeps.

    Attributes:
        create_time: the creator's local wall clock taken as if it were UTC, in ns since 1970-01-01; None when the
            tag has no retention.
        retained_seconds: lifetime from ``create_time``, to the nanosecond; None for unlimited.
    """

    snapshot: Snapshot
    create_time: int | None = None
    retained_seconds: Decimal | None = None


def decode_tag(data: bytes, path: str) -> Tag:
    """Decode a tag file.

    Args:
        data: the whole file.
        path: only for messages.
    """
    name = path.rpartition("/tag-")[2]
    cure = f"restore the file from a copy, or delete the tag: penstock tag delete TABLE {name}"
    json = decode_json(data, "tag file", path, cure)
    return Tag(
        snapshot=read_snapshot(json, ignored=frozenset({_CREATE_TIME, _TIME_RETAINED})),
        create_time=_decode_create_time(json),
        retained_seconds=_decode_retained(json),
    )


def _decode_create_time(json: JsonObject) -> int | None:
    """Decode ``[year, month, day, hour, minute, second, nanosecond]``; the last two may be left out if they are 0."""
    value = json.values.get(_CREATE_TIME)
    if value is None:
        return None
    is_list = isinstance(value, list) and 5 <= len(value) <= 7
    if not is_list or not all(isinstance(part, int) and not isinstance(part, bool) for part in value):
        raise json.error(f"has {value!r} under '{_CREATE_TIME}' where a list of 5 to 7 numbers belongs")
    nanosecond = value[6] if len(value) == 7 else 0
    try:
        wall_clock = datetime(*value[:6])  # noqa: DTZ001 - the file holds a wall clock without a zone
    except (ValueError, OverflowError) as error:
        raise json.error(f"has no time under '{_CREATE_TIME}' ({error})") from error
    return (wall_clock - _EPOCH) // timedelta(seconds=1) * _NANOS + nanosecond


def _decode_retained(json: JsonObject) -> Decimal | None:
    value = json.values.get(_TIME_RETAINED)
    if value is None:
        return None
    if not isinstance(value, int | Decimal) or isinstance(value, bool) or not 0 <= value < _LONGEST_SECONDS:
        raise json.error(f"has {value!r} under '{_TIME_RETAINED}' where a number of seconds belongs")
    return Decimal(value)


def encode_tag(tag: Tag) -> bytes:
    """Encode a tag file; without a retention it equals the snapshot file."""
    values = snapshot_values(tag.snapshot)
    if tag.create_time is not None:
        values[_CREATE_TIME] = _encode_create_time(tag.create_time)
    if tag.retained_seconds is not None:
        values[_TIME_RETAINED] = round(Decimal(tag.retained_seconds), 9)
    return encode_json(values)


def _encode_create_time(nanos: int) -> list[Json]:
    seconds, nanosecond = divmod(nanos, _NANOS)
    time = _EPOCH + timedelta(seconds=seconds)
    date = [time.year, time.month, time.day, time.hour, time.minute]
    if nanosecond:
        return [*date, time.second, nanosecond]
    return [*date, time.second] if time.second else date
