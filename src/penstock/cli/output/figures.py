"""Values of metadata as text for people: one way to write counts, sizes, durations, ids, times and lists.

Counts have thousands separators, sizes and durations have units; ids have neither, because they are typed again. Times
have a zone. The name of a value in JSON, which ends in its unit, says what it is. JSON and CSV have the exact values.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from penstock.cli.draw.labels import SECOND, duration_words, instant_words
from penstock.format.snapshot import ids_text
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.cli.output.plain import Plain

_SIZE: Final = re.compile(r"(^|_)(bytes|size)(_|$)")
_ID: Final = re.compile(r"(^|_)(id|bucket|number|snapshot)$")
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")


def figure_text(name: str, value: Plain) -> str:
    """Return a value as one line of text; empty for null.

    Args:
        name: of the value in JSON. A list of integers is one of ids.
    """
    text = ""
    match value:
        case None:
            pass
        case bool():
            text = "yes" if value else "no"
        case int() | float():
            text = _number_text(name, value)
        case str():
            instant = _INSTANT.fullmatch(value)
            text = value if instant is None else f"{instant[1]} {instant[2]}{instant[3]}"
        case []:
            text = "none"
        case list() if all(isinstance(each, str) for each in value):
            text = ", ".join(map(str, value))
        case list() if all(isinstance(each, int) for each in value):
            text = ids_text(_ranges(sorted(each for each in value if isinstance(each, int))))
        case _:
            text = json.dumps(value, ensure_ascii=False)
    return text


def is_figure(value: Plain) -> bool:
    """Whether a value is a number or a time, which are aligned right and never wrapped."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and _INSTANT.fullmatch(value) is not None)


def _number_text(name: str, value: float) -> str:
    if _SIZE.search(name):
        return bytes_text(int(value))
    if name.endswith("_ms"):
        return duration_words(value)
    if name.endswith("seconds"):
        return duration_words(value * SECOND)
    if name == "watermark":
        return instant_words(int(value))
    return str(value) if _ID.search(name) else f"{value:,}"


def _ranges(ids: Sequence[int]) -> Iterator[range]:
    start = 0
    for place, each in enumerate(ids):
        if place + 1 == len(ids) or ids[place + 1] != each + 1:
            yield range(ids[start], each + 1)
            start = place + 1
