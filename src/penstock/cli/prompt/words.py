"""Completion of SQL keywords, names of databases, tables and columns, and option keys."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import Completer, Completion

from penstock.api.procedures import PROCEDURES
from penstock.dialect.settings import KEYS
from penstock.errors import TableStoreError
from penstock.format.lexer import SQL
from penstock.format.watermark import computed_columns
from penstock.options.connectors import DatagenOptions, FilesystemOptions, PrintOptions
from penstock.options.group import OptionGroup, option_fields
from penstock.options.kafka import CsvFormat, JsonFormat, KafkaOptions
from penstock.options.status.keys import describe_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from penstock.dialect.parse.reader import Path
    from penstock.dialect.state import SqlState
    from penstock.format.lexer import Token

_WORDS: Final = tuple(
    re.findall(
        r"\w+",
        """
    ADD AFTER ALTER AND AS ASC BETWEEN BY CALL CASE CAST CATALOG CATALOGS COLUMN COLUMNS COMMENT COUNT CREATE CROSS
    CUMULATE CURRENT DATABASE DATABASES DEFAULT DESC DESCRIBE DESCRIPTOR DISTINCT DROP ELSE END EXCLUDING EXISTS EXPLAIN
    FALSE FIRST FOR FROM FULL GROUP HAVING HOP IF IN INCLUDING INNER INSERT INTERVAL INTO IS JOIN LEFT LIKE LIMIT MODIFY
    NOT NULL ON OPTIONS OR ORDER OVER OVERWRITE PARTITION PARTITIONED PARTITIONS RENAME RESET RIGHT SELECT SESSION SET
    SHOW SYSTEM_TIME TABLE TABLES TEMPORARY THEN TIMESTAMP TO TRUE TRUNCATE TUMBLE UNION USE USING VALUES VERSION VIEW
    VIEWS WATERMARK WHEN WHERE WITH
    BIGINT BOOLEAN BYTES DATE DECIMAL DOUBLE FLOAT INT STRING
    """,
    )
)
_BEFORE_TABLE: Final = frozenset({"FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "DESCRIBE", "DESC", "VIEW", "EXISTS"})
_BEFORE_DATABASE: Final = frozenset({"USE", "DATABASE", "IN"})
_CONNECTORS: Final[Mapping[str, tuple[type[OptionGroup], ...]]] = {
    "kafka": (KafkaOptions, JsonFormat, CsvFormat),
    "filesystem": (FilesystemOptions, JsonFormat, CsvFormat),
    "datagen": (DatagenOptions,),
    "print": (PrintOptions,),
}
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*")
_QUOTE: Final = re.compile(r"'(?P<typed>[^']*)$")
_TYPED: Final = re.compile(r"(?P<path>(?:(?:`[^`]+`|\w+)\.)*)(?P<typed>`?\w*)$")
_OPTION_WORDS: Final = frozenset({"WITH", "OPTIONS", "RESET", "SET"})


class WordCompleter(Completer):
    """Completes the word before the cursor. Reads storage, and therefore needs its own thread."""

    def __init__(self, state: SqlState) -> None:
        self._state = state

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions, best first."""
        del complete_event
        before = _statement_before(document.text_before_cursor)
        if before.count("'") % 2:
            yield from _option_keys(before, document.text)
            return
        match = _TYPED.search(before)
        typed = "" if match is None else match["typed"]
        path = () if match is None else tuple(part.strip("`") for part in match["path"].split(".")[:-1])
        place = len(before) - len(typed) - (0 if match is None else len(match["path"]))
        tokens = list(SQL.tokens(before[:place]))
        rest = document.text_after_cursor.partition(";")[0]
        # An open quote would swallow the text after the cursor.
        statement = list(SQL.tokens(before[:place] + " x " + rest.removeprefix("`")))
        names: list[tuple[str, str]] = []
        # Names that cannot be listed are not completed.
        with suppress(TableStoreError):
            names = list(self._names(tokens, path, statement))
        for name, kind in _starting(names, typed):
            yield Completion(_quoted(name, typed), start_position=-len(typed), display=name, display_meta=kind)
        if path or typed.startswith("`") or (tokens and tokens[-1].word in _BEFORE_TABLE | _BEFORE_DATABASE):
            return
        for word in _WORDS:
            if typed and word.startswith(typed.upper()) and word != typed.upper():
                text = word.lower() if typed.islower() else word
                yield Completion(text, start_position=-len(typed))

    def _names(self, tokens: Sequence[Token], path: Path, statement: Sequence[Token]) -> Iterator[tuple[str, str]]:
        last = tokens[-1].word if tokens else ""
        first = tokens[0].word if tokens else ""
        if first == "CALL":
            called = next((PROCEDURES[token.content] for token in tokens if token.content in PROCEDURES), None)
            if called is not None:
                yield from ((name, "argument") for name in called.parameters)
            elif path == ("sys",):
                yield from ((name, "procedure") for name in PROCEDURES)
            elif not path:
                yield "sys", "procedures"
        elif last in _BEFORE_TABLE or (first == "ALTER" and last == "TABLE"):
            yield from self._tables(path)
        elif last in _BEFORE_DATABASE:
            yield from self._databases()
        elif len(path) <= 1:
            yield from self._columns(path, statement)

    def _databases(self) -> Iterator[tuple[str, str]]:
        state = self._state
        yield from ((name, "database") for name in state.catalog(state.catalog_name).list_databases())
        yield from ((name, "catalog") for name in state.catalogs)

    def _tables(self, path: Path) -> Iterator[tuple[str, str]]:
        state = self._state
        catalog, database = state.full_database(path or (state.database,))
        yield from ((name, "view") for name in state.view_names((catalog, database)))
        yield from ((name[2], "topic") for name in state.session_tables if name[:2] == (catalog, database))
        if database in state.catalog(catalog).list_databases():
            yield from ((name, "table") for name in state.catalog(catalog).list_tables(database))
        if not path:
            yield from self._databases()

    def _columns(self, path: Path, statement: Sequence[Token]) -> Iterator[tuple[str, str]]:
        uses = list(_tables_named(statement))
        wanted = [name for name, alias in uses if not path or path[0].lower() in {alias.lower(), name[-1].lower()}]
        for name in wanted:
            with suppress(TableStoreError):
                yield from ((column, name[-1]) for column in self._columns_of(name))

    def _columns_of(self, name: Path) -> Iterator[str]:
        view, own = self._state.view(name), self._state.session_table(name)
        if view is not None:
            simple = view.query.simple
            yield from (column for column, _ in view.columns)
            yield from (alias for _, alias in (() if simple is None or view.columns else simple.columns))
        elif own is not None:
            yield from (column.name for column in own.columns)
        else:
            schema = self._state.load(name).schema
            yield from schema.field_names
            yield from computed_columns(schema.fields, schema.option_map).values()


def _statement_before(text: str) -> str:
    """Return the text before the cursor of the statement that it is in."""
    starts = [token.end for token in SQL.tokens(text) if token.text == ";"]
    return text[starts[-1] if starts else 0 :]


def _tables_named(tokens: Sequence[Token]) -> Iterator[tuple[Path, str]]:
    """Yield the tables of a statement, each with its name or alias there."""
    place = 0
    while place < len(tokens):
        is_before = tokens[place].word in _BEFORE_TABLE
        place += 1
        if not is_before or place >= len(tokens) or not tokens[place].is_name:
            continue
        path = [tokens[place].content]
        while place + 2 < len(tokens) and tokens[place + 1].text == ".":
            place += 2
            path.append(tokens[place].content)
        following = [token for token in tokens[place + 1 : place + 3] if token.word != "AS"][:1]
        is_alias = bool(following) and following[0].is_name and following[0].word not in _WORDS
        if path[-1].upper() not in _WORDS:
            yield tuple(path), following[0].content if is_alias else path[-1]


def _option_keys(before: str, text: str) -> Iterator[Completion]:
    """Yield keys where a key of options or settings is being typed."""
    match = _QUOTE.search(before)
    words = [] if match is None else [token.word for token in SQL.tokens(before[: match.start()])]
    opened = next((word for word in reversed(words) if word in _OPTION_WORDS), None)
    if match is None or opened is None or words[-1] not in {"(", ",", "SET", "RESET"}:
        return
    for key, meaning in _keys(opened, words, text):
        if key.startswith(match["typed"]):
            yield Completion(key, start_position=-len(match["typed"]), display_meta=meaning)


def _keys(opened: str, words: Sequence[str], text: str) -> Iterable[tuple[str, str]]:
    if words[0] in {"SET", "RESET"} and opened == words[0]:
        return ((key, "setting") for key in KEYS)
    groups = next((groups for name, groups in _CONNECTORS.items() if f"'{name}'" in text), None)
    if groups is not None:
        fields = (field.option for group in groups for field in option_fields(group))
        return ((option.name, option.meaning) for option in fields)
    return ((row.key, row.meaning) for row in describe_options() if row.honoured and "*" not in row.key)


def _starting(names: Iterable[tuple[str, str]], typed: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for name, kind in names:
        if name.lower().startswith(typed.lstrip("`").lower()) and name not in seen:
            seen.add(name)
            yield name, kind


def _quoted(name: str, typed: str) -> str:
    is_plain = _PLAIN.fullmatch(name) is not None and name.upper() not in _WORDS
    return name if is_plain and not typed.startswith("`") else "`" + name.replace("`", "``") + "`"
