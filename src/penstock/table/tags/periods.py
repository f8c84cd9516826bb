"""Periods of automatic tags, and the names of these tags.

Source:
    Paimon ``core:tag/TagPeriodHandler.java``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import InvalidOptionError
from penstock.options import TagFormatter, TagPeriod, format_duration_ms

if TYPE_CHECKING:
    from penstock.options import TagOptions

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks without a zone
_MILLI: Final = timedelta(milliseconds=1)
_TWO_HOURS: Final = "yyyy-MM-dd HH"
_DURATION: Final = "yyyyMMddHHmm"
_HOURLY: Final = {
    TagFormatter.WITH_DASHES: "yyyy-MM-dd HH",
    TagFormatter.WITHOUT_DASHES: "yyyyMMdd HH",
    TagFormatter.WITHOUT_DASHES_AND_SPACES: "yyyyMMddHH",
}
_DAILY: Final = {
    TagFormatter.WITH_DASHES: "yyyy-MM-dd",
    TagFormatter.WITHOUT_DASHES: "yyyyMMdd",
    TagFormatter.WITHOUT_DASHES_AND_SPACES: "yyyyMMdd",
}


class _Field(NamedTuple):
    text: str
    directive: str


# strftime would not fill years up to four digits.
_FIELDS: Final = {
    "yyyy": _Field("{0.year:04}", "%Y"),
    "MM": _Field("{0.month:02}", "%m"),
    "dd": _Field("{0.day:02}", "%d"),
    "HH": _Field("{0.hour:02}", "%H"),
    "mm": _Field("{0.minute:02}", "%M"),
}
_FIELD: Final = re.compile("|".join(_FIELDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPeriods:
    """Periods of one length, counted from 1970-01-01 on the wall clock.

    Attributes:
        length_ms: of a period.
        pattern: of the names, in the letters of Java.
    """

    length_ms: int
    pattern: str

    @property
    def length(self) -> timedelta:
        """Of a period."""
        return timedelta(milliseconds=self.length_ms)

    def last_ended(self, time: datetime) -> datetime:
        """Return the beginning of the last period that has ended at a time."""
        millis = (time - _EPOCH) // _MILLI
        count = abs(millis) // self.length_ms
        # Towards zero, as Java divides.
        return _EPOCH + ((count if millis >= 0 else -count) - 1) * self.length

    def name_of(self, beginning: datetime) -> str:
        """Return the name of a period's tag."""
        return _FIELD.sub(lambda match: _FIELDS[match.group()].text.format(beginning), self.pattern)

    def beginning_of(self, name: str) -> datetime | None:
        """Return the beginning of the period of a tag's name; None for a tag of another kind.

        For daily periods only the text before a space is parsed, so names of hourly tags count as days, too.
        """
        text = name if "HH" in self.pattern else name.split(" ", maxsplit=1)[0]
        digits = _FIELD.sub(lambda match: rf"\d{{{len(match.group())}}}", self.pattern)
        if not re.fullmatch(digits, text, re.ASCII):
            return None
        try:
            return datetime.strptime(text, _FIELD.sub(lambda match: _FIELDS[match.group()].directive, self.pattern))  # noqa: DTZ007 - a wall clock
        except ValueError:
            return None


def tag_periods(options: TagOptions, table: str) -> TagPeriods:
    """Return the periods in a table's options.

    Raises:
        InvalidOptionError: the delay is as long as a period, or longer.
    """
    if options.creation_period_duration_ms is not None:
        periods = TagPeriods(length_ms=options.creation_period_duration_ms, pattern=_DURATION)
    elif options.creation_period is TagPeriod.DAILY:
        periods = TagPeriods(length_ms=86_400_000, pattern=_DAILY[options.period_formatter])
    elif options.creation_period is TagPeriod.HOURLY:
        periods = TagPeriods(length_ms=3_600_000, pattern=_HOURLY[options.period_formatter])
    else:
        periods = TagPeriods(length_ms=7_200_000, pattern=_TWO_HOURS)
    if options.creation_delay_ms >= periods.length_ms:
        raise InvalidOptionError(
            f"table {table}: option 'tag.creation-delay' = '{format_duration_ms(options.creation_delay_ms)}': expected "
            f"less than the period of the tags, {format_duration_ms(periods.length_ms)}"
        )
    return periods
