"""Read the tokens of one statement; errors have line and column."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.format.types.sql import read_name, read_string
from penstock.format.types.tokens import Token, TokenKind, TokenReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.dialect.parse.script import StatementText
    from penstock.errors import InvalidSqlError

_CUTOFF: Final = 0.7
_MAX_PARTS: Final = 3
# The largest DOUBLE has 309 digits; Python refuses to parse an integer of more than 4,300.
_MAX_NUMBER_CHARACTERS: Final = 400
_UNITS: Final = ("SECOND", "MINUTE", "HOUR", "DAY", "SECONDS", "MINUTES", "HOURS", "DAYS")
_Item = TypeVar("_Item")


class StatementReader(TokenReader):
    """Reads the tokens of one statement, left to right.

    Raises:
        InvalidSqlError: a number is longer than any type allows.
    """

    def __init__(self, statement: StatementText) -> None:
        super().__init__(statement.text, "statement")
        self.statement = statement
        for token in self.tokens:
            if token.kind is TokenKind.NUMBER and len(token.text) > _MAX_NUMBER_CHARACTERS:
                raise self.error(f"a number has at most {_MAX_NUMBER_CHARACTERS} digits", at=token)

    def error(self, expected: str, *, at: Token | None = None) -> InvalidSqlError:
        """Return the error that says what was found at ``at`` (default: the current token) and what was expected."""
        token = at or self.current
        return self.statement.error(token.start, f"found {token}: {expected}")

    def expect_words(self, *words: str) -> None:
        """Take these words. Raises ``InvalidSqlError`` if other tokens are next."""
        if not self.take_words(*words):
            raise self.error(f"expected {' '.join(words)}")

    def take_any(self, *words: str) -> str | None:
        """Take one of these words and return it; return None if none of them is next."""
        for word in words:
            if self.take_words(word):
                return word
        return None

    def unexpected(self, expected: str, words: Sequence[str]) -> InvalidSqlError:
        """Return the error for the current token: the most similar of these words, or what was expected."""
        near = get_close_matches(self.current.text.upper(), words, n=1, cutoff=_CUTOFF)
        return self.error(f"did you mean {near[0]}?" if near else expected)

    def done(self) -> None:
        """Check that no token is left. Raises ``InvalidSqlError``."""
        self.expect_end("the end of the statement")

    def take_rest(self) -> tuple[str, int]:
        """Take all remaining tokens; return their text and its offset."""
        start = self.current.start
        while self.current.kind is not TokenKind.END:
            self.take()
        return self.text[start:], start


def read_path(reader: StatementReader, role: str) -> tuple[str, ...]:
    """Read a name of up to three parts, such as ``catalog.database.table``.

    Raises:
        InvalidSqlError: the next token is not a name.
    """
    parts = [_read_part(reader, role)]
    while reader.take_sign("."):
        parts.append(_read_part(reader, role))
    if len(parts) > _MAX_PARTS:
        raise reader.error(f"a name has at most {_MAX_PARTS} parts: catalog.database.table")
    return tuple(parts)


def _read_part(reader: StatementReader, role: str) -> str:
    """Read one part of a name; ``$`` and what follows it belong to it, as in ``t$branch_b``."""
    part = read_name(reader, role).text
    while reader.take_sign("$"):
        part += f"${read_name(reader, 'the name of a branch or a system table').text}"
    return part


def read_list(reader: StatementReader, read: Callable[[StatementReader], _Item], role: str) -> tuple[_Item, ...]:
    """Read items in parentheses, separated by commas; at least one."""
    reader.expect_sign("(", f"before {role}")
    items = [read(reader)]
    while reader.take_sign(","):
        items.append(read(reader))
    reader.expect_sign(")", f"after {role}")
    return tuple(items)


def read_options(reader: StatementReader) -> tuple[tuple[str, str], ...]:
    """Read ``('key' = 'value', ...)``.

    Raises:
        InvalidSqlError: the text has another form, or a key is given twice.
    """
    seen: set[str] = set()

    def read_pair(reader: StatementReader) -> tuple[str, str]:
        at = reader.current
        key = read_string(reader, "an option's key in single quotes, such as 'bucket' = '4'")
        if key in seen:
            raise reader.error(f"option '{key}' is given twice", at=at)
        seen.add(key)
        reader.expect_sign("=", f"after the key '{key}'")
        return key, read_string(reader, f"the value of '{key}' in single quotes")

    return read_list(reader, read_pair, "options")


def read_literal(reader: StatementReader) -> str | None:
    """Read a partition value: text, a number, a typed literal such as ``DATE '2026-01-01'``, or NULL (None)."""
    if reader.take_words("NULL"):
        return None
    reader.take_any("DATE", "TIMESTAMP", "TIME")
    sign = "-" if reader.take_sign("-") else ""
    kinds = {TokenKind.NUMBER} if sign else {TokenKind.NUMBER, TokenKind.STRING}
    is_boolean = reader.at_words("TRUE") or reader.at_words("FALSE")
    if reader.current.kind not in kinds and not is_boolean:
        raise reader.error("expected a literal such as '2026-01-01', 5 or NULL")
    text = reader.take().text
    return text.lower() if is_boolean else sign + text


def read_partition(reader: StatementReader) -> tuple[tuple[str, str | None], ...]:
    """Read ``(column = literal, ...)``; None is NULL.

    Raises:
        InvalidSqlError: the text has another form, or a column is given twice.
    """
    seen: set[str] = set()

    def read_pair(reader: StatementReader) -> tuple[str, str | None]:
        at = reader.current
        name = read_name(reader, "a partition column").text
        if name in seen:
            raise reader.error(f"partition column '{name}' is given twice", at=at)
        seen.add(name)
        reader.expect_sign("=", f"after the partition column '{name}', with a literal: {name} = '...'")
        return name, read_literal(reader)

    return read_list(reader, read_pair, "the partition")


def read_interval(reader: StatementReader, works: str) -> str:
    """Read an interval such as ``INTERVAL '5' SECOND``, and return its text.

    Args:
        works: text of the error message if there is no interval.

    Raises:
        InvalidSqlError: the next tokens are not an interval.
    """
    start = reader.current.start
    if not reader.take_words("INTERVAL") or reader.current.kind is not TokenKind.STRING:
        raise reader.error(works)
    reader.take()
    unit = reader.current
    if reader.take_any(*_UNITS) is None:
        raise reader.unexpected(f"expected one of the units {', '.join(_UNITS[:4])}", _UNITS)
    if not reader.take_sign("("):
        return reader.text[start : unit.start + len(unit.text)]
    reader.take()
    if reader.take_sign(","):
        reader.take()
    closing = reader.current
    reader.expect_sign(")", "after the digits of the interval")
    return reader.text[start : closing.start + 1]
