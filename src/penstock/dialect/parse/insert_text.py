"""Read ``INSERT`` statements."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import read_list, read_partition, read_path
from penstock.dialect.parse.script import StatementText
from penstock.dialect.parse.statements import Insert
from penstock.dialect.parse.tables import strip_hint
from penstock.format.types.sql import read_name
from penstock.format.types.tokens import TokenKind
from penstock.predicate.literals import parse_time_text, parse_timestamp_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dialect.parse.names import Pairs
    from penstock.dialect.parse.reader import StatementReader


def read_insert(reader: StatementReader) -> Insert:
    """Read what follows ``INSERT``.

    Raises:
        InvalidSqlError: the statement has a syntax error.
    """
    how = reader.take_any("INTO", "OVERWRITE")
    if how is None:
        raise reader.error("expected INTO or OVERWRITE")
    reader.take_words("TABLE")
    last = reader.current
    name = read_path(reader, "a table's name")
    options = _hint_between(reader, last.start)
    if reader.at_words("REPLACE"):
        raise reader.error("rows are replaced by partition: INSERT OVERWRITE t PARTITION (dt = '…') SELECT …")
    partition = read_partition(reader) if reader.take_words("PARTITION") else ()
    columns: tuple[str, ...] = ()
    if reader.at_sign("(") and not _is_query(reader, 1):
        columns = read_list(reader, lambda inner: read_name(inner, "a column").text, "the columns")
    target = Insert(name=name, options=options, partition=partition, columns=columns, is_overwrite=how == "OVERWRITE")
    return _with_rows(reader, target)


def _with_rows(reader: StatementReader, target: Insert) -> Insert:
    if not _is_query(reader, 0) and not reader.at_words("VALUES") and not reader.at_sign("("):
        raise reader.error("expected SELECT, WITH or VALUES")
    start = reader.current.start
    rows = _literal_rows(reader) if reader.at_words("VALUES") else None
    reader.take_rest()
    if rows is not None:
        return replace(target, rows=rows)
    line, column = reader.statement.place(start)
    return replace(target, query=parse_query(StatementText(text=reader.text[start:], line=line, column=column)))


def _hint_between(reader: StatementReader, start: int) -> Pairs:
    """Return the options of the hint directly before the current token."""
    source = reader.statement
    hint = source.text.find("/*+", start, reader.current.start)
    return () if hint < 0 else strip_hint(source, hint)[0]


def _is_query(reader: StatementReader, ahead: int) -> bool:
    token = reader.ahead(ahead)
    return token.kind is TokenKind.WORD and token.text.upper() in {"SELECT", "WITH"}


def _literal_rows(reader: StatementReader) -> tuple[tuple[object, ...], ...] | None:
    """Read a ``VALUES`` of literals; return None if it has expressions, which need Spark."""
    reader.take_words("VALUES")
    rows: list[tuple[object, ...]] = []
    while not rows or reader.take_sign(","):
        row = _literal_row(reader)
        if row is None:
            return None
        rows.append(row)
    return tuple(rows) if reader.current.kind is TokenKind.END else None


def _literal_row(reader: StatementReader) -> tuple[object, ...] | None:
    if not reader.take_sign("("):
        return None
    row: list[object] = []
    while not row or reader.take_sign(","):
        found = _literal(reader)
        if found is None:
            return None
        row.append(found[0])
    return tuple(row) if reader.take_sign(")") else None


def _literal(reader: StatementReader) -> tuple[object] | None:
    """Read one literal; return None if the next tokens are not a literal."""
    word = reader.take_any(*_WORDS)
    if word is not None:
        return (_WORDS[word],)
    kind = reader.current.text.upper() if reader.ahead(1).kind is TokenKind.STRING else ""
    if kind in _TYPED and reader.current.kind is TokenKind.WORD:
        reader.take()
        at = reader.take()
        try:
            return (_TYPED[kind](at.text),)
        except ValueError:
            raise reader.error(f"this is not a valid {kind}", at=at) from None
    if reader.current.kind is TokenKind.STRING:
        return (reader.take().text,)
    sign = "-" if reader.take_sign("-") else ""
    if reader.current.kind is not TokenKind.NUMBER:
        return None
    # The sign is added to the text: negating a Decimal would round it to 28 digits.
    text = sign + reader.take().text
    return (Decimal(text) if "." in text else int(text),)


_WORDS: Final[dict[str, object]] = {"TRUE": True, "FALSE": False, "NULL": None}
_TYPED: Final[dict[str, Callable[[str], object]]] = {
    "DATE": dt.date.fromisoformat,
    "TIME": parse_time_text,
    "TIMESTAMP": parse_timestamp_text,
    "X": bytes.fromhex,
}
