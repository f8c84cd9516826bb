"""Read ``CREATE`` statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.dialect.parse.computed import read_computed_column
from penstock.dialect.parse.create_from import read_as, read_like, read_view
from penstock.dialect.parse.reader import read_interval, read_list, read_options, read_path
from penstock.dialect.parse.statements import (
    CreateCatalog,
    CreateDatabase,
    CreateTable,
    MetadataColumn,
    WatermarkClause,
)
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.ddl import read_column
from penstock.format.types.sql import read_name, read_string
from penstock.format.types.tokens import TokenKind

if TYPE_CHECKING:
    from penstock.dialect.parse.names import Pairs
    from penstock.dialect.parse.reader import StatementReader
    from penstock.dialect.parse.statements import ComputedColumn, CreateTableAs, CreateTableLike, CreateView
    from penstock.format.types.ddl import ColumnSpec

THINGS: Final = ("TABLE", "VIEW", "DATABASE", "CATALOG", "SCHEMA", "TEMPORARY")
"""Kinds of objects that CREATE and DROP accept."""

_NO_KEY: Final = "append tables have no primary key; leave it out, or keep such a table with Flink"
_CLAUSES: Final = ("COMMENT", "PARTITIONED BY", "WITH", "AS", "LIKE")
_REFUSED_CLAUSES: Final = {
    "DISTRIBUTED": "expected WITH ('bucket' = '4', 'bucket-key' = 'a'), which means the same",
}

Creation: TypeAlias = "CreateTable | CreateTableAs | CreateTableLike | CreateView | CreateDatabase | CreateCatalog"


def read_create(reader: StatementReader) -> Creation:
    """Read what follows ``CREATE``.

    Raises:
        InvalidSqlError: the statement creates something that cannot be created, or its syntax is wrong.
    """
    replaces = reader.take_words("OR", "REPLACE")
    is_temporary = reader.take_words("TEMPORARY")
    if reader.take_words("VIEW"):
        return read_view(reader, is_temporary=is_temporary, replaces=replaces)
    if replaces:
        raise reader.error("expected [TEMPORARY] VIEW: only views can be replaced; DROP a table first, then CREATE it")
    if reader.take_words("TABLE"):
        return _read_table(reader, is_temporary=is_temporary)
    if not is_temporary and reader.take_any("DATABASE", "SCHEMA"):
        return _read_database(reader)
    if not is_temporary and reader.take_words("CATALOG"):
        if_not_exists = _take_if_not_exists(reader)
        name = read_name(reader, "a catalog's name").text
        reader.expect_words("WITH")
        return CreateCatalog(name=name, options=read_options(reader), if_not_exists=if_not_exists)
    if reader.at_words("MATERIALIZED"):
        raise UnsupportedFeatureError(
            "there are no materialized tables: CREATE TABLE ... AS SELECT fills a table once, and INSERT INTO as a "
            "stream goes on filling it"
        )
    raise reader.unexpected(
        "expected [TEMPORARY] TABLE or VIEW, DATABASE or CATALOG; there are no functions of your own here", THINGS
    )


def read_watermark(reader: StatementReader) -> WatermarkClause:
    """Read ``column AS column [- INTERVAL '5' SECOND]``, the text after ``WATERMARK FOR``.

    Raises:
        InvalidSqlError: the expression has another form.
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


@dataclass(slots=True, kw_only=True)
class _Columns:
    """Reads the column list of a ``CREATE TABLE`` and collects its parts."""

    physical: list[ColumnSpec] = field(default_factory=list)
    computed: list[ComputedColumn] = field(default_factory=list)
    metadata: list[MetadataColumn] = field(default_factory=list)
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
        column = read_column(reader)
        self.physical.append(column)
        if reader.take_words("METADATA"):
            key = (
                read_string(reader, "the name of the metadata in quotes") if reader.take_words("FROM") else column.name
            )
            is_virtual = reader.take_words("VIRTUAL")
            self.metadata.append(MetadataColumn(name=column.name, key=key, is_virtual=is_virtual))


def _read_table(reader: StatementReader, *, is_temporary: bool) -> CreateTable | CreateTableAs | CreateTableLike:
    if_not_exists = _take_if_not_exists(reader)
    name = read_path(reader, "a table's name")
    columns = _Columns()
    order: tuple[str, ...] = ()
    if reader.at_sign("(") and reader.ahead(2).text in {",", ")"}:
        order = read_list(reader, lambda inner: read_name(inner, "a column").text, "the query's columns")
    elif reader.at_sign("("):

        def read_one(reader: StatementReader) -> None:
            columns.read(reader)

        read_list(reader, read_one, "the columns; each has a name, a type, and NOT NULL, DEFAULT or COMMENT at will")
    clauses = _read_clauses(reader)
    table = CreateTable(
        name=name,
        columns=tuple(columns.physical),
        metadata=tuple(columns.metadata),
        computed=tuple(columns.computed),
        watermark=columns.watermark,
        partition_by=clauses.partition_by,
        options=clauses.options,
        comment=clauses.comment,
        if_not_exists=if_not_exists,
        is_temporary=is_temporary,
    )
    if reader.take_words("AS"):
        return read_as(reader, table, order)
    if not order and reader.take_words("LIKE"):
        return read_like(reader, table)
    if not columns.physical:
        raise reader.error("expected columns in parentheses, such as (id BIGINT, name STRING), AS SELECT … or LIKE t")
    if reader.current.kind is not TokenKind.END:
        raise reader.unexpected(f"expected {', '.join(_CLAUSES)} or the end", _CLAUSES)
    return table


@dataclass(slots=True, kw_only=True)
class _Clauses:
    """Reads the clauses after the column list of a ``CREATE TABLE``."""

    partition_by: tuple[str, ...] = ()
    options: Pairs = ()
    comment: str | None = None


def _read_clauses(reader: StatementReader) -> _Clauses:
    found = _Clauses()
    seen: set[str] = set()
    while True:
        clause = next((word for word in ("COMMENT", "PARTITIONED", "WITH") if reader.at_words(word)), None)
        if clause is not None and clause in seen:
            raise reader.error("this clause is there already; write it once")
        seen.update([clause] if clause else [])
        if reader.take_words("COMMENT"):
            found.comment = read_string(reader, "the comment in quotes")
        elif reader.take_words("PARTITIONED", "BY"):
            found.partition_by = read_list(reader, lambda inner: read_name(inner, "a column").text, "the columns")
        elif reader.take_words("WITH"):
            found.options = read_options(reader)
        elif reader.current.text.upper() in _REFUSED_CLAUSES:
            raise reader.error(_REFUSED_CLAUSES[reader.current.text.upper()])
        else:
            return found


def _read_database(reader: StatementReader) -> CreateDatabase:
    if_not_exists = _take_if_not_exists(reader)
    name = read_path(reader, "a database's name")
    dropped = []
    if reader.take_words("COMMENT"):
        read_string(reader, "the comment in quotes")
        dropped.append("comment")
    if reader.take_words("WITH"):
        read_options(reader)
        dropped.append("options")
    return CreateDatabase(name=name, if_not_exists=if_not_exists, dropped=tuple(dropped))


def _take_if_not_exists(reader: StatementReader) -> bool:
    return reader.take_words("IF", "NOT", "EXISTS")


def _is_word(reader: StatementReader, ahead: int, word: str) -> bool:
    token = reader.ahead(ahead)
    return token.kind is TokenKind.WORD and token.text.upper() == word
