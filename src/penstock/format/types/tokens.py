"""Words, quotes and signs of a type or column list, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidSchemaError, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


class TokenKind(Enum):
    """What a token is."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token.

    Attributes:
        text: what it stands for: quotes taken off and doubled quotes made single.
        start: place of its first character in the source text, from 0.
    """

    kind: TokenKind
    text: str
    start: int

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else f"'{_shortened(self.text)}'"


_TOKEN: Final = re.compile(
    r"""(?P<SKIP>\s+|--[^\n]*|/\*.*?\*/)
      |`(?P<QUOTED>(?:[^`]|``)*)`
      |'(?P<SINGLE>(?:[^']|'')*)'
      |"(?P<DOUBLE>(?:[^"]|"")*)"
      |(?P<NUMBER>[0-9]+(?:\.[0-9]+)?(?![\w]))
      |(?P<WORD>\w+)
      |(?P<SIGN>[^`'"])""",
    re.VERBOSE | re.DOTALL,
)
# What an error quotes of a token or a text.
_SHOWN_CHARACTERS: Final = 200
_KINDS: Final = {
    "QUOTED": (TokenKind.QUOTED, "`"),
    "SINGLE": (TokenKind.STRING, "'"),
    "DOUBLE": (TokenKind.STRING, '"'),
    "NUMBER": (TokenKind.NUMBER, ""),
    "WORD": (TokenKind.WORD, ""),
    "SIGN": (TokenKind.SIGN, ""),
}


def _tokens(text: str, what: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise InvalidSchemaError(
                f"{what} {_shortened(text)!r}: the quote {text[place]} at position {place + 1} is never closed"
            )
        group = match.lastgroup or "SKIP"
        if group != "SKIP":
            kind, quote = _KINDS[group]
            content = match.group(group)
            yield Token(kind=kind, text=content.replace(quote * 2, quote) if quote else content, start=place)
        place = match.end()
    yield Token(kind=TokenKind.END, text="", start=len(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


class TokenReader:
    """Walks the tokens of one text, left to right.

    Args:
        what: names the text in messages, such as "type" or "column list".

    Raises:
        InvalidSchemaError: a quote is never closed.
    """

    def __init__(self, text: str, what: str) -> None:
        self.text = text
        self._what = what
        self.tokens = tuple(_tokens(text, what))
        self._next = 0

    @property
    def current(self) -> Token:
        """The token that comes next; of kind END after the last."""
        return self.tokens[self._next]

    def ahead(self, count: int) -> Token:
        """Return the token ``count`` places after the current one."""
        return self.tokens[min(self._next + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Return the current token and step over it."""
        token = self.current
        if token.kind is not TokenKind.END:
            self._next += 1
        return token

    def at_words(self, *words: str) -> bool:
        """Whether the next tokens are these unquoted words, in any case."""
        return all(
            self.ahead(place).kind is TokenKind.WORD and self.ahead(place).text.upper() == word
            for place, word in enumerate(words)
        )

    def take_words(self, *words: str) -> bool:
        """Step over these words if they come next; otherwise stay."""
        if not self.at_words(*words):
            return False
        for _ in words:
            self.take()
        return True

    def at_sign(self, sign: str) -> bool:
        """Whether the next token is this sign."""
        return self.current.kind is TokenKind.SIGN and self.current.text == sign

    def take_sign(self, sign: str) -> bool:
        """Step over this sign if it comes next; otherwise stay."""
        if not self.at_sign(sign):
            return False
        self.take()
        return True

    def expect_sign(self, sign: str, role: str) -> None:
        """Step over this sign.

        Raises:
            InvalidSchemaError: something else comes next.
        """
        if not self.take_sign(sign):
            raise self.error(f"expected '{sign}' {role}")

    def expect_end(self, expected: str) -> None:
        """Check that nothing is left.

        Raises:
            InvalidSchemaError: something is.
        """
        if self.current.kind is not TokenKind.END:
            raise self.error(f"expected {expected}")

    def error(self, expected: str, *, at: Token | None = None) -> TableStoreError:
        """Return the error that says what was found at ``at`` (default: the current token) and what was expected."""
        token = at or self.current
        return InvalidSchemaError(
            f"{self._what} {_shortened(self.text)!r}: found {token} at position {token.start + 1}: {expected}"
        )
