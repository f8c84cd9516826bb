"""Time zones by their Java names, the times of partitions, and the clock of a table's storage.

Source:
    ``java.time.ZoneId.of``, which reads Paimon's options; Paimon ``core:partition/PartitionTimeExtractor.java``;
    docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.clocks import EPOCH, elapsed_seconds, utc_millis
from penstock.errors import InvalidOptionError, StorageError, UnsupportedFeatureError
from penstock.format.layout import TableLayout
from penstock.format.text.partitions import partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO

_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<h>\d{1,2})(?:(?P<colon>:?)(?P<m>\d{2})(?:(?P=colon)(?P<s>\d{2}))?)?", re.ASCII
)
_MAX_OFFSET: Final = timedelta(hours=18)


def parse_zone(text: str | None, key: str, table: str) -> tzinfo | None:
    """Return the zone of that name; None, which means this machine's zone, if the text is None.

    Args:
        text: ``America/Los_Angeles``, ``UTC``, ``Z``, ``+08:00``, ``GMT-8``.
        key: the option, for the message.
    """
    if text is None:
        return None
    if text in {"Z", "UTC", "GMT", "UT"}:
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is not None:
        hours, minutes, seconds = (int(match[part] or 0) for part in "hms")
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if offset <= _MAX_OFFSET and max(minutes, seconds) < 60:
            return timezone(offset if match["sign"] == "+" else -offset)
    else:
        try:
            return ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise InvalidOptionError(
        f"table {table}: option '{key}' = '{text}': expected the name of a zone such as 'Europe/Berlin', or an offset "
        "such as '+01:00'"
    )


def instant(clock: datetime, zone: tzinfo | None) -> int | None:
    """Return when a zone's wall clock shows a time, in ms since 1970-01-01 UTC; None beyond the calendar's range.

    If the clock shows the time twice, the earlier instant is returned. A time that the clock skips is moved later by
    the length of the skip.

    Args:
        clock: the time, without a zone.
        zone: None for this machine's.
    """
    try:
        moment = clock.astimezone() if zone is None else clock.replace(tzinfo=zone)
        return (moment.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError, OSError):
        return None


def wall_clock(millis: int, zone: tzinfo | None) -> datetime | None:
    """Return the wall clock in a zone, without that zone; None beyond the years 1 to 9999.

    Args:
        millis: since 1970-01-01 UTC.
        zone: None for this machine's.
    """
    try:
        return (EPOCH + timedelta(milliseconds=millis)).astimezone(zone).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return None


_LENIENT: Final = re.compile(
    r"(?P<y>\d{4,5})-(?P<M>\d{1,2})-(?P<d>\d{1,2})"
    r"( (?P<H>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(\.(?P<S>\d{1,9}))?)?",
    re.ASCII,
)
# Parts of a pattern of Java's DateTimeFormatter: one letter repeated, a quoted text, or one other character.
_PATTERN_PARTS: Final = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']")
_LETTERS: Final = {"y": "y", "u": "y", "M": "M", "L": "M", "d": "d", "H": "H", "m": "m", "s": "s", "S": "S"}


def partition_time_parser(
    fields: Sequence[DataField], *, pattern: str | None, formatter: str | None, table: str
) -> Callable[[Sequence[object]], datetime | None]:
    """Return a function that maps a partition's internal values to its time.

    That function returns None where the values are NULL or cannot be parsed as a time: such partitions never expire.
    The time has no zone, as the values have none.

    Args:
        fields: the partition columns.
        pattern: option ``partition.timestamp-pattern``, such as ``$dt $hour:00:00``; None for the first column.
        formatter: option ``partition.timestamp-formatter``, such as ``yyyyMMdd``; None for ``yyyy-M-d``, optionally
            followed by ``H:m:s`` and a fraction.
    """
    regex = _LENIENT if formatter is None else _compile(formatter, table)
    names = sorted((field.name for field in fields), key=len, reverse=True)
    template = f"${fields[0].name}" if pattern is None else pattern
    variables = re.compile("|".join(re.escape(f"${name}") for name in names))
    if not variables.search(template):
        raise InvalidOptionError(
            f"table {table}: option 'partition.timestamp-pattern' = '{template}' names no partition column: take "
            + ", ".join(f"${name}" for name in names)
        )
    used = {match.group()[1:] for match in variables.finditer(template)}

    def parse(values: Sequence[object]) -> datetime | None:
        texts: dict[str, str] = {}
        for field, value in zip(fields, values, strict=True):
            if field.name in used:
                if value is None:
                    return None
                try:
                    texts[field.name] = partition_text(field, value, legacy_name=False)
                except UnsupportedFeatureError:
                    return None
        return _to_datetime(regex.fullmatch(variables.sub(lambda match: texts[match.group()[1:]], template)))

    return parse


def _compile(formatter: str, table: str) -> re.Pattern[str]:
    parts: list[str] = []
    end = 0
    for match in _PATTERN_PARTS.finditer(formatter):
        letter = match.group(1)
        if letter is None:
            parts.append(
                re.escape(match.group() if match.group(2) is None else match.group(2).replace("''", "'") or "'")
            )
        elif letter in _LETTERS and f"(?P<{_LETTERS[letter]}>" not in "".join(parts):
            parts.append(f"(?P<{_LETTERS[letter]}>{_digits(letter, len(match.group()))})")
        else:
            break
        end = match.end()
    if end != len(formatter):
        raise InvalidOptionError(
            f"table {table}: option 'partition.timestamp-formatter' = '{formatter}': only y, M, d, H, m, s, S, each "
            f"once, and text between them are taken here, not '{formatter[end:]}'"
        )
    return re.compile("".join(parts), re.ASCII)


def _digits(letter: str, count: int) -> str:
    if count > 1 or letter == "S":
        return rf"\d{{{count}}}"
    return r"\d{1,5}" if letter in "yu" else r"\d{1,2}"


def _to_datetime(match: re.Match[str] | None) -> datetime | None:
    if match is None:
        return None
    found = {name: text for name, text in match.groupdict().items() if text is not None}
    numbers = {name: int(text) for name, text in found.items() if name != "S"}
    if "y" in found and len(found["y"]) == 2:
        numbers["y"] += 2000
    micros = int(found.get("S", "0").ljust(9, "0")[:6])
    try:
        return datetime(  # noqa: DTZ001 - the values have no zone
            numbers.get("y", 0),
            numbers.get("M", 1),
            numbers.get("d", 1),
            numbers.get("H", 0),
            numbers.get("m", 0),
            numbers.get("s", 0),
            micros,
        )
    except ValueError:
        return None


# File times may be as coarse as two seconds, and such a small difference does not matter.
_TOLERANCE_MS: Final = 2_500


def load_storage_millis(file_io: FileIO, location: str) -> int | None:
    """Return the current time by the storage's clock, ms since 1970-01-01 UTC; None if the storage has no file times.

    It is the modification time of a file that is created in the table's directory and deleted again.
    """
    directory = TableLayout(location).own_directory
    path = f"{directory}/.clock.{uuid.uuid4()}.tmp"
    try:
        file_io.relaxed().write(path, b"")
        found = [status.modified_millis for status in file_io.list(directory) if status.path == path]
    finally:
        with suppress(StorageError):
            file_io.delete_many([path])
    return next((millis for millis in found if millis > 0), None)


def storage_clock(file_io: FileIO, location: str) -> Callable[[], int]:
    """Return a clock, in ms since 1970-01-01 UTC, that agrees with those of the other machines that use the table.

    On an object store it continues from the store's time, which is requested once; so neither a wrong clock of this
    machine nor a step of it matters, and on Linux time during which the machine was suspended counts. On other
    storages, such as a network file system, it is the clock of this machine, corrected by its difference from the file
    times of the storage, if that is more than a few seconds.
    """
    try:
        stored = load_storage_millis(file_io, location)
    except StorageError as error:
        if error.retryable:
            raise  # a wrong clock would go on for as long as the lease is held
        return utc_millis
    if stored is None:
        return utc_millis
    if not file_io.is_object_store:
        offset_ms = utc_millis() - stored
        return utc_millis if abs(offset_ms) <= _TOLERANCE_MS else lambda: utc_millis() - offset_ms
    started = elapsed_seconds()
    return lambda: stored + int((elapsed_seconds() - started) * 1000)
