"""Parse SQL text to statements."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.alter import read_alter
from penstock.dialect.parse.create import OBJECT_KINDS, read_create
from penstock.dialect.parse.insert import read_insert
from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import (
    TOO_DEEP,
    StatementReader,
    StatementText,
    read_partition,
    read_path,
    split_script,
)
from penstock.dialect.parse.row_changes import WORDS as ROW_CHANGES
from penstock.dialect.parse.row_changes import parse_row_change
from penstock.dialect.parse.statements import (
    Argument,
    Call,
    Describe,
    DropCatalog,
    DropDatabase,
    DropTable,
    DropView,
    Explain,
    Insert,
    ResetSetting,
    Select,
    SetSetting,
    ShowCreateTable,
    ShowCreateView,
    ShowNames,
    ShowPartitions,
    Statement,
    Truncate,
    UseCatalog,
    UseDatabase,
)
from penstock.errors import InvalidSqlError, UnsupportedFeatureError
from penstock.format.lexer import END, NUMBER, SPARK_SQL, SQL, TEXT, WORD
from penstock.format.types.ddl import read_name, read_string, read_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dialect.parse.statements import Action
    from penstock.format.lexer import Lexer

_ESCAPED_QUOTE: Final = re.compile(r"""\\['"]""")
_REFUSED: Final = {
    "BEGIN": "expected BEGIN STATEMENT SET; INSERT …; END",
    "EXECUTE": "expected EXECUTE STATEMENT SET BEGIN INSERT …; INSERT …; END",
    "END": "it ends no statement set; one begins with EXECUTE STATEMENT SET BEGIN",
    "ANALYZE": "there are no statistics of tables; files have their own",
    "REPLACE": "drop the table, then CREATE TABLE",
    "REFRESH": "nothing is kept that could be out of date; leave it out",
    "MSCK": "partitions are found in the table's own metadata; leave it out",
    "LOAD": "there are no modules; leave it out",
    "ADD": "there are no JARs to add; leave it out",
    "OPTIMIZE": "write CALL sys.compact('database.table'); it sorts with order_strategy => 'zorder', order_by => 'a,b'",
    "VACUUM": "snapshots expire as rows are written; CALL sys.expire_snapshots('database.table') does it now, and "
    "CALL sys.remove_orphan_files('database.table') deletes what no snapshot ever had",
    "RESTORE": "write CALL sys.rollback_to('database.table', snapshot_id => 5), or tag => 'a-tag'",
}
_SET_BEGINS: Final = re.compile(r"(?:EXECUTE\s+STATEMENT\s+SET\s+BEGIN|BEGIN\s+STATEMENT\s+SET)\b", re.IGNORECASE)
_SET_ENDS: Final = re.compile(r"END(?:\s+STATEMENT\s+SET)?", re.IGNORECASE)
_NAMES: Final = ("CATALOGS", "DATABASES", "SCHEMAS", "TABLES", "VIEWS", "PROCEDURES")
# Keywords of Delta Lake and Spark that show table details, with the equivalent here.
_DELTA_EQUIVALENTS: Final = {
    "TBLPROPERTIES": "properties of a table are its options: SELECT * FROM {}$options, or SHOW CREATE TABLE {}",
    "HISTORY": "the history of a table is SELECT * FROM {}$snapshots",
    "DETAIL": "the files of a table are SELECT * FROM {}$files, its partitions SELECT * FROM {}$partitions",
}
_SHOWN: Final = (*_NAMES, "CREATE TABLE", "CREATE VIEW", "PARTITIONS", "COLUMNS", "CURRENT")
# Details that Flink's EXPLAIN accepts. They are accepted and have no effect.
_DETAILS: Final = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")


def parse_script(script: str) -> tuple[Statement, ...]:
    """Parse a script of statements separated by semicolons.

    A backslash before a quote stands for a quote, as in Spark, unless the script is valid only without, as in Flink.

    Raises:
        InvalidSqlError: a statement has a syntax error; the message has line, column and what is valid there.
    """
    if _ESCAPED_QUOTE.search(script):
        with suppress(InvalidSqlError):
            return _parse_script(script, SPARK_SQL)
    return _parse_script(script, SQL)


def _parse_script(script: str, lexer: Lexer) -> tuple[Statement, ...]:
    statements: list[Statement] = []
    place: int | None = None
    # Editors on Windows begin files with this mark.
    script = script.removeprefix("\ufeff")
    begun: StatementText | None = None
    for source in split_script(script, lexer):
        opening = _SET_BEGINS.match(source.text)
        if begun is not None and _SET_ENDS.fullmatch(source.text):
            begun = place = None
            continue
        if begun is not None and opening is not None:
            raise source.error(0, "a statement set is inside of no other; END the first one")
        rest = source
        if opening is not None:
            begun, rest, place = source, _after(source, opening.end()), 0
        if rest.text:
            statements.append(_parse(rest))
            action = statements[-1].action
            if place is not None:
                if not isinstance(action, Insert):
                    raise rest.error(0, "a statement set has INSERT statements only")
                statements[-1] = replace(statements[-1], action=replace(action, place_in_set=place))
                place += 1
    if begun is not None:
        raise begun.error(0, "this statement set is never closed; expected END after its last INSERT")
    return tuple(statements)


def _after(source: StatementText, offset: int) -> StatementText:
    """Return the rest of a statement's text."""
    text = source.text
    return source.part(len(text) - len(text[offset:].lstrip()))


def _parse(source: StatementText) -> Statement:
    try:
        return parse_statement(source)
    except RecursionError:
        raise source.error(0, TOO_DEEP) from None


def parse_statement(source: StatementText) -> Statement:
    """Parse one statement.

    Raises:
        InvalidSqlError: the statement has a syntax error.
        UnsupportedFeatureError: append-only tables do not support the statement.
    """
    reader = StatementReader(source)
    first = reader.current
    word = first.word
    if word in {"SELECT", "WITH", "VALUES", "("}:
        return Statement(source=source, action=Select(query=parse_query(source)))
    if word in ROW_CHANGES:
        return Statement(source=source, action=parse_row_change(source))
    if word in _REFUSED:
        line, column = source.place(first.start)
        raise UnsupportedFeatureError(f"line {line}, column {column}: {word} cannot be run: {_REFUSED[word]}")
    read = _READERS.get(word)
    if read is None:
        near = get_close_matches(word, (*_READERS, *ROW_CHANGES, "SELECT"), n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of SELECT, {', '.join((*_READERS, *ROW_CHANGES))}"
        raise reader.error(hint)
    reader.take()
    action = read(reader)
    reader.done()
    return Statement(source=source, action=action)


def _read_drop(reader: StatementReader) -> Action:
    is_temporary = reader.take_words("TEMPORARY")
    kind = reader.take_any("TABLE", "VIEW") if is_temporary else reader.take_any(*OBJECT_KINDS)
    if kind is None:
        raise reader.unexpected("expected [TEMPORARY] TABLE or VIEW, DATABASE or CATALOG", OBJECT_KINDS)
    if_exists = reader.take_words("IF", "EXISTS")
    if kind == "CATALOG":
        return DropCatalog(name=read_name(reader, "a catalog's name"), if_exists=if_exists)
    if kind in {"TABLE", "VIEW"}:
        action = DropTable if kind == "TABLE" else DropView
        name = read_path(reader, f"a {kind.lower()}'s name")
        return action(name=name, if_exists=if_exists, is_temporary=is_temporary)
    name = read_path(reader, "a database's name")
    return DropDatabase(name=name, if_exists=if_exists, cascade=reader.take_any("CASCADE", "RESTRICT") == "CASCADE")


def _read_use(reader: StatementReader) -> Action:
    if reader.take_words("CATALOG"):
        return UseCatalog(name=read_name(reader, "a catalog's name"))
    return UseDatabase(name=read_path(reader, "a database's name"))


def _read_show(reader: StatementReader) -> Action:
    if reader.take_words("CREATE", "TABLE"):
        return ShowCreateTable(name=read_path(reader, "a table's name"))
    if reader.take_words("CREATE", "VIEW"):
        return ShowCreateView(name=read_path(reader, "a view's name"))
    if reader.take_words("PARTITIONS"):
        name = read_path(reader, "a table's name")
        spec = read_partition(reader) if reader.take_words("PARTITION") else ()
        return ShowPartitions(name=name, spec=spec)
    if reader.take_words("COLUMNS"):
        if reader.take_any("FROM", "IN") is None:
            raise reader.error("expected FROM and a table's name")
        name = read_path(reader, "a table's name")
        like, is_negated = _read_like(reader)
        return Describe(name=name, like=like, is_negated=is_negated)
    if reader.take_words("CURRENT"):
        word = reader.take_any("CATALOG", "DATABASE")
        if word is None:
            raise reader.error("expected CATALOG or DATABASE")
        return ShowNames(what=f"current {word.lower()}")
    _refuse_delta_keyword(reader, "TBLPROPERTIES")
    word = reader.take_any(*_NAMES)
    if word is None:
        raise reader.unexpected(f"expected one of {', '.join(_SHOWN)}", _SHOWN)
    within = read_path(reader, "a name") if reader.take_any("FROM", "IN") else ()
    like, is_negated = _read_like(reader)
    what = "databases" if word == "SCHEMAS" else word.lower()
    return ShowNames(what=what, within=within, like=like, is_negated=is_negated)


def _read_like(reader: StatementReader) -> tuple[str | None, bool]:
    """Read ``[NOT] LIKE 'a%'``, if it is there: the pattern, and whether it is negated."""
    is_negated = reader.at_words("NOT", "LIKE") and reader.take_words("NOT")
    like = read_string(reader, "a pattern such as 'order%'") if reader.take_words("LIKE") else None
    return like, is_negated


def _read_describe(reader: StatementReader) -> Action:
    _refuse_delta_keyword(reader, "HISTORY", "DETAIL")
    reader.take_words("TABLE")
    reader.take_words("EXTENDED")
    return Describe(name=read_path(reader, "a table's name"))


def _refuse_delta_keyword(reader: StatementReader, *words: str) -> None:
    """Raise an error if a keyword of another engine precedes a table's name; the error names the equivalent here."""
    at = reader.current
    word = at.word
    if word in words and reader.ahead(1).is_name:
        reader.take()
        table = ".".join(read_path(reader, "a table's name"))
        raise reader.error(_DELTA_EQUIVALENTS[word].replace("{}", table), at=at)


def _read_set(reader: StatementReader) -> Action:
    if reader.current.kind == END:
        return SetSetting()
    key = _read_key(reader)
    reader.expect_sign("=", f"after the key '{key}'")
    if reader.current.kind == TEXT:
        return SetSetting(key=key, value=reader.take().content)
    value = reader.take_rest().text.strip()
    if not value:
        raise reader.error(f"expected the value of '{key}'")
    return SetSetting(key=key, value=value)


def _read_reset(reader: StatementReader) -> Action:
    return ResetSetting(key=None if reader.current.kind == END else _read_key(reader))


def _read_key(reader: StatementReader) -> str:
    """Read a key with or without quotes: ``execution.runtime-mode``."""
    if reader.current.kind == TEXT:
        return reader.take().content
    at = reader.current
    while reader.current.kind in {WORD, NUMBER} or reader.at_sign(".") or reader.at_sign("-"):
        reader.take()
    key = reader.text[at.start : reader.current.start].strip()
    if not key:
        raise reader.error("expected a key in quotes, such as 'execution.runtime-mode'")
    return key


def _read_call(reader: StatementReader) -> Action:
    path = read_path(reader, "a procedure's name, such as sys.compact")
    if path[-2:-1] != ("sys",):
        raise reader.error(f"procedures are in sys: CALL sys.{path[-1]}(…)")
    catalog = path[0] if len(path) > 2 else None
    reader.expect_sign("(", "before the arguments")
    arguments: list[Argument] = []
    while not reader.take_sign(")"):
        if arguments:
            reader.expect_sign(",", "or ')' after an argument")
        arguments.append(_read_argument(reader))
        if arguments[-1].name is None and any(argument.name for argument in arguments):
            raise reader.error("an argument without a name cannot follow one with a name")
    return Call(catalog=catalog, procedure=path[-1], arguments=tuple(arguments))


def _read_argument(reader: StatementReader) -> Argument:
    name = None
    if reader.ahead(1).text == "=" and reader.ahead(2).text == ">":
        name = read_name(reader, "an argument's name")
        reader.take()
        reader.take()
    return Argument(name=name, value=_read_value(reader))


def _read_value(reader: StatementReader) -> str | int | float | bool | None:
    """Read a literal, or ``CAST(literal AS type)``; arguments are converted to what the procedure expects anyway."""
    if not (reader.at_words("CAST") and reader.ahead(1).text == "("):
        return _read_plain_value(reader)
    reader.take()
    reader.take()
    value = _read_plain_value(reader)
    reader.expect_words("AS")
    read_type(reader)
    reader.expect_sign(")", "after the type of the CAST")
    return value


def _read_plain_value(reader: StatementReader) -> str | int | float | bool | None:
    word = reader.take_any("TRUE", "FALSE", "NULL")
    if word is not None:
        return {"TRUE": True, "FALSE": False}.get(word)
    reader.take_words("TIMESTAMP")
    if reader.current.kind == TEXT:
        return reader.take().content
    sign = -1 if reader.take_sign("-") else 1
    if reader.current.kind != NUMBER:
        raise reader.error("expected a literal: 'text', 5, TRUE, FALSE or NULL")
    text = reader.take().text
    return sign * (float(text) if "." in text else int(text))


def _read_truncate(reader: StatementReader) -> Action:
    reader.expect_words("TABLE")
    name = read_path(reader, "a table's name")
    if reader.at_words("PARTITION"):
        raise reader.error(f"a partition is emptied by ALTER TABLE {'.'.join(name)} DROP PARTITION (…)")
    return Truncate(name=name)


def _read_explain(reader: StatementReader) -> Action:
    if not reader.take_words("PLAN", "FOR"):
        while reader.take_any(*_DETAILS) is not None:
            reader.take_sign(",")
    if reader.at_words("EXPLAIN"):
        raise reader.error("expected a query or an INSERT to explain")
    rest = reader.take_rest()
    action = parse_statement(rest).action if rest.text else None
    if not isinstance(action, Select | Insert):
        raise rest.error(0, "expected a query or an INSERT to explain")
    return Explain(action=action)


_READERS: Final[dict[str, Callable[[StatementReader], Action]]] = {
    "CREATE": read_create,
    "DROP": _read_drop,
    "ALTER": read_alter,
    "USE": _read_use,
    "SHOW": _read_show,
    "DESCRIBE": _read_describe,
    "DESC": _read_describe,
    "SET": _read_set,
    "RESET": _read_reset,
    "CALL": _read_call,
    "EXPLAIN": _read_explain,
    "INSERT": read_insert,
    "TRUNCATE": _read_truncate,
}
