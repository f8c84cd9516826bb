"""Replace Flink's table syntax that Spark lacks in queries: hints, time travel, system tables, windows.

Each such part is replaced by a placeholder name of the same length. The result is SQL that the parser accepts, and
every character keeps its line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.reader import StatementReader, read_options
from penstock.dialect.parse.script import StatementText
from penstock.dialect.parse.travel import read_travel_value
from penstock.dialect.parse.windows import WINDOWS, WindowCall, read_window
from penstock.format.lexer import (
    BLANK,
    COMMENT_BUT_NO_HINT,
    HINT,
    IN_DOUBLE_QUOTES,
    IN_SINGLE_QUOTES,
    NAME_WORD,
    Lexer,
    Piece,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.dialect.parse.names import Pairs, Path

_LEXER: Final = Lexer(
    skip=f"{BLANK}|{COMMENT_BUT_NO_HINT}",
    hint=HINT,
    name=rf"`(?:[^`]|``)+`|{NAME_WORD}",
    text=f"{IN_SINGLE_QUOTES}|{IN_DOUBLE_QUOTES}",
    number=r"[0-9]+(?:\.[0-9]+)?",
    sign=".",
)
_OPTIONS_HINT: Final = re.compile(r"/\*\+\s*(?P<body>OPTIONS\s*\(.*)\*/", re.DOTALL | re.IGNORECASE)
_TRAVEL_WORDS: Final = {
    ("FOR", "SYSTEM_TIME", "AS", "OF"): "scan.timestamp",
    ("FOR", "TIMESTAMP", "AS", "OF"): "scan.timestamp",
    ("TIMESTAMP", "AS", "OF"): "scan.timestamp",
    ("FOR", "SYSTEM_VERSION", "AS", "OF"): "scan.version",
    ("FOR", "VERSION", "AS", "OF"): "scan.version",
    ("VERSION", "AS", "OF"): "scan.version",
}
_TABLE_STAND_IN: Final = "__t"
_WINDOW_STAND_IN: Final = "__w"
_WINDOW_FUNCTION: Final = "windo_"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """One use of a table in a query.

    Attributes:
        options: options of the hint and of the time travel clause.
        system: name of the system table; None if the table's own rows are read.
        window: the window function that reads the table; None if there is none.
        offset: offset of the table's name in the query's text.
    """

    name: Path
    options: Pairs = field(default=(), repr=False)
    system: str | None = None
    window: WindowCall | None = None
    offset: int = 0

    @property
    def last_name(self) -> str:
        """The table's name without catalog and database, as the query may refer to it."""
        return self.name[-1] if self.system is None else f"{self.name[-1]}${self.system}"

    @property
    def title(self) -> str:
        """The full name for messages."""
        return ".".join((*self.name[:-1], self.last_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainQuery:
    """A query with placeholders for the parts that the parser does not accept.

    Attributes:
        text: the text with placeholders, of the same length as the original.
        tables: the replaced uses of tables, by placeholder.
        windows: the replaced calls of window functions, by placeholder.
    """

    source: StatementText
    text: str
    tables: dict[str, TableUse]
    windows: dict[str, WindowCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextToken(Piece):
    """A token of a query's text; ``kind`` is ``hint``, ``name``, ``text``, ``number`` or ``sign``."""

    @property
    def word(self) -> str:
        """The text; a name is converted to upper case."""
        return self.text.upper() if self.kind == "name" else self.text

    @property
    def name(self) -> str:
        """The text without backquotes."""
        return self.content if self.text.startswith("`") else self.text


def scan(text: str) -> list[TextToken]:
    """Return the tokens of a text, without blanks and comments."""
    return list(_tokens(text))


def plain_query(source: StatementText) -> PlainQuery:
    """Replace Flink-only syntax in a query by placeholders.

    Raises:
        InvalidSqlError: a hint, a time travel clause or a window function has a syntax error.
    """
    tables: dict[str, TableUse] = {}
    text = source.text
    for start, end, use in list(_table_extras(source)):
        stand_in = f"{_TABLE_STAND_IN}{len(tables)}"
        tables[stand_in] = use
        text = _put(text, start, end, stand_in)
    windows: dict[str, WindowCall] = {}
    for start in _window_starts(text):
        stand_in = f"{_WINDOW_STAND_IN}{len(windows)}"
        line, column = source.place(start)
        call, length = read_window(StatementReader(StatementText(text=text[start:], line=line, column=column)))
        windows[stand_in] = replace(call, offset=start, column_offset=start + call.column_offset)
        text = _put(text, start, start + length, stand_in)
    return PlainQuery(source=source, text=text, tables=tables, windows=windows)


def parser_text(text: str) -> str:
    """Replace calls of Spark's ``window``, at the same length, so that the parser does not read a WINDOW clause."""
    tokens = list(_tokens(text))
    for token, behind in pairwise(tokens):
        if token.kind == "name" and token.text.upper() == "WINDOW" and behind.text == "(":
            text = text[: token.start] + _WINDOW_FUNCTION + text[token.end :]
    return text


def table_of(path: Path, offset: int) -> TableUse:
    """Return the table of a path; the last part may name a system table or a branch: ``t$branch_b$snapshots``."""
    name, dollar, system = path[-1].partition("$")
    if dollar and system.startswith("branch_"):
        branch, dollar, system = system.partition("$")
        name = f"{name}${branch}"
    return TableUse(name=(*path[:-1], name), system=system if dollar else None, offset=offset)


def strip_hint(source: StatementText, offset: int) -> tuple[Pairs, int]:
    """Return the options of the hint at an offset (empty if there is none), and the end offset of the hint."""
    for token in _tokens(source.text, offset):
        if token.kind == "hint":
            return _hint_options(source, token), token.end
        break
    return (), offset


def _table_extras(source: StatementText) -> Iterator[tuple[int, int, TableUse]]:
    tokens = list(_tokens(source.text))
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.kind != "name":
            if token.kind == "hint" and _OPTIONS_HINT.match(token.text):
                raise source.error(token.start, "this hint follows no table; expected t /*+ OPTIONS('k' = 'v') */")
            place += 1
            continue
        after = _path_end(tokens, place)
        end, options = _extras_after(source, tokens, after)
        use = table_of(_path_of(tokens[place:after]), token.start)
        if end > after or "$" in "".join(part.text for part in tokens[place:after]):
            yield token.start, tokens[end - 1].end, _with_options(use, options)
        place = end


def _path_end(tokens: Sequence[TextToken], place: int) -> int:
    """Return the index of the token after ``a.b.c`` or ``a.t$snapshots``."""
    place += 1
    while place + 1 < len(tokens) and tokens[place].text in {".", "$"} and tokens[place + 1].kind == "name":
        place += 2
    return place


def _path_of(tokens: Sequence[TextToken]) -> Path:
    """Return the parts of a name; ``$`` and what follows it belong to the part before."""
    parts = [""]
    for token in tokens:
        if token.text == ".":
            parts.append("")
        else:
            parts[-1] += token.name
    return tuple(parts)


def _extras_after(source: StatementText, tokens: Sequence[TextToken], place: int) -> tuple[int, Pairs]:
    """Read the hint and the time travel clause after a path, in any order; return the index of the token after them."""
    options: list[tuple[str, str]] = []
    while place < len(tokens):
        token = tokens[place]
        if token.kind == "hint" and _OPTIONS_HINT.match(token.text):
            options += _hint_options(source, token)
            place += 1
            continue
        travel = _travel_at(tokens, place)
        if travel is None:
            break
        key, place = travel
        place, value = read_travel_value(source, tokens, place, is_version=key == "scan.version")
        options.append((key, value))
    return place, tuple(options)


def _travel_at(tokens: Sequence[TextToken], place: int) -> tuple[str, int] | None:
    for words, key in _TRAVEL_WORDS.items():
        if tuple(token.word for token in tokens[place : place + len(words)]) == words:
            return key, place + len(words)
    return None


def _with_options(use: TableUse, options: Pairs) -> TableUse:
    """Return a table with options; the option ``branch`` becomes part of its name."""
    branch = dict(options).get("branch")
    if branch is None:
        return replace(use, options=options)
    rest = tuple(pair for pair in options if pair[0] != "branch")
    return replace(use, name=(*use.name[:-1], f"{use.name[-1]}$branch_{branch}"), options=rest)


def _hint_options(source: StatementText, token: TextToken) -> Pairs:
    match = _OPTIONS_HINT.match(token.text)
    if match is None:
        raise source.error(token.start, "expected the hint /*+ OPTIONS('key' = 'value') */")
    start = token.start + match.start("body")
    line, column = source.place(start)
    reader = StatementReader(StatementText(text=match["body"].rstrip(), line=line, column=column))
    reader.expect_words("OPTIONS")
    options = read_options(reader)
    reader.done()
    return options


def _window_starts(text: str) -> Iterator[int]:
    """Yield the offsets of ``TABLE(TUMBLE(`` and similar calls; the text may already contain placeholders."""
    tokens = list(_tokens(text))
    for place, token in enumerate(tokens):
        words = tuple(each.word for each in tokens[place : place + 4])
        is_wrapped = words[:2] == ("TABLE", "(") and words[2:3] and words[2] in WINDOWS and words[3:] == ("(",)
        is_bare = words[:1] and words[0] in WINDOWS and words[1:3] in {("(", "TABLE"), ("(", "DATA")}
        wrapped_before = place >= 2 and tokens[place - 2].word == "TABLE" and tokens[place - 1].text == "("
        if is_wrapped or (is_bare and not wrapped_before):
            yield token.start


def _tokens(text: str, start: int = 0) -> Iterator[TextToken]:
    for piece in _LEXER.pieces(text, start):
        yield TextToken(kind=piece.kind, text=piece.text, start=piece.start)


def _put(text: str, start: int, end: int, stand_in: str) -> str:
    """Replace a range of the text by a placeholder, padded with blanks to the same length; keep the line breaks."""
    rest = "".join(letter if letter == "\n" else " " for letter in text[start:end])
    return text[:start] + stand_in + rest[len(stand_in) :] + text[end:]
