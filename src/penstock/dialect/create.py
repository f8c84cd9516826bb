"""``CREATE`` statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.dialect.computed import read_computed_column
from penstock.dialect.reader import read_list, read_options, read_path
from penstock.dialect.statements import (
    CreateCatalog,
    CreateDatabase,
    CreateTable,
    WatermarkClause,
)
from penstock.spec.ddl import read_column
from penstock.spec.sql_tokens import TokenKind
from penstock.spec.sql_types import read_name, read_string

if TYPE_CHECKING:
    from penstock.dialect.reader import StatementReader
    from penstock.dialect.statements import ComputedColumn, Pairs
    from penstock.spec.ddl import ColumnSpec

_UNITS: Final = ("SECOND", "MINUTE", "HOUR", "DAY", "SECONDS", "MINUTES", "HOURS", "DAYS")
_NO_KEY: Final = "append tables have no primary key; leave it out, or keep such a table with Flink"
_REFUSED_CLAUSES: Final = {
    "DISTRIBUTED": "expected WITH ('bucket' = '4', 'bucket-key' = 'a'), which says the same",
    "LIKE": "expected the columns written out; SHOW CREATE TABLE prints those of the other table",
    "AS": "expected the end; create the table with its columns, then INSERT INTO it",
}


def read_create(reader: StatementReader) -> CreateTable | CreateDatabase | CreateCatalog:
    """Read what follows ``CREATE``.

    Raises:
        InvalidSqlError: something that cannot be created, or not so.
    """
    is_temporary = reader.take_words("TEMPORARY")
    if reader.take_words("TABLE"):
        return _read_table(reader, is_temporary=is_temporary)
    if not is_temporary and reader.take_any("DATABASE", "SCHEMA"):
        return _read_database(reader)
    if not is_temporary and reader.take_words("CATALOG"):
        if_not_exists = _take_if_not_exists(reader)
        name = read_name(reader, "a catalog's name").text
        reader.expect_words("WITH")
        return CreateCatalog(name=name, options=read_options(reader), if_not_exists=if_not_exists)
    raise reader.error("expected TABLE, TEMPORARY TABLE, DATABASE or CATALOG; there are no views and functions here")


def read_watermark(reader: StatementReader) -> WatermarkClause:
    """Read ``column AS column [- INTERVAL '5' SECOND]``, which follows ``WATERMARK FOR``.

    Raises:
        InvalidSqlError: another expression.
    """
    column = read_name(reader, "the event time column").text
    reader.expect_words("AS")
    works = f"expected `{column}` or `{column}` - INTERVAL '5' SECOND; no other watermark can be evaluated here"
    at = reader.current
    if at.kind not in {TokenKind.WORD, TokenKind.QUOTED} or reader.take().text != column:
        raise reader.error(works, at=at)
    if not reader.take_sign("-"):
        if reader.current.kind is not TokenKind.END and not (reader.at_sign(",") or reader.at_sign(")")):
            raise reader.error(works)
        return WatermarkClause(column=column, interval=None)
    return WatermarkClause(column=column, interval=read_interval(reader, works))


def read_interval(reader: StatementReader, works: str) -> str:
    """Read an interval such as ``INTERVAL '5' SECOND``, and return its text.

    Args:
        works: said where something else comes next.

    Raises:
        InvalidSqlError: something else comes next.
    """
    start = reader.current.start
    if not reader.take_words("INTERVAL") or reader.current.kind is not TokenKind.STRING:
        raise reader.error(works)
    reader.take()
    unit = reader.current
    if reader.take_any(*_UNITS) is None:
        raise reader.error(f"expected one of the units {', '.join(_UNITS[:4])}")
    if not reader.take_sign("("):
        return reader.text[start : unit.start + len(unit.text)]
    reader.take()
    if reader.take_sign(","):
        reader.take()
    closing = reader.current
    reader.expect_sign(")", "after the digits of the interval")
    return reader.text[start : closing.start + 1]


@dataclass(slots=True, kw_only=True)
class _Columns:
    """What stands between the parentheses of a ``CREATE TABLE``, as far as it was read."""

    physical: list[ColumnSpec] = field(default_factory=list)
    computed: list[ComputedColumn] = field(default_factory=list)
    watermark: WatermarkClause | None = None

    def read(self, reader: StatementReader) -> None:
        if reader.take_words("WATERMARK", "FOR"):
            if self.watermark is not None:
                raise reader.error("a table has one watermark")
            self.watermark = read_watermark(reader)
            return
        is_key = any(reader.at_words(word) for word in ("CONSTRAINT", "UNIQUE"))
        if is_key or reader.at_words("PRIMARY", "KEY"):
            raise reader.error(_NO_KEY)
        if _is_word(reader, 1, "AS"):
            place = len(self.physical) + len(self.computed)
            types = {column.name: column.type for column in self.physical}
            self.computed.append(read_computed_column(reader, place, types))
            return
        self.physical.append(read_column(reader))
        if reader.at_words("METADATA"):
            raise reader.error("metadata columns are not there; leave the column out")


def _read_table(reader: StatementReader, *, is_temporary: bool) -> CreateTable:
    if_not_exists = _take_if_not_exists(reader)
    name = read_path(reader, "a table's name")
    columns = _Columns()
    if reader.at_sign("("):

        def read_one(reader: StatementReader) -> None:
            columns.read(reader)

        read_list(reader, read_one, "the columns")
    if not columns.physical:
        raise reader.error("expected columns in parentheses, such as (id BIGINT, name STRING)")
    partition_by: tuple[str, ...] = ()
    options: Pairs = ()
    comment: str | None = None
    while reader.current.kind is not TokenKind.END:
        if reader.take_words("COMMENT"):
            comment = read_string(reader, "the comment in quotes")
        elif reader.take_words("PARTITIONED", "BY"):
            partition_by = read_list(reader, lambda inner: read_name(inner, "a column").text, "the partition columns")
        elif reader.take_words("WITH"):
            options = read_options(reader)
        else:
            cure = _REFUSED_CLAUSES.get(reader.current.text.upper())
            raise reader.error(cure or "expected COMMENT, PARTITIONED BY, WITH or the end")
    return CreateTable(
        name=name,
        columns=tuple(columns.physical),
        computed=tuple(columns.computed),
        watermark=columns.watermark,
        partition_by=partition_by,
        options=options,
        comment=comment,
        if_not_exists=if_not_exists,
        is_temporary=is_temporary,
    )


def _read_database(reader: StatementReader) -> CreateDatabase:
    if_not_exists = _take_if_not_exists(reader)
    name = read_path(reader, "a database's name")
    if reader.at_words("COMMENT") or reader.at_words("WITH"):
        raise reader.error("a database is a directory here, with neither comment nor options; leave it out")
    return CreateDatabase(name=name, if_not_exists=if_not_exists)


def _take_if_not_exists(reader: StatementReader) -> bool:
    return reader.take_words("IF", "NOT", "EXISTS")


def _is_word(reader: StatementReader, ahead: int, word: str) -> bool:
    token = reader.ahead(ahead)
    return token.kind is TokenKind.WORD and token.text.upper() == word
