"""Read ``CREATE TABLE … AS SELECT``, ``CREATE TABLE … LIKE`` and ``CREATE VIEW``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import read_list, read_path
from penstock.dialect.parse.script import StatementText
from penstock.dialect.parse.statements import CreateTableAs, CreateTableLike, CreateView
from penstock.format.types.sql import read_name, read_string

if TYPE_CHECKING:
    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import StatementReader
    from penstock.dialect.parse.statements import CreateTable

INCLUDING: Final = "INCLUDING"
EXCLUDING: Final = "EXCLUDING"
OVERWRITING: Final = "OVERWRITING"
FEATURES: Final = ("GENERATED", "OPTIONS", "PARTITIONS", "WATERMARKS", "METADATA")
"""Features besides columns that ``LIKE`` can copy from a table."""

# Features that no table of Penstock has.
_ABSENT: Final = ("CONSTRAINTS", "DISTRIBUTION")
_DEFAULTS: Final = {**dict.fromkeys(FEATURES, INCLUDING), "OPTIONS": OVERWRITING}


def read_view(reader: StatementReader, *, is_temporary: bool, replaces: bool) -> CreateView:
    """Read what follows ``CREATE VIEW``.

    Raises:
        InvalidSqlError: the statement has a syntax error.
    """
    if_not_exists = reader.take_words("IF", "NOT", "EXISTS")
    if if_not_exists and replaces:
        raise reader.error("OR REPLACE and IF NOT EXISTS are mutually exclusive; leave one out")
    name = read_path(reader, "a view's name")
    columns = read_list(reader, _read_view_column, "the columns") if reader.at_sign("(") else ()
    comment = read_string(reader, "the comment in quotes") if reader.take_words("COMMENT") else None
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


def read_as(reader: StatementReader, table: CreateTable, order: tuple[str, ...]) -> CreateTableAs:
    """Read what follows ``CREATE TABLE … AS``.

    Raises:
        InvalidSqlError: the text is not a query, or the table has computed columns.
    """
    if table.computed:
        raise reader.error("computed columns need their columns before them: CREATE TABLE with all, then INSERT INTO")
    return CreateTableAs(table=table, query=read_query(reader), order=order)


def read_like(reader: StatementReader, table: CreateTable) -> CreateTableLike:
    """Read what follows ``CREATE TABLE … LIKE``.

    Raises:
        InvalidSqlError: the statement has a syntax error.
    """
    source = read_path(reader, "the other table's name")
    rules = dict(_DEFAULTS)
    given: set[str] = set()
    if reader.take_sign("("):
        while not reader.take_sign(")"):
            _read_rule(reader, rules, given)
            reader.take_sign(",")
    return CreateTableLike(table=table, source=source, rules=rules)


def read_query(reader: StatementReader) -> Query:
    """Read the rest of a statement as a query.

    Raises:
        InvalidSqlError: the text is not a query.
    """
    if not any(reader.at_words(word) for word in ("SELECT", "WITH", "VALUES")) and not reader.at_sign("("):
        raise reader.error("expected SELECT, WITH or VALUES")
    text, start = reader.take_rest()
    line, column = reader.statement.place(start)
    return parse_query(StatementText(text=text, line=line, column=column))


def _read_view_column(reader: StatementReader) -> tuple[str, str | None]:
    name = read_name(reader, "a column's name, without a type").text
    return name, read_string(reader, "the comment in quotes") if reader.take_words("COMMENT") else None


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
