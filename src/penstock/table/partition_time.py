"""The time of a partition, parsed from its values.

Source:
    Paimon ``core:partition/PartitionTimeExtractor.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.text.partitions import partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.types.data_types import DataField

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

    Raises:
        InvalidOptionError: the pattern names no partition column, or the formatter has letters that are not
            supported.
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
