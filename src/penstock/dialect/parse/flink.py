"""Flink's SQL for sqlglot: queries and row changes with Flink's syntax for tables.

sqlglot reads Spark's SQL, but no hints after tables, system tables, windows as Flink has them, and intervals in time
travel clauses. ``read_use`` and ``read_window`` read these, and for sqlglot's parser each is one token: a name with its
place in the text. A parser class of our own is not possible: where sqlglot is compiled (``sqlglot[c]``), no class in
Python inherits from its parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from penstock.dialect.parse.reader import SparkText, StatementReader
from penstock.dialect.parse.tables import read_use
from penstock.dialect.parse.windows import WINDOWS, at_window, read_window
from penstock.format.lexer import END, TEXT, WORD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from penstock.dialect.parse.reader import StatementText
    from penstock.dialect.parse.tables import TableUse, WindowCall
    from penstock.errors import InvalidSqlError
    from penstock.format.lexer import Token as OwnToken

READ_OTHERWISE: Final = (
    "Flink and Spark read this differently: leave out backslashes before quotes, and comments inside of comments"
)
"""The error text for a difference that cannot be left to Spark."""
_WINDOW_NAME: Final = "__w"
_WORDS: Final = (
    *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "INNER", "LEFT", "RIGHT"),
    *("CROSS", "UNION", "INTERSECT", "EXCEPT", "BETWEEN", "VALUES", "INTERVAL", "USING", "WINDOW", "PARTITION"),
)
# Words before literals, with the types that sqlglot has for them.
_TYPED: Final = {
    "DATE": ("date",),
    "TIMESTAMP": ("timestamp", "timestampntz", "timestampltz", "timestamptz"),
    "TIME": ("time",),
}
_PAIRS: Final = ("GROUP", "ORDER", "PARTITION", "SORT", "CLUSTER", "DISTRIBUTE")
_MISSING: Final = re.compile(r"Required keyword: '\w+' missing for ")
_EXPECTING: Final = re.compile(r"Expecting (?P<sign>\S+)")
_EXPECTED: Final = re.compile(r"Expected (?P<what>(?!table name).+)")
_HINT: Final = re.compile(r"/\*\+\s*(?P<word>\w+)\s*\(")
_LINE_BREAK: Final = re.compile(r"\r\n?|\n")
_CUTOFF: Final = 0.7
_MAX_SHOWN: Final = 200
_END: Final = "the end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """A query or a row change.

    Attributes:
        tokens: its tokens, without hints.
        tables: tables with hints, time travel clauses or ``$``, by the offset of their names.
        windows: calls of window functions, by their offset.
        difference: offset of the first word that is part of the statement for one lexer, and of a comment or a text
            for the other one; None if there is none. For Spark, a backslash before a quote does not end a text, and
            comments can be inside of each other.
    """

    source: StatementText
    tokens: Sequence[OwnToken]
    tables: Mapping[int, TableUse]
    windows: Mapping[int, WindowCall]
    tree: exp.Expr
    difference: int | None

    def misplaced(self, offset: int) -> InvalidSqlError:
        """Return the error for a table or a window at an offset where no table can be."""
        return self.source.error(offset, "a hint, time travel, system table or window is given where no table is named")


def parse_text(source: StatementText) -> ParsedText:
    """Parse a query or a row change.

    Raises:
        InvalidSqlError: a syntax error.
    """
    reader = StatementReader(source)
    _check_text(reader)
    tables: dict[int, TableUse] = {}
    windows: dict[int, WindowCall] = {}
    ends: dict[int, tuple[str, int]] = {}
    while reader.current.kind != END:
        start = reader.current.start
        if at_window(reader):
            windows[start], end = read_window(reader)
            ends[start] = (f"{_WINDOW_NAME}{len(windows) - 1}", end)
        elif not reader.current.is_name:
            reader.take()
        elif (found := read_use(reader)) is not None:
            tables[start], end = found
            ends[start] = (tables[start].last_name, end)
    reader.check_hints()
    try:
        spark_tokens = SparkText().tokenize(source.text)
        trees = SparkText().parser().parse(list(_parser_tokens(source, spark_tokens, ends)), source.text)
    except SqlglotError as error:
        raise _parse_error(source, reader.tokens, error, ends) from error
    if not trees or trees[0] is None:
        raise source.error(0, "expected a query: SELECT, WITH or VALUES")
    parsed = ParsedText(
        source=source,
        tokens=reader.tokens,
        tables=tables,
        windows=windows,
        tree=trees[0],
        difference=_difference(reader, spark_tokens),
    )
    _check_names(parsed)
    return parsed


def _parser_tokens(
    source: StatementText, tokens: Sequence[Token], ends: Mapping[int, tuple[str, int]]
) -> Iterator[Token]:
    """Yield the tokens for sqlglot's parser, one for each table and each window that it cannot read.

    Args:
        ends: by the offset of such a part: its name for the parser, and the offset of the text after it.
    """
    skipped_to = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.start < skipped_to <= token.end:
            raise source.error(token.start, READ_OTHERWISE)
        if token.start < skipped_to:
            continue
        if token.start in ends:
            name, skipped_to = ends[token.start]
            yield _named(token, TokenType.IDENTIFIER, name, skipped_to - 1)
        elif token.token_type == TokenType.WINDOW and following and following.token_type == TokenType.L_PAREN:
            # Spark's function ``window``, and no WINDOW clause.
            yield _named(token, TokenType.VAR, token.text, token.end)
        elif token.token_type == TokenType.RAW_STRING:
            yield _named(token, TokenType.STRING, token.text, token.end)
        else:
            yield token


def _difference(reader: StatementReader, spark_tokens: Sequence[Token]) -> int | None:
    hints = [hint for _, hint in reader.hints]
    own_tokens = sorted((*reader.tokens[:-1], *hints), key=attrgetter("start")) if hints else reader.tokens[:-1]
    own_spans = [(token.start, token.end) for token in own_tokens]
    spark_spans = [(token.start, token.end + 1) for token in spark_tokens]
    spark_ends = {end for _, end in spark_spans}
    texts = (token.start for token in own_tokens if token.kind == TEXT and token.end not in spark_ends)
    return min((*_outside(own_spans, spark_spans), *_outside(spark_spans, own_spans), *texts), default=None)


def _outside(spans: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the starts of spans that are in none of the others; both are in order."""
    following = iter(others)
    start, end = next(following, (0, 0))
    for each, _ in spans:
        while end <= each and (found := next(following, None)) is not None:
            start, end = found
        if not start <= each < end:
            yield each


def _named(token: Token, kind: TokenType, name: str, end: int) -> Token:
    column = token.col + end - token.end
    return Token(kind, name, line=token.line, col=column, start=token.start, end=end)


def name_parts(table: exp.Table) -> list[exp.Expr]:
    """Return the parts of a table's name: catalog, database and table, as far as they are given."""
    return [part for part in (table.args.get("catalog"), table.args.get("db"), table.this) if part is not None]


def span_of(node: exp.Table | exp.Column) -> tuple[int, int]:
    """Return where a name begins and ends in the text."""
    parts = name_parts(node) if isinstance(node, exp.Table) else node.parts
    return int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1


def typed_literal(node: exp.Expr) -> tuple[str, str] | None:
    """Return word and text of a literal such as ``DATE '2026-01-31'`` or ``X'00ff'``; None for anything else."""
    if isinstance(node, exp.HexString):
        return "X", node.name
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal) or not node.this.is_string:
        return None
    word = next((word for word, types in _TYPED.items() if node.to.is_type(*types)), None)
    return None if word is None else (word, str(node.this.this))


def _check_names(parsed: ParsedText) -> None:
    """Check that tables are names of at most three parts."""
    for node in parsed.tree.find_all(exp.Table):
        if isinstance(node.this, exp.Dot):
            first = next(node.this.find_all(exp.Identifier))
            raise parsed.source.error(int(first.meta["start"]), "a name has at most 3 parts: catalog.database.table")
        parts = name_parts(node)
        if isinstance(node.this, exp.Identifier) and not all(_has_place(part) for part in parts):
            start = next((int(part.meta["start"]) for part in parts if _has_place(part)), 0)
            raise parsed.source.error(start, "expected a table's name")


def _has_place(part: object) -> bool:
    return isinstance(part, exp.Identifier) and "start" in part.meta


# Errors


def _check_text(reader: StatementReader) -> None:
    """Raise an error for mistakes that sqlglot accepts but Spark or Flink does not.

    Raises:
        InvalidSqlError: an extra comma, no columns after SELECT, a missing condition or key, a misspelt hint or
            window function.
    """
    source, tokens = reader.statement, reader.tokens
    for place, token in enumerate(tokens[:-1]):
        after, following = tokens[place + 1], tokens[min(place + 2, len(tokens) - 1)].word
        # A column may be named FROM.
        is_clause = after.word in {"FROM", "WHERE"} and following not in {"FROM", ","}
        if token.text == "," and (after.word in {"", ")"} or is_clause):
            raise source.error(after.start, f"found {_shown_word(after)}: expected another item after ',', or no comma")
        if token.word == "SELECT" and is_clause:
            raise source.error(after.start, f"found {_shown_word(after)}: expected columns, or *")
        if token.word in {"ON", "BY"} and after.word == "":
            raise source.error(after.start, f"found {after}: expected something after '{token.word}'")
        _check_window(source, tokens[place : place + 4])
    for _, hint in reader.hints:
        _check_hint(source, hint)


def _parse_error(
    source: StatementText, tokens: Sequence[OwnToken], error: SqlglotError, replaced: Collection[int]
) -> InvalidSqlError:
    """Convert an error of sqlglot to an error with line and column.

    Args:
        replaced: offsets of what was one token for sqlglot; its first word is shown, because hints may have secrets.
    """
    details = getattr(error, "errors", None)
    if not details:
        return source.error(0, f"the query cannot be read: {str(error)[:_MAX_SHOWN]}")
    first = details[0]
    found, description = str(first.get("highlight") or ""), str(first.get("description") or "")
    starts = [0, *(found.end() for found in _LINE_BREAK.finditer(source.text))]
    end = starts[int(first.get("line") or 1) - 1] + int(first.get("col") or 1)
    start, tokens = max(end - len(found), 0), tokens[:-1]
    if start in replaced:
        found = next(token.text for token in tokens if token.start == start)
    misspelt = _misspelt(tokens, start) if description.startswith("Invalid") else None
    if misspelt is not None:
        token, word = misspelt
        return source.error(token.start, f"found '{token.text}': did you mean {word}?")
    is_last = not tokens or tokens[-1].start <= start
    is_unexpected = (
        not any(pattern.match(description) for pattern in (_MISSING, _EXPECTING)) and "table name" not in description
    )
    if is_last and not is_unexpected:
        expected = _expected(description, f"something after '{found}'")
        return source.error(len(source.text), f"found {_END}: {expected}")
    before = next((token.word for token in reversed(tokens) if token.start < start), "")
    if before in _PAIRS and description.startswith("Invalid"):
        return source.error(start, f"found '{found}': expected BY after {before}")
    return source.error(start, f"found '{found}': {_expected(description, 'an expression, which is missing here')}")


def _expected(description: str, missing: str) -> str:
    if _MISSING.match(description):
        return f"expected {missing}"
    if "table name" in description:
        return "expected a table's name"
    if match := _EXPECTING.match(description):
        return f"expected '{match['sign']}'"
    if match := _EXPECTED.match(description):
        return f"expected {match['what']}"
    return "expected a clause such as JOIN, WHERE, GROUP BY or LIMIT, or the end"


def _shown_word(token: OwnToken) -> str:
    return f"'{token.word}'" if token.word else _END


def _misspelt(tokens: Sequence[OwnToken], start: int) -> tuple[OwnToken, str] | None:
    """Return the token at an offset, or one of the two before it, if it is similar to an SQL keyword."""
    around = [token for token in tokens if token.start <= start][-3:]
    for before, token in pairwise(around):
        is_table = before.word in {"FROM", "JOIN", ","}
        if is_table or token.kind != WORD or token.word in _WORDS:
            continue
        near = get_close_matches(token.word, _WORDS, n=1, cutoff=_CUTOFF)
        if near:
            return token, near[0]
    return None


def _check_hint(source: StatementText, token: OwnToken) -> None:
    match = _HINT.match(token.text)
    word = "" if match is None else match["word"].upper()
    if match is not None and word != "OPTIONS" and get_close_matches(word, ("OPTIONS",), cutoff=_CUTOFF):
        raise source.error(token.start + match.start("word"), f"found '{match['word']}': did you mean OPTIONS?")


def _check_window(source: StatementText, tokens: Sequence[OwnToken]) -> None:
    words = [token.word for token in tokens]
    if words[:2] != ["TABLE", "("] or words[3:] != ["("] or words[2] in WINDOWS or not tokens[2].is_name:
        return
    near = get_close_matches(words[2], WINDOWS, n=1, cutoff=_CUTOFF)
    if near:
        raise source.error(tokens[2].start, f"found '{tokens[2].text}': did you mean {near[0]}?")
