"""Divide texts into tokens, and read them from left to right: types, column lists, statements, filters.

Queries as such are parsed by sqlglot. The texts here are not SQL that it supports, or need exact positions, or are read
without it. Quotes and comments are the same in all of them; filters differ in words, numbers and signs.

Source:
    Flink's and Spark's lexical rules: a quote is doubled to stand for itself, ``--`` and ``/* */`` are comments,
    ``/*+ */`` is a hint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidSchemaError, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

WORD: Final = "word"
QUOTED: Final = "quoted"
"""The kind of a name in backquotes."""
TEXT: Final = "text"
ESCAPED: Final = "escaped"
"""The kind of a text with a backslash before a quote that does not end it; ``SPARK_SQL`` has them."""
NUMBER: Final = "number"
SIGN: Final = "sign"
HINT: Final = "hint"
END: Final = "end"
UNKNOWN: Final = "unknown"

BLANK: Final = r"\s+"
IN_BACK_QUOTES: Final = r"`(?:[^`]|``)*`"
IN_SINGLE_QUOTES: Final = r"'(?:[^']|'')*'"
IN_DOUBLE_QUOTES: Final = r'"(?:[^"]|"")*"'
NAME_WORD: Final = r"[^\W\d]\w*"
"""A word that does not begin with a digit."""

# Maximum length of a token or text that an error quotes.
_SHOWN_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token of a text.

    Attributes:
        kind: one of the lexer's, or ``end``; ``unknown`` for a quote or a comment that is never closed.
        text: as given in the text, with its quotes; of an unknown token its first characters.
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
        return unquoted(self.text) if self.text[:1] in _QUOTES and len(self.text) > 1 else self.text

    @property
    def word(self) -> str:
        """The text; a word in upper case. A name in quotes is equal to no keyword."""
        return self.text.upper() if self.kind == WORD else self.text

    @property
    def is_name(self) -> bool:
        """Whether it is a word or a name in backquotes."""
        return self.kind in _NAMES

    def __str__(self) -> str:
        return "the end" if self.kind == END else f"'{shortened(self.content)}'"


_QUOTES: Final = frozenset("`'\"")
_NAMES: Final = frozenset({WORD, QUOTED})


class Lexer:
    """Divides texts into tokens.

    Args:
        skip: pattern of the text between tokens, such as ``BLANK``.
        ignore_case: of letters in patterns.
        **kinds: the kinds of tokens, each with its pattern; the first that matches counts.
    """

    def __init__(self, *, skip: str, ignore_case: bool = False, **kinds: str) -> None:
        patterns = {"skip": skip, **kinds}
        self._pattern: Final = re.compile(
            "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items()),
            re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG),
        )

    def tokens(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text; a quote that is never closed is the last."""
        match = self._pattern.match
        start = 0
        while start < len(text):
            found = match(text, start)
            if found is None:
                yield Token(kind=UNKNOWN, text=text[start], start=start)
                return
            if found.lastgroup != "skip":
                yield Token(kind=found.lastgroup or UNKNOWN, text=found.group(), start=start)
            start = found.end()


def _sql(text: str, escaped: str = "(?!)") -> Lexer:
    return Lexer(
        skip=rf"{BLANK}|--[^\n\r]*|/\*(?!\+).*?\*/",
        hint=r"/\*\+.*?\*/",
        quoted=IN_BACK_QUOTES,
        text=text,
        escaped=escaped,
        number=r"[0-9]+(?:\.[0-9]+)?(?![\w])",
        word=r"\w+",
        unknown=r"/\*",
        sign=r"[^`'\"]",
    )


SQL: Final = _sql(f"{IN_SINGLE_QUOTES}|{IN_DOUBLE_QUOTES}")
"""The lexer of types, column lists and statements."""

SPARK_SQL: Final = _sql(
    text=r"""(?<=[rR])(?<!\w[rR])(?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\[^']|'')*'|"(?:[^"\\]|\\[^"]|"")*\"""",
    escaped=r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""",
)
"""The same where a backslash before a quote stands for a quote, except in raw texts such as ``r'x'``."""


def unquoted(text: str) -> str:
    """Return a text without the quotes around it, and with doubled quotes made single."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def shortened(text: str) -> str:
    """Return the beginning of a text for an error message."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


class TokenReader:
    """A cursor over the tokens of one text, left to right.

    Args:
        what: the kind of text for messages, such as "type" or "column list".

    Attributes:
        tokens: of kind END is the last. Hints are not among them.
        current: the current token.
        hints: each hint, with the index of the token after it.
    """

    def __init__(self, text: str, what: str, lexer: Lexer = SQL) -> None:
        self.text: Final = text
        self._what = what
        self.hints: list[tuple[int, Token]] = []
        self.tokens: list[Token] = []
        for token in lexer.tokens(text):
            if token.kind == HINT:
                self.hints.append((len(self.tokens), token))
            elif token.kind == UNKNOWN:
                raise self.unknown(token)
            else:
                self.tokens.append(token)
        self.tokens.append(Token(kind=END, text="", start=len(text)))
        self.place = 0
        self.current = self.tokens[0]

    def ahead(self, count: int) -> Token:
        """Return the token ``count`` places after the current one."""
        return self.tokens[min(self.place + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Return the current token and advance."""
        token = self.current
        if token.kind != END:
            self.place += 1
            self.current = self.tokens[self.place]
        return token

    def back_to(self, place: int) -> None:
        """Make the token with this index the current one."""
        self.place = place
        self.current = self.tokens[place]

    def at_words(self, *words: str) -> bool:
        """Whether the next tokens are these unquoted words, in any case."""
        return all(self.ahead(count).word == word for count, word in enumerate(words))

    def take_words(self, *words: str) -> bool:
        """Advance past these words if they are next, and return whether they were."""
        if not self.at_words(*words):
            return False
        for _ in words:
            self.take()
        return True

    def at_sign(self, sign: str) -> bool:
        """Whether the next token is this sign."""
        return self.current.text == sign

    def take_sign(self, sign: str) -> bool:
        """Advance past this sign if it is next, and return whether it was."""
        if self.current.text != sign:
            return False
        self.take()
        return True

    def expect_sign(self, sign: str, role: str) -> None:
        """Advance past this sign."""
        if not self.take_sign(sign):
            raise self.error(f"expected '{sign}' {role}")

    def expect_end(self, expected: str) -> None:
        """Check that no token is left."""
        if self.current.kind != END:
            raise self.error(f"expected {expected}")

    def error(self, expected: str, *, at: Token | None = None) -> TableStoreError:
        """Return the error with the token found at ``at`` (default: the current one) and what was expected."""
        token = at or self.current
        return InvalidSchemaError(
            f"{self._what} {shortened(self.text)!r}: found {token} at position {token.start + 1}: {expected}"
        )

    def unknown(self, token: Token) -> TableStoreError:
        """Return the error for a quote or a comment that is never closed."""
        what = f"the {'quote' if token.text in _QUOTES else 'comment'} {token.text}"
        return InvalidSchemaError(
            f"{self._what} {shortened(self.text)!r}: {what} at position {token.start + 1} is never closed"
        )
