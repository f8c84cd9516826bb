"""Split a script into statements, each with its position in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.errors import InvalidSqlError
from penstock.format.lexer import BLANK, COMMENT_BUT_NO_HINT, HINT, IN_QUOTES, Lexer

_LEXER: Final = Lexer(
    skip=f"{BLANK}|{COMMENT_BUT_NO_HINT}",
    hint=HINT,
    quoted=IN_QUOTES,
    end=";",
    open=r"[`'\"]|/\*",
    other=r"[^\s`'\";/(){}\[\]-]+|.",
)
# Python's stack limits a query to about 45 pairs of parentheses, 150 subqueries or 700 NOTs.
_MAX_DEPTH: Final = 200
TOO_DEEP: Final = (
    "it is nested too deeply to be read: give inner queries names (WITH, CREATE TEMPORARY VIEW), and leave out"
    " parentheses that are not needed"
)
"""The error text for a statement that exceeds the nesting limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementText:
    """The text of one statement, and its position in the script.

    Attributes:
        text: the statement without the semicolon and without the blanks and comments around it.
        line: line of its first character in the script, from 1.
        column: column of its first character, from 1.
    """

    text: str
    line: int = 1
    column: int = 1

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column in the script for an offset in the statement."""
        before = self.text[:offset]
        lines = before.count("\n")
        last = before.rpartition("\n")[2]
        return self.line + lines, len(last) + (1 if lines else self.column)

    def error(self, offset: int, problem: str) -> InvalidSqlError:
        """Return an error with the line and column of an offset in the statement."""
        line, column = self.place(offset)
        return InvalidSqlError(f"line {line}, column {column}: {problem}")


def split_script(script: str) -> tuple[StatementText, ...]:
    """Split a script at the semicolons outside of quotes and comments; skip empty statements.

    Raises:
        InvalidSqlError: a quote or a comment is not closed.
    """
    whole = StatementText(text=script)
    statements: list[StatementText] = []
    first: int | None = None
    last = 0
    for piece in _LEXER.pieces(script):
        if piece.kind == "open":
            raise whole.error(piece.start, f"{piece.text} is never closed")
        if piece.kind == "end" and first is not None:
            statements.append(_cut(whole, first, last))
            first = None
        elif piece.kind in {"hint", "quoted", "other"}:
            first = piece.start if first is None else first
            last = piece.end
    if first is not None:
        statements.append(_cut(whole, first, last))
    return tuple(statements)


def check_depth(source: StatementText) -> None:
    """Raise ``InvalidSqlError`` if a statement has more nested brackets than a parser can handle."""
    depth = 0
    for piece in _LEXER.pieces(source.text):
        if piece.kind == "other":
            depth += (piece.text in "([") - (piece.text in ")]")
        if depth > _MAX_DEPTH:
            raise source.error(piece.start, TOO_DEEP)


def is_whole(script: str) -> bool:
    """Whether every statement of a script ends with a semicolon."""
    last = "end"
    for piece in _LEXER.pieces(script):
        if piece.kind == "open":
            return False
        last = piece.kind
    return last == "end"


def _cut(whole: StatementText, first: int, last: int) -> StatementText:
    line, column = whole.place(first)
    return StatementText(text=whole.text[first:last], line=line, column=column)
