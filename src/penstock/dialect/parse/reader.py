"""Divide a script into statements and read their tokens.

Where the syntax is wrong, every function raises ``InvalidSqlError`` with line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from penstock.errors import InvalidSqlError
from penstock.format.lexer import ESCAPED, NUMBER, SPARK_SQL, SQL, TEXT, UNKNOWN, Token, TokenReader
from penstock.format.types.ddl import read_name, read_string

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.lexer import Lexer

_CUTOFF: Final = 0.7
_MAX_PARTS: Final = 3
# Python's stack limits a query to about 45 pairs of parentheses, 150 subqueries or 700 NOTs.
_MAX_DEPTH: Final = 200
_NESTED_TYPES: Final = frozenset({"ARRAY", "MAP", "STRUCT", "ROW"})
# The largest DOUBLE has 309 digits; Python refuses to parse an integer of more than 4,300.
_MAX_NUMBER_CHARACTERS: Final = 400
TOO_DEEP: Final = (
    "it is nested too deeply to be read: give inner queries names (WITH, CREATE TEMPORARY VIEW), and leave out"
    " parentheses that are not needed"
)
"""The error text for a statement that exceeds the nesting limit."""
OPTIONS_HINT: Final = re.compile(r"/\*\+\s*(?P<body>OPTIONS\s*\(.*)\*/", re.DOTALL | re.IGNORECASE)
_UNITS: Final = ("SECOND", "MINUTE", "HOUR", "DAY", "SECONDS", "MINUTES", "HOURS", "DAYS")
_Item = TypeVar("_Item")

Path: TypeAlias = tuple[str, ...]
"""A name of one to three parts: table; database and table; or catalog, database and table."""
Pairs: TypeAlias = tuple[tuple[str, str], ...]
PartitionSpec: TypeAlias = tuple[tuple[str, str | None], ...]
"""Partition columns with their values as text; None is NULL."""


class SparkText(Spark):
    """Spark's SQL; since 4.0 a doubled quote stands for a quote, too."""

    class Tokenizer(Spark.Tokenizer):
        """Tokenizer in which a doubled quote stands for a quote."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it


def text_value(token: Token) -> str | None:
    """Return a text among values as Spark reads it, with its escapes; None if it ends elsewhere for Spark."""
    if "\\" not in token.text:
        return token.content
    try:
        (found,) = SparkText().tokenize(token.text)
    except (SqlglotError, ValueError):
        return None
    return found.text


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementText:
    """The text of one statement, and its position in the script.

    Attributes:
        text: the statement without the semicolon and without the blanks and comments around it.
        line: line of its first character in the script, from 1.
        column: column of its first character, from 1.
        lexer: how it is divided into tokens.
    """

    text: str
    line: int = 1
    column: int = 1
    lexer: Lexer = SQL

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column in the script for an offset in the statement."""
        before = self.text[:offset]
        lines = before.count("\n")
        last = before.rpartition("\n")[2]
        return self.line + lines, len(last) + (1 if lines else self.column)

    def part(self, start: int, end: int | None = None) -> StatementText:
        """Return a part of the statement."""
        line, column = self.place(start)
        return replace(self, text=self.text[start:end], line=line, column=column)

    def error(self, offset: int, problem: str) -> InvalidSqlError:
        """Return an error with the line and column of an offset in the statement."""
        line, column = self.place(offset)
        return InvalidSqlError(f"line {line}, column {column}: {problem}")


def split_script(script: str, lexer: Lexer = SQL) -> tuple[StatementText, ...]:
    """Split a script at the semicolons outside of quotes and comments; skip empty statements."""
    whole = StatementText(text=script, lexer=lexer)
    statements: list[StatementText] = []
    first: int | None = None
    last = 0
    for token in lexer.tokens(script):
        if token.kind == UNKNOWN:
            raise _unclosed(whole, token)
        if token.text != ";":
            first = token.start if first is None else first
            last = token.end
        elif first is not None:
            statements.append(whole.part(first, last))
            first = None
    return tuple(statements) if first is None else (*statements, whole.part(first, last))


def is_whole(script: str) -> bool:
    """Whether every statement of a script ends with a semicolon."""
    readings = [list(lexer.tokens(script)) for lexer in (SQL, SPARK_SQL)]
    return any(
        all(token.kind != UNKNOWN for token in tokens) and (not tokens or tokens[-1].text == ";") for tokens in readings
    )


def _unclosed(source: StatementText, token: Token) -> InvalidSqlError:
    return source.error(token.start, f"{token.text} is never closed")


def _check_depth(statement: StatementText, tokens: Sequence[Token]) -> None:
    # Where sqlglot is compiled, deep trees end the process instead of raising ``RecursionError``.
    depth = indexes = types = 0
    before = ""
    for token in tokens:
        match token.text:
            case "(" | "[":
                depth += 1
                indexes = indexes + 1 if before == "]" else 0
            case ")" | "]":
                depth -= 1
            case "<" if before in _NESTED_TYPES:
                types += 1
            case ">":
                types = max(types - 1, 0)
            case _:
                pass
        if max(depth, indexes, types) > _MAX_DEPTH:
            raise statement.error(token.start, TOO_DEEP)
        before = token.word


class StatementReader(TokenReader):
    """Reads the tokens of one statement; limits the digits of numbers and the depth of brackets."""

    def __init__(self, statement: StatementText) -> None:
        self.statement: Final = statement
        super().__init__(statement.text, "statement", statement.lexer)
        _check_depth(statement, self.tokens)
        for token in self.tokens:
            if token.kind == NUMBER and len(token.text) > _MAX_NUMBER_CHARACTERS:
                raise self.error(f"a number has at most {_MAX_NUMBER_CHARACTERS} digits", at=token)

    def error(self, expected: str, *, at: Token | None = None) -> InvalidSqlError:
        """Return the error that says what was found at ``at`` (default: the current token) and what was expected."""
        token = at or self.current
        return self.statement.error(token.start, f"found {token}: {expected}")

    def unknown(self, token: Token) -> InvalidSqlError:
        """Return the error for a quote or a comment that is never closed."""
        return _unclosed(self.statement, token)

    @property
    def hint(self) -> Token | None:
        """The hint between the previous token and the current one; None if there is none."""
        return next((hint for place, hint in self.hints if place == self.place), None)

    def expect_words(self, *words: str) -> None:
        """Take these words. Raises ``InvalidSqlError`` if other tokens are next."""
        if not self.take_words(*words):
            raise self.error(f"expected {' '.join(words)}")

    def take_any(self, *words: str) -> str | None:
        """Take one of these words and return it; return None if none of them is next."""
        word = self.current.word
        return self.take().word if word in words else None

    def unexpected(self, expected: str, words: Sequence[str]) -> InvalidSqlError:
        """Return the error for the current token: the most similar of these words, or what was expected."""
        near = get_close_matches(self.current.content.upper(), words, n=1, cutoff=_CUTOFF)
        return self.error(f"did you mean {near[0]}?" if near else expected)

    def done(self) -> None:
        """Check that no token is left, and no hint with options. Raises ``InvalidSqlError``."""
        self.expect_end("the end of the statement")
        self.check_hints()

    def check_hints(self) -> None:
        """Check that all hints with options were taken. Raises ``InvalidSqlError``."""
        for _, hint in self.hints:
            if OPTIONS_HINT.match(hint.text):
                raise self.misplaced(hint)

    def misplaced(self, hint: Token) -> InvalidSqlError:
        """Return the error for a hint with options that belongs to no table."""
        return self.statement.error(hint.start, "this hint follows no table; expected t /*+ OPTIONS('k' = 'v') */")

    def take_rest(self) -> StatementText:
        """Take all remaining tokens and the hints between them; return their text."""
        rest = self.statement.part(self.current.start)
        self.hints = [(place, hint) for place, hint in self.hints if place <= self.place]
        self.back_to(len(self.tokens) - 1)
        return rest


def read_path(reader: StatementReader, role: str) -> Path:
    """Read a name of up to three parts, such as ``catalog.database.table``."""
    parts = [_read_part(reader, role)]
    while reader.take_sign("."):
        parts.append(_read_part(reader, role))
    if len(parts) > _MAX_PARTS:
        raise reader.error(f"a name has at most {_MAX_PARTS} parts: catalog.database.table")
    return tuple(parts)


def _read_part(reader: StatementReader, role: str) -> str:
    """Read one part of a name; ``$`` and what follows it belong to it, as in ``t$branch_b``."""
    part = read_name(reader, role)
    while reader.take_sign("$"):
        part += f"${read_name(reader, 'the name of a branch or a system table')}"
    return part


def read_list(reader: StatementReader, read: Callable[[StatementReader], _Item], role: str) -> tuple[_Item, ...]:
    """Read items in parentheses, separated by commas; at least one."""
    reader.expect_sign("(", f"before {role}")
    items = [read(reader)]
    while reader.take_sign(","):
        items.append(read(reader))
    reader.expect_sign(")", f"after {role}")
    return tuple(items)


def read_names(reader: StatementReader, role: str) -> tuple[str, ...]:
    """Read names of columns in parentheses."""
    return read_list(reader, lambda inner: read_name(inner, "a column"), role)


def read_options(reader: StatementReader) -> Pairs:
    """Read ``('key' = 'value', ...)``."""
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
    boolean = None if sign else reader.take_any("TRUE", "FALSE")
    if boolean is not None:
        return boolean.lower()
    if reader.current.kind not in ({NUMBER} if sign else {NUMBER, TEXT, ESCAPED}):
        raise reader.error("expected a literal such as '2026-01-01', 5 or NULL")
    at = reader.take()
    text = text_value(at)
    if text is None:
        raise reader.error("Flink and Spark read this differently: leave out backslashes before quotes", at=at)
    return sign + text


def read_partition(reader: StatementReader) -> PartitionSpec:
    """Read ``(column = literal, ...)``; None is NULL."""
    seen: set[str] = set()

    def read_pair(reader: StatementReader) -> tuple[str, str | None]:
        at = reader.current
        name = read_name(reader, "a partition column")
        if name in seen:
            raise reader.error(f"partition column '{name}' is given twice", at=at)
        seen.add(name)
        reader.expect_sign("=", f"after the partition column '{name}', with a literal: {name} = '...'")
        return name, read_literal(reader)

    return read_list(reader, read_pair, "the partition")


def read_interval(reader: StatementReader, expected: str) -> str:
    """Read an interval such as ``INTERVAL '5' SECOND``, and return its text.

    Args:
        expected: text of the error message if there is no interval.
    """
    start = reader.current.start
    if not reader.take_words("INTERVAL") or reader.current.kind != TEXT:
        raise reader.error(expected)
    reader.take()
    unit = reader.current
    if reader.take_any(*_UNITS) is None:
        raise reader.unexpected(f"expected one of the units {', '.join(_UNITS[:4])}", _UNITS)
    if not reader.take_sign("("):
        return reader.text[start : unit.end]
    reader.take()
    if reader.take_sign(","):
        reader.take()
    closing = reader.current
    reader.expect_sign(")", "after the digits of the interval")
    return reader.text[start : closing.end]
