"""The lexer of all texts that Penstock parses itself: column lists, statements, queries, filters.

Queries as such are parsed by sqlglot. The texts here are not SQL that it supports, or need exact positions. Quotes and
comments are the same in all of them; words, numbers and signs differ by language.

Source:
    Flink's and Spark's lexical rules: a quote is doubled to stand for itself, ``--`` and ``/* */`` are comments,
    ``/*+ */`` is a hint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BLANK: Final = r"\s+"
COMMENT: Final = r"--[^\n]*|/\*.*?\*/"
COMMENT_BUT_NO_HINT: Final = r"--[^\n]*|/\*(?!\+).*?\*/"
HINT: Final = r"/\*\+.*?\*/"
IN_BACK_QUOTES: Final = r"`(?:[^`]|``)*`"
IN_SINGLE_QUOTES: Final = r"'(?:[^']|'')*'"
IN_DOUBLE_QUOTES: Final = r'"(?:[^"]|"")*"'
IN_QUOTES: Final = f"{IN_BACK_QUOTES}|{IN_SINGLE_QUOTES}|{IN_DOUBLE_QUOTES}"
NAME_WORD: Final = r"[^\W\d]\w*"
"""A word that does not begin with a digit."""

_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of a text.

    Attributes:
        kind: one of the lexer's; ``unknown`` where no piece starts, such as at a quote that is never closed.
        text: as given in the text, with its quotes; of an unknown piece the first character.
        start: position of its first character, from 0.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Position after its last character."""
        return self.start + len(self.text)

    @property
    def content(self) -> str:
        """The text without its quotes, and with doubled quotes made single; other texts as they are."""
        return unquoted(self.text) if self.text[:1] in {"`", "'", '"'} and len(self.text) > 1 else self.text


class Lexer:
    """Divides texts into pieces.

    Args:
        skip: pattern of the text between pieces, such as ``BLANK``.
        ignore_case: of letters in patterns.
        **kinds: the kinds of pieces, each with its pattern; the first that matches counts.
    """

    def __init__(self, *, skip: str, ignore_case: bool = False, **kinds: str) -> None:
        patterns = {"skip": skip, **kinds}
        self._pattern: Final = re.compile(
            "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items()),
            re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG),
        )

    def pieces(self, text: str, start: int = 0) -> Iterator[Piece]:
        """Yield the pieces of a text from a position on; an unknown piece is the last."""
        match = self._pattern.match
        while start < len(text):
            found = match(text, start)
            if found is None:
                yield Piece(kind=_UNKNOWN, text=text[start], start=start)
                return
            if found.lastgroup != "skip":
                yield Piece(kind=found.lastgroup or _UNKNOWN, text=found.group(), start=start)
            start = found.end()


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, and with doubled quotes made single."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)
