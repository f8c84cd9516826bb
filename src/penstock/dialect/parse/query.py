"""Parse queries: find the tables that they read, and produce their text for Spark.

The text is not generated from a syntax tree. It stays as the user wrote it; only the names of tables and the window
functions are replaced. So Spark evaluates every expression as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot import exp

from penstock.dialect.parse.flink import ParsedText, name_parts, parse_text, span_of, typed_literal
from penstock.dialect.parse.reader import text_value
from penstock.dialect.parse.tables import TableUse, table_of
from penstock.dialect.parse.windows import WINDOW_COLUMN
from penstock.format.text.names import quoted
from penstock.format.types.text import format_string

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from penstock.dialect.parse.reader import StatementText
    from penstock.dialect.parse.tables import WindowCall
    from penstock.format.lexer import Token

Piece: TypeAlias = str | int
"""A part of the text, or an index into the tables of the query: the table's name is inserted at this place."""
_Edit: TypeAlias = tuple[int, int, tuple[Piece, ...]]

# The name of a table and two closing parentheses follow.
_WINDOWED: Final = (
    "(SELECT {kept}, {window}.start AS window_start, {window}.end AS window_end, "
    "{window}.end - INTERVAL '0.001' SECOND AS window_time FROM (SELECT *, {call} AS {window} FROM "
)
_WINDOW_COLUMNS: Final = ("window_start", "window_end")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleSelect:
    """A query that runs without Spark: columns of one table, a condition, a limit.

    Attributes:
        columns: pairs of a column's name and its name in the result; empty for all columns.
        where: the text of the condition.
    """

    columns: tuple[tuple[str, str], ...]
    where: str | None
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query.

    Attributes:
        tables: the tables that the query reads, in the order of its text; a table that is named twice is listed twice.
        starts: for each piece, its offset in the source, and whether it is source text (True) or replaces source text.
        simple: the query in simple form; None if it needs Spark.
        conditions: if the query reads one table: the conditions, in filter syntax, that every row of the result meets.
        names: the columns that the query may use, in lower case; None if it may use all columns.
        keyless_session: offset of a SESSION window without PARTITION BY; None if there is none.
    """

    source: StatementText
    tables: tuple[TableUse, ...]
    pieces: tuple[Piece, ...]
    starts: tuple[tuple[int, bool], ...]
    simple: SimpleSelect | None
    conditions: tuple[str, ...] = ()
    names: frozenset[str] | None = None
    keyless_session: int | None = None

    def text(self, names: Sequence[str]) -> str:
        """Return the query for Spark.

        Args:
            names: names of views, one for each of ``tables``.
        """
        return "".join(_shown(piece, names) for piece in self.pieces)

    def place(self, names: Sequence[str], offset: int) -> tuple[int, int]:
        """Map an offset in the text for Spark to line and column in the script."""
        left = offset
        for piece, (start, is_own) in zip(self.pieces, self.starts, strict=True):
            length = len(_shown(piece, names))
            if left < length:
                return self.source.place(start + left if is_own else start)
            left -= length
        return self.source.place(len(self.source.text))


def _shown(piece: Piece, names: Sequence[str]) -> str:
    return quoted(names[piece]) if isinstance(piece, int) else piece


def parse_query(source: StatementText) -> Query:
    """Parse a query.

    Raises:
        InvalidSqlError: the text is not a query, or a query that cannot be run.
    """
    parsed = parse_text(source)
    _check_query(parsed)
    edits = _Edits(parsed)
    edits.collect()
    pieces = edits.pieces()
    return Query(
        source=source,
        tables=tuple(edits.tables),
        pieces=tuple(piece for piece, _, _ in pieces),
        starts=tuple((start, is_own) for _, start, is_own in pieces),
        simple=_simple(parsed),
        conditions=tuple(_conditions(parsed)),
        names=_names(parsed),
        keyless_session=next((call.offset for call in parsed.windows.values() if call.is_keyless_session), None),
    )


def _check_query(parsed: ParsedText) -> None:
    if not isinstance(parsed.tree, exp.Query | exp.Values):
        raise parsed.source.error(0, "expected a query: SELECT, WITH or VALUES")
    if parsed.tree.find(exp.Fetch) is not None:
        at = next(token.start for token in parsed.tokens if token.word == "FETCH")
        raise parsed.source.error(at, "found 'FETCH': write LIMIT and the number of rows, which means the same")


class _Edits:
    """Finds the parts of a query's text to replace."""

    def __init__(self, parsed: ParsedText) -> None:
        self.tables: list[TableUse] = []
        self._parsed = parsed
        self._edits: list[_Edit] = []
        self._own_names = {each.alias.lower() for each in parsed.tree.find_all(exp.CTE)}

    def collect(self) -> None:
        unused = {*self._parsed.tables, *self._parsed.windows}
        nodes = [node for node in self._parsed.tree.find_all(exp.Table) if _is_read(node)]
        for node in sorted(nodes, key=lambda node: span_of(node)[0]):
            start, _ = span_of(node)
            unused.discard(start)
            if start in self._parsed.windows:
                self._exchange_window(node, self._parsed.windows[start])
            else:
                self._exchange_table(node)
        if unused:
            raise self._parsed.misplaced(min(unused))

    def pieces(self) -> list[tuple[Piece, int, bool]]:
        """Return each piece with its offset in the source, and whether it is source text."""
        text = self._parsed.source.text
        pieces: list[tuple[Piece, int, bool]] = []
        place = 0
        for start, end, inner in sorted(self._edits):
            pieces.append((text[place:start], place, True))
            pieces += [(piece, start, False) for piece in inner]
            place = end
        return [*pieces, (text[place:], place, True)]

    def _exchange_table(self, node: exp.Table) -> None:
        start, end = span_of(node)
        use, path = self._parsed.tables.get(start), tuple(part.name for part in name_parts(node))
        if use is None and len(path) == 1 and path[0].lower() in self._own_names:
            return
        piece = self._add(use or table_of(path, start))
        # In Spark an alias follows TABLESAMPLE, and there is no place known behind it.
        alias = "" if node.alias or node.args.get("sample") else f" AS {quoted(self.tables[piece].last_name)}"
        self._edits.append((start, end, (piece, alias)))

    def _add(self, use: TableUse) -> int:
        self.tables.append(use)
        return len(self.tables) - 1

    def _exchange_window(self, node: exp.Table, call: WindowCall) -> None:
        start, end = span_of(node)
        source, name = call.table, call.table.last_name
        is_own = len(source.name) == 1 and not source.options and name.lower() in self._own_names
        if is_own and call.kind == "CUMULATE":
            raise self._parsed.source.error(
                call.offset, f"CUMULATE reads tables and views: CREATE TEMPORARY VIEW creates one of '{name}'"
            )
        table: Piece = quoted(name) if is_own else self._add(replace(source, window=call))
        alias = "" if node.alias else f" AS {quoted(node.name)}"
        if call.kind == "CUMULATE":
            self._edits.append((start, end, (table, alias)))
            return
        select = node.find_ancestor(exp.Select)
        grouped = [] if select is None else _grouped_by(select, _WINDOW_COLUMNS)
        if call.kind == "SESSION":
            self._edits.append((start, end, (table, alias)))
            self._exchange_session(select, grouped, call)
            return
        window = f"`{WINDOW_COLUMN}`"
        kept = "*" if grouped else f"* EXCEPT ({window})"
        opening = _WINDOWED.format(kept=kept, window=window, call=call.spark_window)
        self._edits.append((start, end, (opening, table, "))" + alias)))
        if grouped:
            # The groups stay the same with this column, and only this column carries the watermark of a stream.
            first, _ = span_of(grouped[0])
            self._edits.append((first, first, (f"{quoted(node.alias or node.name)}.{window}, ",)))

    def _exchange_session(self, select: exp.Select | None, grouped: list[exp.Column], call: WindowCall) -> None:
        names = {column.name.lower() for column in grouped}
        keys = set() if select is None else {key.lower() for key in _group_keys(select)} - set(_WINDOW_COLUMNS)
        wanted = {key.lower() for key in call.partition_by}
        if select is None or names != set(_WINDOW_COLUMNS) or keys != wanted:
            columns = ", ".join((*call.partition_by, *_WINDOW_COLUMNS))
            raise self._parsed.source.error(
                call.offset, f"Spark supports session windows only as groups: GROUP BY exactly {columns}"
            )
        for column in select.find_all(exp.Column):
            name = column.name.lower()
            if name not in _WINDOW_COLUMNS:
                continue
            start, end = span_of(column)
            is_key = any(column is each for each in grouped)
            text = call.spark_window if is_key else f"session_window.{name.removeprefix('window_')}"
            is_result = column.parent is select and not is_key
            self._edits.append((start, end, (text + (f" AS {name}" if is_result else ""),)))


def _grouped_by(select: exp.Select, names: Sequence[str]) -> list[exp.Column]:
    group = select.args.get("group")
    columns = [] if group is None else group.expressions
    return [each for each in columns if isinstance(each, exp.Column) and each.name.lower() in names]


def _group_keys(select: exp.Select) -> Iterator[str]:
    group = select.args.get("group")
    for each in () if group is None else group.expressions:
        yield each.name if isinstance(each, exp.Column) else each.sql()


def _is_read(node: exp.Table) -> bool:
    """Whether rows are read from the table: it is neither a function nor a name in a Spark hint."""
    return isinstance(node.this, exp.Identifier) and node.find_ancestor(exp.Hint) is None


def _simple(parsed: ParsedText) -> SimpleSelect | None:
    """Return the query as columns, condition and limit of one table; None if the query has anything else."""
    tree = parsed.tree
    if (
        not isinstance(tree, exp.Select)
        or parsed.difference is not None
        or parsed.windows
        or len(list(tree.find_all(exp.Select))) > 1
    ):
        return None
    used = {name for name, value in tree.args.items() if value}
    tables = list(tree.find_all(exp.Table))
    if used - {"expressions", "from_", "where", "limit"} or len(tables) != 1:
        return None
    if tables[0].alias or not _is_plain(tables[0]):
        return None
    columns = _simple_columns(tree)
    limit = tree.args.get("limit")
    if columns is None or (limit is not None and not _is_row_count(limit)):
        return None
    where = _where_text(parsed.tokens) if tree.args.get("where") else None
    return SimpleSelect(columns=columns, where=where, limit=None if limit is None else int(limit.expression.name))


def _is_plain(table: exp.Table) -> bool:
    """Whether all rows of a table are read, by the names of its columns: without TABLESAMPLE, PIVOT or AS t (a, b)."""
    others = {name for name, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}
    alias = table.args.get("alias")
    return isinstance(table.this, exp.Identifier) and not others and not (alias and alias.args.get("columns"))


def _is_row_count(limit: exp.Expr) -> bool:
    """Whether the LIMIT is a valid number of rows: up to 18 digits, which is less than 2^63."""
    count = limit.expression
    is_number = isinstance(limit, exp.Limit) and isinstance(count, exp.Literal)
    return is_number and count.name.isdecimal() and len(count.name) <= 18


def _simple_columns(select: exp.Select) -> tuple[tuple[str, str], ...] | None:
    if len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star):
        return () if not select.expressions[0].args.get("except_") else None
    columns = []
    for each in select.expressions:
        column = each.this if isinstance(each, exp.Alias) else each
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier) or column.table:
            return None
        columns.append((column.name, each.alias_or_name))
    return tuple(columns)


def _conditions(parsed: ParsedText) -> Iterator[str]:
    """Yield the operands of the top-level ANDs in the WHERE of a query on one table."""
    tree = parsed.tree
    where, source = tree.args.get("where"), tree.args.get("from_")
    is_alone = len(list(tree.find_all(exp.Table))) == 1 and len(list(tree.find_all(exp.Select))) == 1
    if where is None or source is None or not is_alone or not isinstance(source.this, exp.Table):
        return
    # A join with VALUES or a function has no second table, and an outer one adds rows that the condition may want.
    if parsed.windows or tree.args.get("laterals") or tree.args.get("joins") or not _is_plain(source.this):
        return
    names = {source.this.alias or source.this.name}
    condition = where.this
    for each in condition.flatten() if isinstance(condition, exp.And) else (condition,):
        text = filter_text(each, names)
        if text is not None:
            yield text


def _names(parsed: ParsedText) -> frozenset[str] | None:
    tree = parsed.tree
    stars = [star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    has_other_names = any(alias.args.get("columns") for alias in tree.find_all(exp.TableAlias))
    if stars or has_other_names or any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return None
    parts = [part.name for column in tree.find_all(exp.Column) for part in column.parts]
    using = [each.name for join in tree.find_all(exp.Join) for each in join.args.get("using") or ()]
    times = [call.column for call in parsed.windows.values()]
    return frozenset(name.lower() for name in (*parts, *using, *times))


def filter_text(condition: exp.Expr, names: Collection[str]) -> str | None:
    """Return a condition in filter syntax; None if it has a field of a ROW, or a column of another table.

    Args:
        names: what columns may have before them, in any case: the table's name or alias.
    """
    tables = {"", *(name.lower() for name in names)}
    columns = condition.find_all(exp.Column)
    if condition.find(exp.Dot) or any(len(each.parts) > 2 or each.table.lower() not in tables for each in columns):
        return None
    # sqlglot's default dialect has no escapes in string literals, and neither has a filter.
    text: str = condition.transform(_as_filter).sql(comments=False)
    return text


def _as_filter(node: exp.Expr) -> exp.Expr:
    """Convert to filter syntax: columns without the table, and typed literals such as ``DATE '2026-01-01'``."""
    if isinstance(node, exp.Column):
        return exp.Column(this=node.this)
    found = typed_literal(node)
    if found is not None:
        word, text = found
        return exp.Var(this=f"{word}{'' if word == 'X' else ' '}{format_string(text)}")
    return node


def _where_text(tokens: Sequence[Token]) -> str:
    """Return the condition between WHERE and LIMIT, without comments."""
    start = max(place for place, token in enumerate(tokens) if token.word == "WHERE") + 1
    end = max((place for place, token in enumerate(tokens) if token.word == "LIMIT"), default=-1)
    kept = tokens[start : end if end > start else len(tokens) - 1]
    gaps = [" " if before.end < token.start else "" for before, token in pairwise(kept)]
    # A filter has no escapes.
    texts = [format_string(text_value(token) or "") if "\\" in token.text else token.text for token in kept]
    return "".join(f"{gap}{text}" for gap, text in zip(("", *gaps), texts, strict=True))
