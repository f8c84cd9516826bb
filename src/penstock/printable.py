"""What may be printed: text whose characters act on nothing that shows it.

Names, comments, partition values and error texts come from files that others wrote. On a terminal, control characters
in them would move the cursor, set the window's title or colour what follows; a line end would forge a line of a log;
characters that change the direction of text show names as others. So all that is printed goes through ``visible``.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Final

# Line ends and tabs of a text that has lines.
_LAYOUT: Final = frozenset("\n\t")
# Beside C0, C1 and DEL: halves of surrogate pairs, marks of direction, line and paragraph separators. JSON may hold
# the rest as it is.
_ACTING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """Return the text as one line, with control characters and marks of direction spelled out, such as ESC as 0x1b."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def one_line(text: str) -> str:
    """Return a message like ``visible``, with blanks for the line ends."""
    return visible(text.replace("\n", " "))


def visible_lines(text: str) -> str:
    """Return the text like ``visible``, with its line ends and tabs as they are."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in _LAYOUT else _escaped(letter) for letter in text)


def visible_json(text: str) -> str:
    """Return JSON text with what acts on a terminal as escapes of JSON: the values are the same."""
    return text if text.isprintable() else _ACTING.sub(_json_escaped, text)


def open_log(name: str) -> logging.Logger:
    """Return the logger of a module, whose records are one line each whatever stands in their arguments."""
    log = logging.getLogger(name)
    log.addFilter(_make_visible)
    return log


def _make_visible(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(each if isinstance(each, int | float) else visible(str(each)) for each in record.args)
    return True


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _json_escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
