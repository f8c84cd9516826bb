"""Read the time of a time travel clause: a literal, and intervals added to it."""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.dialect.parse.script import StatementText


class QueryToken(Protocol):
    """A token of a query's text."""

    @property
    def kind(self) -> str:
        """``name``, ``text``, ``number`` or another kind."""

    @property
    def text(self) -> str:
        """The token as it is written."""

    @property
    def word(self) -> str:
        """The text; a name in upper case."""

    @property
    def start(self) -> int:
        """Offset in the query's text."""


_LITERAL: Final = "expected a literal such as TIMESTAMP '2026-01-01 00:00:00', a snapshot id or 'a-tag'"
_NO_LOOKUP: Final = (
    "for a lookup join of Flink, which reads a table as of a column of the other one, join the tables without the "
    "clause"
)
_UNITS: Final = {
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def read_travel_value(
    source: StatementText, tokens: Sequence[QueryToken], place: int, *, is_version: bool
) -> tuple[int, str]:
    """Read the value of a time travel clause; return the index of the token after it, and its text.

    Args:
        is_version: whether a snapshot id or a tag is expected, not a time.

    Raises:
        InvalidSqlError: it is not a literal, or no interval follows ``+`` or ``-``.
    """
    if place < len(tokens) and tokens[place].word in {"TIMESTAMP", "DATE"}:
        place += 1
    if place < len(tokens) and tokens[place].kind == "text":
        text = tokens[place].text[1:-1].replace("''", "'")
        return (place + 1, text) if is_version else _with_intervals(source, tokens, place, text)
    if place < len(tokens) and tokens[place].kind == "number":
        if not is_version:
            # Spark reads the number as seconds, Paimon's options as milliseconds: neither is assumed silently.
            raise source.error(
                tokens[place].start, "expected a text; for a number say /*+ OPTIONS('scan.timestamp-millis' = '…') */"
            )
        return place + 1, tokens[place].text
    if place < len(tokens) and not is_version and tokens[place].kind == "name":
        raise source.error(tokens[place].start, f"{_LITERAL}; {_NO_LOOKUP}")
    raise source.error(tokens[place].start if place < len(tokens) else len(source.text), _LITERAL)


def _with_intervals(source: StatementText, tokens: Sequence[QueryToken], place: int, text: str) -> tuple[int, str]:
    at, place = place, place + 1
    signs = {"+": 1, "-": -1}
    if place >= len(tokens) or tokens[place].text not in signs:
        return place, text
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise source.error(
            tokens[at].start, "expected a time such as '2026-01-01 00:00:00' before the interval"
        ) from None
    while place < len(tokens) and tokens[place].text in signs:
        count, unit = _interval(source, tokens, place + 1)
        try:
            moment = _moved(moment, signs[tokens[place].text] * count, unit)
        except (ValueError, OverflowError):
            raise source.error(tokens[at].start, "this time is before the year 1 or after 9999") from None
        place += 4
    return place, moment.isoformat(sep=" ")


def _interval(source: StatementText, tokens: Sequence[QueryToken], place: int) -> tuple[float, str]:
    words = tokens[place : place + 3]
    if len(words) == 3 and words[0].word == "INTERVAL" and words[1].kind in {"text", "number"}:
        unit, number = words[2].word.removesuffix("S"), words[1].text.strip("'").strip()
        is_number = number.removeprefix("-").replace(".", "", 1).isdecimal()
        is_whole = "." not in number
        if is_number and (unit in _UNITS or (unit in _MONTHS and is_whole)):
            return float(number), unit
    units = ", ".join((*_UNITS, *_MONTHS))
    offset = tokens[place].start if place < len(tokens) else len(source.text)
    raise source.error(offset, f"expected an interval such as INTERVAL '1' DAY, in one of {units}")


def _moved(moment: datetime, count: float, unit: str) -> datetime:
    if unit in _UNITS:
        return moment + count * _UNITS[unit]
    months = moment.year * 12 + moment.month - 1 + int(count) * _MONTHS[unit]
    year, month = divmod(months, 12)
    # The last day of a shorter month, as in SQL.
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)
