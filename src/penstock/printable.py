"""Safe output: text without active control characters and without secrets.

Names, comments, partition values and error texts come from files written by others. On a terminal, control characters
in them would move the cursor, set the window's title or change colors; a line end would forge a log line; characters
that change the direction of text would disguise names. So everything that is printed goes through ``visible``.

Options hold passwords and keys of storages and brokers, for this engine or for others. They are stored as given and
printed masked; only ``is_secret`` decides which options are secret.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import fields
from difflib import SequenceMatcher
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Line ends and tabs in multi-line text.
_LAYOUT: Final = frozenset("\n\t")
# In addition to C0, C1 and DEL: halves of surrogate pairs, marks of direction, line and paragraph separators. JSON may
# contain the rest unescaped.
_ACTING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

# Matched against a key without dots, dashes and underscores, ignoring case: fs.s3a.secret.key,
# properties.sasl.jaas.config.
_SECRET_WORDS: Final = (
    "password", "passwd", "passphrase", "secret", "token", "accesskey", "accountkey", "privatekey", "apikey",
    "encryptionkey", "credential", "sassignature", "authorization", "cookie",
)  # fmt: skip
_SECRET: Final = re.compile("|".join((*_SECRET_WORDS, "jaas", "pwd")))
# Of the letters of a word and of a part of a key that are the same, in the same order.
_ALIKE: Final = 0.85
_JOINTS: Final = re.compile("[-_. ]")
_PAIR: Final = re.compile(r"'(?P<key>[^'\n]*)'(?P<between>\s*=\s*)'(?:[^']|'')*'?")
# In abfss://container@account, the part before the @ is not a user.
_USER: Final = re.compile(r"(?P<scheme>\b(?!abfss?://[\w$.-]+@)[A-Za-z][\w+.-]{0,30}://)[^\s/@'\"]+@")
# Up to the end of the URL, whether it has a query or not, so that a long text is searched once.
_URL: Final = re.compile(r"(?P<location>\b[A-Za-z][\w+.-]{0,30}://[^\s?'\"]*)(?P<query>\?[^\s'\"]*)?")

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")

MASK: Final = "******"
"""The text that replaces a secret."""


@lru_cache(maxsize=4_096)
def is_secret(key: str) -> bool:
    """Whether the value of an option with this key must not be shown, also if the key is misspelled."""
    squeezed = _JOINTS.sub("", key.lower())
    return _SECRET.search(squeezed) is not None or any(_is_in(word, squeezed) for word in _SECRET_WORDS)


def _is_in(word: str, text: str) -> bool:
    """Whether a part of the text is the word with a letter or two after the first wrong, missing or too many."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word)
    for start in (place for place, letter in enumerate(text) if letter == word[0]):
        for length in range(len(word) - 1, len(word) + 2):
            matcher.set_seq1(text[start : start + length])
            alike = matcher.quick_ratio()  # 1.0 if the same letters are in another order
            if alike == 1.0 or (alike >= _ALIKE and matcher.ratio() >= _ALIKE):
                return True
    return False


def mask_value(key: str, value: str) -> str:
    """Return the value of an option, masked if it is secret."""
    return MASK if is_secret(key) else mask_locations(value)


def mask_options(options: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return options with secret values masked."""
    return {key: mask_value(key, value) for key, value in options}


def mask_locations(text: str) -> str:
    """Return the text without the user, the password and the query of the URLs in it."""
    if "://" not in text:
        return text
    return _URL.sub(_without_query, _USER.sub(rf"\g<scheme>{MASK}@", text))


def _without_query(found: re.Match[str]) -> str:
    return f"{found['location']}?{MASK}" if "=" in (found["query"] or "") else found[0]


def mask_text(text: str) -> str:
    """Return a message, or SQL, with the secrets masked: in URLs, and in ``'key' = 'value'``."""
    return mask_locations(_PAIR.sub(_masked_pair, text) if "=" in text else text)


def _masked_pair(found: re.Match[str]) -> str:
    return f"'{found['key']}'{found['between']}'{MASK}'" if is_secret(found["key"]) else found[0]


def visible(text: str) -> str:
    """Return the text as one line, with control characters and direction marks escaped, such as 0x1b for ESC."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def one_line(text: str) -> str:
    """Return a message as one line, with spaces for line ends, and with secrets masked."""
    return visible(mask_text(text).replace("\n", " "))


def visible_lines(text: str) -> str:
    """Return the text like ``visible``, but keep line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in _LAYOUT else _escaped(letter) for letter in text)


def visible_json(text: str) -> str:
    """Return JSON text with terminal control characters as JSON escapes, which does not change the values."""
    return text if text.isprintable() else _ACTING.sub(_json_escaped, text)


def open_log(name: str) -> logging.Logger:
    """Return the logger of a module, whose records are one line each whatever their arguments contain."""
    log = logging.getLogger(name)
    log.addFilter(_make_visible)
    return log


def _make_visible(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(each if isinstance(each, int | float) else one_line(str(each)) for each in record.args)
    return True


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _json_escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def bytes_text(size: int) -> str:
    """Return a human-readable size, such as ``1.5 MiB``."""
    amount = float(size)
    for unit in _UNITS[:-1]:
        if amount < 1024:
            return f"{amount:.1f} {unit}" if unit != "B" else f"{size} B"
        amount /= 1024
    return f"{amount:.1f} {_UNITS[-1]}"


_ITEMS: Final = 5
_CELL: Final = 80


class Result:
    """Base of results of operations: dataclasses that are shown in a few lines, however many files they name."""

    __slots__ = ()

    def __repr__(self) -> str:
        texts = (f"{name}={_short(value)}" for name, value in _values(self))
        return f"{type(self).__name__}({', '.join(texts)})"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: a row per attribute."""
        return record_html(self)


def record_html(record: object) -> str:
    """Return a dataclass as HTML: its name, and a row per attribute."""
    rows = ((name, _short(value)) for name, value in _values(record))
    return f"<strong>{html_text(type(record).__name__)}</strong>{table_of_html((), rows)}"


def table_of_html(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return texts as a table in HTML; without a header if that is empty."""
    lines = [_row_of_html("th", header)] if header else []
    lines += [_row_of_html("td", row) for row in rows]
    return f"<table>{''.join(lines)}</table>"


def html_text(text: str) -> str:
    """Return text that HTML shows as it is, without active characters."""
    return escape(visible(text))


def cell_text(value: object) -> str:
    """Return a value as short text."""
    text = str(value)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _values(record: Any) -> Iterator[tuple[str, object]]:  # noqa: ANN401 - a dataclass
    return ((each.name, getattr(record, each.name)) for each in fields(record) if each.repr)


def _short(value: object) -> str:
    if not isinstance(value, tuple) or len(value) <= _ITEMS:
        return repr(value)
    first = ", ".join(map(repr, value[:2]))
    return f"({first}, ... {len(value):,} in all)"


def _row_of_html(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html_text(cell)}</{tag}>" for cell in cells) + "</tr>"
