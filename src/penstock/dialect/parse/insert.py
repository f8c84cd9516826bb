"""Read ``INSERT`` statements.

Where the syntax is wrong, every function raises ``InvalidSqlError`` with line and column.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import read_names, read_partition, read_path, text_value
from penstock.dialect.parse.statements import Insert
from penstock.dialect.parse.tables import read_hint
from penstock.format.lexer import END, ESCAPED, NUMBER, TEXT
from penstock.predicate.literals import TYPED_LITERALS

if TYPE_CHECKING:
    from penstock.dialect.parse.reader import Pairs, StatementReader


def read_insert(reader: StatementReader) -> Insert:
    """Read what follows ``INSERT``."""
    how = reader.take_any("INTO", "OVERWRITE")
    if how is None:
        raise reader.error("expected INTO or OVERWRITE")
    reader.take_words("TABLE")
    name = read_path(reader, "a table's name")
    options: Pairs = ()
    while reader.hint is not None:
        options += read_hint(reader)
    if reader.at_words("REPLACE"):
        raise reader.error("rows are replaced by partition: INSERT OVERWRITE t PARTITION (dt = '…') SELECT …")
    partition = read_partition(reader) if reader.take_words("PARTITION") else ()
    columns: tuple[str, ...] = ()
    if reader.at_sign("(") and reader.ahead(1).word not in _QUERIES:
        columns = read_names(reader, "the columns")
    target = Insert(name=name, options=options, partition=partition, columns=columns, is_overwrite=how == "OVERWRITE")
    return _with_rows(reader, target)


def _with_rows(reader: StatementReader, target: Insert) -> Insert:
    if reader.current.word not in {*_QUERIES, "VALUES", "("}:
        raise reader.error("expected SELECT, WITH or VALUES")
    place = reader.place
    rows = _literal_rows(reader) if reader.at_words("VALUES") else None
    if rows is not None:
        return replace(target, rows=rows)
    reader.back_to(place)
    return replace(target, query=parse_query(reader.take_rest()))


def _literal_rows(reader: StatementReader) -> tuple[tuple[object, ...], ...] | None:
    """Read a ``VALUES`` of literals; return None if it has expressions, which need Spark."""
    reader.take_words("VALUES")
    rows: list[tuple[object, ...]] = []
    while not rows or reader.take_sign(","):
        row = _literal_row(reader)
        if row is None:
            return None
        rows.append(row)
    return tuple(rows) if reader.current.kind == END else None


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
    kind = reader.current.word
    if kind in TYPED_LITERALS and reader.ahead(1).kind == TEXT:
        reader.take()
        at = reader.take()
        try:
            return (TYPED_LITERALS[kind](at.content),)
        except ValueError:
            raise reader.error(f"this is not a valid {kind}", at=at) from None
    if reader.current.kind in {TEXT, ESCAPED}:
        text = text_value(reader.take())
        return None if text is None else (text,)
    sign = "-" if reader.take_sign("-") else ""
    if reader.current.kind != NUMBER:
        return None
    # The sign is added to the text: negating a Decimal would round it to 28 digits.
    text = sign + reader.take().text
    return (Decimal(text) if "." in text else int(text),)


_QUERIES: Final = ("SELECT", "WITH")
_WORDS: Final[dict[str, object]] = {"TRUE": True, "FALSE": False, "NULL": None}
