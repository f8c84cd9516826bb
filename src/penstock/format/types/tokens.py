"""Tokenize a type or column list: words, quoted texts and signs, each with its position."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidSchemaError, TableStoreError
from penstock.format.lexer import BLANK, COMMENT, IN_BACK_QUOTES, IN_DOUBLE_QUOTES, IN_SINGLE_QUOTES, Lexer

if TYPE_CHECKING:
    from collections.abc import Iterator


class TokenKind(Enum):
    """Kind of a token."""

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
        text: its content, without quotes, and with doubled quotes made single.
        start: position of its first character in the source text, from 0.
    """

    kind: TokenKind
    text: str
    start: int

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else f"'{_shortened(self.text)}'"


_LEXER: Final = Lexer(
    skip=f"{BLANK}|{COMMENT}",
    QUOTED=IN_BACK_QUOTES,
    STRING=f"{IN_SINGLE_QUOTES}|{IN_DOUBLE_QUOTES}",
    NUMBER=r"[0-9]+(?:\.[0-9]+)?(?![\w])",
    WORD=r"\w+",
    SIGN=r"[^`'\"]",
)
# Maximum length of a token or text that an error quotes.
_SHOWN_CHARACTERS: Final = 200
_QUOTED: Final = frozenset({TokenKind.QUOTED, TokenKind.STRING})


def _tokens(text: str, what: str) -> Iterator[Token]:
    for piece in _LEXER.pieces(text):
        kind = TokenKind.__members__.get(piece.kind)
        if kind is None:
            raise InvalidSchemaError(
                f"{what} {_shortened(text)!r}: the quote {piece.text} at position {piece.start + 1} is never closed"
            )
        yield Token(kind=kind, text=piece.content if kind in _QUOTED else piece.text, start=piece.start)
    yield Token(kind=TokenKind.END, text="", start=len(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


class TokenReader:
    """A cursor over the tokens of one text, left to right.

    Args:
        what: the kind of text for messages, such as "type" or "column list".

    Raises:
        InvalidSchemaError: a quote is not closed.
    """

    def __init__(self, text: str, what: str) -> None:
        self.text = text
        self._what = what
        self.tokens = tuple(_tokens(text, what))
        self._next = 0

    @property
    def current(self) -> Token:
        """The current token; of kind END after the last one."""
        return self.tokens[self._next]

    def ahead(self, count: int) -> Token:
        """Return the token ``count`` places after the current one."""
        return self.tokens[min(self._next + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Return the current token and advance."""
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
        """Advance past these words if they are next, and return whether they were."""
        if not self.at_words(*words):
            return False
        for _ in words:
            self.take()
        return True

    def at_sign(self, sign: str) -> bool:
        """Whether the next token is this sign."""
        return self.current.kind is TokenKind.SIGN and self.current.text == sign

    def take_sign(self, sign: str) -> bool:
        """Advance past this sign if it is next, and return whether it was."""
        if not self.at_sign(sign):
            return False
        self.take()
        return True

    def expect_sign(self, sign: str, role: str) -> None:
        """Advance past this sign.

        Raises:
            InvalidSchemaError: the next token is another one.
        """
        if not self.take_sign(sign):
            raise self.error(f"expected '{sign}' {role}")

    def expect_end(self, expected: str) -> None:
        """Check that no token is left.

        Raises:
            InvalidSchemaError: a token is left.
        """
        if self.current.kind is not TokenKind.END:
            raise self.error(f"expected {expected}")

    def error(self, expected: str, *, at: Token | None = None) -> TableStoreError:
        """Return the error with the token found at ``at`` (default: the current one) and what was expected."""
        token = at or self.current
        return InvalidSchemaError(
            f"{self._what} {_shortened(self.text)!r}: found {token} at position {token.start + 1}: {expected}"
        )
