"""Read ``CREATE`` statements.

Where the syntax is wrong, every function raises ``InvalidSqlError`` with line and column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.dialect.parse.computed import read_computed_column
from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import read_interval, read_list, read_names, read_options, read_path
from penstock.dialect.parse.statements import (
    CreateCatalog,
    CreateDatabase,
    CreateTable,
    CreateTableAs,
    CreateTableLike,
    CreateView,
    MetadataColumn,
    WatermarkClause,
)
from penstock.errors import UnsupportedFeatureError
from penstock.format.lexer import END
from penstock.format.types.ddl import read_column, read_name, read_string

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import StatementReader
    from penstock.dialect.parse.statements import ComputedColumn
    from penstock.format.types.ddl import ColumnSpec

INCLUDING: Final = "INCLUDING"
EXCLUDING: Final = "EXCLUDING"
OVERWRITING: Final = "OVERWRITING"
FEATURES: Final = ("GENERATED", "OPTIONS", "PARTITIONS", "WATERMARKS", "METADATA")
"""Features besides columns that ``LIKE`` can copy from a table."""

# Features that no table of Penstock has.
_ABSENT: Final = ("CONSTRAINTS", "DISTRIBUTION")
_LIKE_DEFAULTS: Final = {**dict.fromkeys(FEATURES, INCLUDING), "OPTIONS": OVERWRITING}
OBJECT_KINDS: Final = ("TABLE", "VIEW", "DATABASE", "CATALOG", "SCHEMA", "TEMPORARY")
"""Kinds of objects that CREATE and DROP accept."""

_NO_KEY: Final = "append tables have no primary key; leave it out, or keep such a table with Flink"
_CLAUSES: Final = ("COMMENT", "PARTITIONED BY", "WITH", "AS", "LIKE")
_REFUSED_CLAUSES: Final = {
    "DISTRIBUTED": "expected WITH ('bucket' = '4', 'bucket-key' = 'a'), which means the same",
}

Creation: TypeAlias = CreateTable | CreateTableAs | CreateTableLike | CreateView | CreateDatabase | CreateCatalog


def read_create(reader: StatementReader) -> Creation:
    """Read what follows ``CREATE``."""
    replaces = reader.take_words("OR", "REPLACE")
    is_temporary = reader.take_words("TEMPORARY")
    if reader.take_words("VIEW"):
        return _read_view(reader, is_temporary=is_temporary, replaces=replaces)
    if replaces:
        raise reader.error("expected [TEMPORARY] VIEW: only views can be replaced; DROP a table first, then CREATE it")
    if reader.take_words("TABLE"):
        return _read_table(reader, is_temporary=is_temporary)
    if not is_temporary and reader.take_any("DATABASE", "SCHEMA"):
        return _read_database(reader)
    if not is_temporary and reader.take_words("CATALOG"):
        if_not_exists = reader.take_words("IF", "NOT", "EXISTS")
        name = read_name(reader, "a catalog's name")
        reader.expect_words("WITH")
        return CreateCatalog(name=name, options=read_options(reader), if_not_exists=if_not_exists)
    if reader.at_words("MATERIALIZED"):
        raise UnsupportedFeatureError(
            "there are no materialized tables: CREATE TABLE ... AS SELECT fills a table once, and INSERT INTO as a "
            "stream goes on filling it"
        )
    raise reader.unexpected(
        "expected [TEMPORARY] TABLE or VIEW, DATABASE or CATALOG; there are no functions of your own here", OBJECT_KINDS
    )


def read_watermark(reader: StatementReader) -> WatermarkClause:
    """Read ``column AS column [- INTERVAL '5' SECOND]``, the text after ``WATERMARK FOR``."""
    column = read_name(reader, "the event time column")
    reader.expect_words("AS")
    expected = f"expected `{column}` or `{column}` - INTERVAL '5' SECOND; no other watermark can be evaluated here"
    at = reader.current
    if not at.is_name or reader.take().content != column:
        raise reader.error(expected, at=at)
    if not reader.take_sign("-"):
        if reader.current.kind != END and not (reader.at_sign(",") or reader.at_sign(")")):
            raise reader.error(expected)
        return WatermarkClause(column=column, interval=None)
    return WatermarkClause(column=column, interval=read_interval(reader, expected))


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
        if reader.ahead(1).word == "AS":
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
    if_not_exists = reader.take_words("IF", "NOT", "EXISTS")
    name = read_path(reader, "a table's name")
    columns = _Columns()
    order: tuple[str, ...] = ()
    if reader.at_sign("(") and reader.ahead(2).text in {",", ")"}:
        order = read_names(reader, "the query's columns")
    elif reader.at_sign("("):
        read_list(
            reader, columns.read, "the columns; each has a name, a type, and NOT NULL, DEFAULT or COMMENT at will"
        )
    table = CreateTable(
        name=name,
        columns=tuple(columns.physical),
        metadata=tuple(columns.metadata),
        computed=tuple(columns.computed),
        watermark=columns.watermark,
        if_not_exists=if_not_exists,
        is_temporary=is_temporary,
        **_read_clauses(reader),
    )
    if reader.take_words("AS"):
        return _read_as(reader, table, order)
    if not order and reader.take_words("LIKE"):
        return _read_like(reader, table)
    if not columns.physical:
        raise reader.error("expected columns in parentheses, such as (id BIGINT, name STRING), AS SELECT … or LIKE t")
    if reader.current.kind != END:
        raise reader.unexpected(f"expected {', '.join(_CLAUSES)} or the end", _CLAUSES)
    return table


def _read_clauses(reader: StatementReader) -> dict[str, Any]:
    """Read the clauses after the column list of a ``CREATE TABLE``."""
    found: dict[str, Any] = {}
    while (words := next((words for words in _TABLE_CLAUSES if reader.at_words(*words)), None)) is not None:
        name, read = _TABLE_CLAUSES[words]
        if name in found:
            raise reader.error("this clause is there already; write it once")
        reader.take_words(*words)
        found[name] = read(reader)
    if reader.current.word in _REFUSED_CLAUSES:
        raise reader.error(_REFUSED_CLAUSES[reader.current.word])
    return found


def _read_comment(reader: StatementReader) -> str:
    return read_string(reader, "the comment in quotes")


_TABLE_CLAUSES: Final[Mapping[tuple[str, ...], tuple[str, Callable[[StatementReader], object]]]] = {
    ("COMMENT",): ("comment", _read_comment),
    ("PARTITIONED", "BY"): ("partition_by", lambda reader: read_names(reader, "the columns")),
    ("WITH",): ("options", read_options),
}


def _read_database(reader: StatementReader) -> CreateDatabase:
    if_not_exists = reader.take_words("IF", "NOT", "EXISTS")
    name = read_path(reader, "a database's name")
    dropped = []
    if reader.take_words("COMMENT"):
        _read_comment(reader)
        dropped.append("comment")
    if reader.take_words("WITH"):
        read_options(reader)
        dropped.append("options")
    return CreateDatabase(name=name, if_not_exists=if_not_exists, dropped=tuple(dropped))


# AS SELECT, LIKE, views


def _read_view(reader: StatementReader, *, is_temporary: bool, replaces: bool) -> CreateView:
    """Read what follows ``CREATE VIEW``."""
    if_not_exists = reader.take_words("IF", "NOT", "EXISTS")
    if if_not_exists and replaces:
        raise reader.error("OR REPLACE and IF NOT EXISTS are mutually exclusive; leave one out")
    name = read_path(reader, "a view's name")
    columns = read_list(reader, _read_view_column, "the columns") if reader.at_sign("(") else ()
    comment = _read_comment(reader) if reader.take_words("COMMENT") else None
    if not reader.take_words("AS"):
        raise reader.error("expected AS and a query")
    return CreateView(
        name=name,
        query=read_query(reader),
        columns=columns,
        comment=comment,
        if_not_exists=if_not_exists,
        is_temporary=is_temporary,
        replaces=replaces,
    )


def _read_as(reader: StatementReader, table: CreateTable, order: tuple[str, ...]) -> CreateTableAs:
    """Read what follows ``CREATE TABLE … AS``."""
    if table.computed:
        raise reader.error("computed columns need their columns before them: CREATE TABLE with all, then INSERT INTO")
    return CreateTableAs(table=table, query=read_query(reader), order=order)


def _read_like(reader: StatementReader, table: CreateTable) -> CreateTableLike:
    """Read what follows ``CREATE TABLE … LIKE``."""
    source = read_path(reader, "the other table's name")
    rules = dict(_LIKE_DEFAULTS)
    given: set[str] = set()
    if reader.take_sign("("):
        while not reader.take_sign(")"):
            _read_rule(reader, rules, given)
            reader.take_sign(",")
    return CreateTableLike(table=table, source=source, rules=rules)


def read_query(reader: StatementReader) -> Query:
    """Read the rest of a statement as a query."""
    if not any(reader.at_words(word) for word in ("SELECT", "WITH", "VALUES")) and not reader.at_sign("("):
        raise reader.error("expected SELECT, WITH or VALUES")
    return parse_query(reader.take_rest())


def _read_view_column(reader: StatementReader) -> tuple[str, str | None]:
    name = read_name(reader, "a column's name, without a type")
    return name, _read_comment(reader) if reader.take_words("COMMENT") else None


def _read_rule(reader: StatementReader, rules: dict[str, str], given: set[str]) -> None:
    at = reader.current
    how = reader.take_any(INCLUDING, EXCLUDING, OVERWRITING)
    if how is None:
        raise reader.error("expected INCLUDING, EXCLUDING or OVERWRITING")
    feature = reader.take_any("ALL", *FEATURES, *_ABSENT)
    if feature is None:
        raise reader.error(f"expected ALL, {', '.join((*FEATURES, *_ABSENT))}")
    if how == OVERWRITING and feature in {"ALL", "PARTITIONS", "CONSTRAINTS", "DISTRIBUTION"}:
        raise reader.error(f"{feature} cannot be overwritten; expected INCLUDING or EXCLUDING {feature}", at=at)
    if feature in given:
        raise reader.error(f"{feature} is said twice", at=at)
    given.add(feature)
    if feature == "ALL":
        rules.update({name: how for name in FEATURES if name not in given})
    elif feature in FEATURES:
        rules[feature] = how
