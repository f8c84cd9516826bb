"""Translation of ``versionAsOf`` and ``timestampAsOf`` of a batch read to Penstock's options for the same state.

Source:
    Delta Lake's options of ``spark.read``; Paimon's ``scan.version``, to which its ``VERSION AS OF`` is translated.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.table.read.travel import POSITION_KEYS
from penstock.table.times import instant, parse_zone

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final = {"versionasof": "versionAsOf", "timestampasof": "timestampAsOf"}


def translate_as_of(options: Mapping[str, str], table: str, zone: str | None = None) -> dict[str, str]:
    """Return the options of a batch read, with Delta Lake's options for a state replaced by Penstock's.

    Args:
        options: keys are not case-sensitive.
        zone: for times without a zone, such as the session's; None if it is unknown.

    Raises:
        InvalidOptionError: the options name two states, the time cannot be parsed, or its zone is not known.
    """
    as_of = {key: value for key, value in options.items() if key.lower() in _NAMES}
    if not as_of:
        return dict(options)
    others = {key: value for key, value in options.items() if key not in as_of}
    states = [*as_of, *(key for key in POSITION_KEYS if key in others)]
    if len(states) > 1:
        raise InvalidOptionError(
            f"table {table}: options '{states[0]}' and '{states[1]}' contradict each other: leave one out"
        )
    ((key, value),) = as_of.items()
    if key.lower() == "versionasof":
        return {**others, "scan.version": value}
    return {**others, "scan.timestamp-millis": str(_millis(value, table, zone))}


def _millis(text: str, table: str, zone: str | None) -> int:
    key = _NAMES["timestampasof"]
    clock, name = _parts(text.strip())
    if clock is None:
        raise InvalidOptionError(
            f"table {table}: option '{key}' = '{text}': expected a time such as '2026-01-01 10:00:00' or "
            "'2026-01-01T10:00:00+01:00'"
        )
    name = name or zone
    if clock.tzinfo is None and name is None:
        raise InvalidOptionError(
            f"table {table}: option '{key}' = '{text}': the zone of this time is not known here: add it, such as "
            f"'{clock.isoformat()}Z' or '{clock.isoformat()}+01:00'; Table.to_spark takes the session's"
        )
    millis = instant(clock, parse_zone(name, key, table) if clock.tzinfo is None else clock.tzinfo)
    if millis is None:
        raise InvalidOptionError(f"table {table}: option '{key}' = '{text}' is outside of the calendar")
    return millis


def _parts(text: str) -> tuple[datetime | None, str | None]:
    """Split a text into a time and the name of a zone.

    The time is None if it cannot be parsed. The name is None if there is none or the zone is part of the time.
    """
    head, _, tail = text.rpartition(" ")
    for time, name in ((text, None), (head, tail)):
        try:
            return datetime.fromisoformat(time), name
        except ValueError:
            continue
    return None, None
