"""Flink's SQL for sqlglot: queries and row changes with Flink's syntax for tables.

sqlglot reads Spark's SQL, but no hints after tables, system tables, windows as Flink has them, and intervals in time
travel clauses. ``read_use`` and ``read_window`` read these, and for sqlglot's parser each is one token: a name with its
place in the text. A parser class of our own is not possible: where sqlglot is compiled (``sqlglot[c]``), no class in
Python inherits from its parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from penstock.dialect.parse.query_errors import check_text, parse_error
from penstock.dialect.parse.reader import OPTIONS_HINT, StatementReader
from penstock.dialect.parse.tables import read_use
from penstock.dialect.parse.windows import at_window, read_window
from penstock.format.lexer import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.dialect.parse.reader import StatementText
    from penstock.dialect.parse.tables import TableUse, WindowCall
    from penstock.format.lexer import Token as OurToken

_WINDOW_NAME: Final = "__w"


class DoubledQuotes(Spark):
    """Spark's SQL with texts as everywhere else here: a quote is doubled, and a backslash is one."""

    class Tokenizer(Spark.Tokenizer):
        """Tokens of that."""

        STRING_ESCAPES = ["'", '"']  # noqa: RUF012 - as sqlglot declares it


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """A query or a row change.

    Attributes:
        tokens: its tokens, without hints.
        tables: tables with hints, time travel clauses or ``$``, by the offset of their names.
        windows: calls of window functions, by their offset.
    """

    source: StatementText
    tokens: Sequence[OurToken]
    tables: Mapping[int, TableUse]
    windows: Mapping[int, WindowCall]
    tree: exp.Expr

    def lost(self, offset: int) -> Exception:
        """Return the error for a table or a window at an offset where no table can be."""
        return self.source.error(offset, "a hint, time travel, system table or window is given where no table is named")


def parse_text(source: StatementText, dialect: type[Spark] = Spark) -> ParsedText:
    """Parse a query or a row change.

    Raises:
        InvalidSqlError: a syntax error.
    """
    reader = StatementReader(source)
    check_text(reader)
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
    for _, hint in reader.hints:
        if OPTIONS_HINT.match(hint.text):
            raise source.error(hint.start, "this hint follows no table; expected t /*+ OPTIONS('k' = 'v') */")
    try:
        trees = dialect().parser().parse(list(_parser_tokens(source.text, dialect, ends)), source.text)
    except SqlglotError as error:
        raise parse_error(source, reader.tokens, error, ends) from error
    if not trees or trees[0] is None:
        raise source.error(0, "expected a query: SELECT, WITH or VALUES")
    parsed = ParsedText(source=source, tokens=reader.tokens, tables=tables, windows=windows, tree=trees[0])
    _check_names(parsed)
    return parsed


def _parser_tokens(text: str, dialect: type[Spark], ends: Mapping[int, tuple[str, int]]) -> Iterator[Token]:
    """Yield the tokens for sqlglot, one for each table and each window that it cannot read."""
    tokens = dialect().tokenize(text)
    skipped_to = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.start < skipped_to:
            continue
        if token.start in ends:
            name, skipped_to = ends[token.start]
            yield _named(token, TokenType.IDENTIFIER, name, skipped_to - 1)
        elif token.token_type == TokenType.WINDOW and following and following.token_type == TokenType.L_PAREN:
            # Spark's function ``window``, and no WINDOW clause.
            yield _named(token, TokenType.VAR, token.text, token.end)
        else:
            yield token


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
