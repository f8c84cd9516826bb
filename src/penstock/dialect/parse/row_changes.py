"""Parse DELETE, UPDATE and MERGE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from penstock.dialect.parse.expressions import WORKS, UnknownExpressionError, arrow_expression, constant_of
from penstock.dialect.parse.query import Query, SimpleSelect, filter_text, parse_query, span_of
from penstock.dialect.parse.query_errors import check_text, parse_error
from penstock.dialect.parse.script import StatementText
from penstock.dialect.parse.statements import DeleteRows, MergeClause, MergeRows, UpdateRows
from penstock.dialect.parse.tables import TableUse, parser_text, plain_query, scan
from penstock.errors import UnsupportedFeatureError
from penstock.table.dml.merge import SOURCE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from penstock.dialect.parse.names import Pairs
    from penstock.dialect.parse.tables import PlainQuery

WORDS: Final = ("DELETE", "UPDATE", "MERGE")

# Options that say which rows are read; time travel is one.
_OF_READS: Final = ("scan.", "incremental-between", "consumer-id", "penstock.scan.")
# What these statements have here; sqlglot reads more, such as LIMIT and FROM, which would change other rows.
_CLAUSES: Final[Mapping[type[exp.Expr], tuple[frozenset[str], str]]] = {
    exp.Delete: (frozenset({"this", "where"}), "DELETE FROM t WHERE …"),
    exp.Update: (frozenset({"this", "expressions", "where"}), "UPDATE t SET … WHERE …"),
    exp.Merge: (frozenset({"this", "using", "on", "whens"}), "MERGE INTO t USING … ON … WHEN …"),
    exp.Table: (frozenset({"this", "db", "catalog", "alias"}), "a table's name, and AS with another one"),
}
_MATCHED: Final = "WHEN MATCHED"
_NOT_MATCHED: Final = "WHEN NOT MATCHED"
_BY_SOURCE: Final = "WHEN NOT MATCHED BY SOURCE"


class _Unescaped(Spark):
    """Spark's SQL with texts as everywhere else here: a quote is doubled, and a backslash is one."""

    class Tokenizer(Spark.Tokenizer):
        """Tokens of that."""

        STRING_ESCAPES = ["'", '"']  # noqa: RUF012 - as sqlglot declares it


def parse_row_change(source: StatementText) -> DeleteRows | UpdateRows | MergeRows:
    """Parse a statement that begins with one of ``WORDS``.

    Raises:
        InvalidSqlError: a syntax error.
        UnsupportedFeatureError: an expression or a condition that cannot be evaluated here.
    """
    check_text(source)
    plain = plain_query(source)
    try:
        tree = sqlglot.parse_one(parser_text(plain.text), read=_Unescaped)
    except SqlglotError as error:
        raise parse_error(source, error) from error
    if not isinstance(tree, exp.Delete | exp.Update | exp.Merge):
        raise source.error(0, "expected DELETE FROM, UPDATE or MERGE INTO")
    _check_clauses(tree, source)
    target = _target(tree.this, plain)
    if isinstance(tree, exp.Merge):
        return _merge(tree, plain, target)
    _check_placed(plain, target, (0, 0))
    where = _where(tree, source, target)
    if isinstance(tree, exp.Delete):
        return DeleteRows(name=target.use.name, options=target.use.options, where=where)
    names = dict.fromkeys(target.names, "")
    values = _values(tree.expressions, names, target.names, source)
    return UpdateRows(name=target.use.name, options=target.use.options, values=values, where=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A table of the statement.

    Attributes:
        names: what its columns may have before them, in lower case.
        shown: one of these names, as it was written.
        stand_ins: the placeholder of its name, if it has one.
    """

    use: TableUse
    names: frozenset[str]
    shown: str
    stand_ins: frozenset[str]


def _check_clauses(node: exp.Expr, source: StatementText) -> None:
    known, works = _CLAUSES[type(node)]
    others = sorted(name for name, value in node.args.items() if value and name not in known)
    if others:
        raise source.error(0, f"expected {works}, without {', '.join(others).strip('_').upper()}")


def _target(table: exp.Expr, plain: PlainQuery) -> _Named:
    source = plain.source
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise source.error(0, "expected a table's name")
    _check_clauses(table, source)
    found = _named(table, plain)
    if found.use.system is not None:
        raise source.error(found.use.offset, f"{found.use.title} is a system table, which can only be read")
    key = next((key for key, _ in found.use.options if key.startswith(_OF_READS)), None)
    if key is not None:
        raise source.error(
            found.use.offset, f"rows of the latest snapshot are changed: leave out the time travel, or '{key}'"
        )
    return found


def _named(table: exp.Table, plain: PlainQuery) -> _Named:
    parts = [part for part in (table.args.get("catalog"), table.args.get("db"), table.this) if part]
    path = tuple(part.name for part in parts)
    given = plain.tables.get(path[-1]) if len(path) == 1 else None
    use = given or TableUse(name=path, offset=span_of(table)[0])
    own = use.name[-1]
    names = [table.alias] if table.alias else [use.last_name, own, own.partition("$")[0]]
    return _Named(
        use=use,
        names=frozenset(name.lower() for name in names),
        shown=names[0],
        stand_ins=frozenset(path if given else ()),
    )


def _check_placed(plain: PlainQuery, target: _Named, using: tuple[int, int]) -> None:
    """Check that each hint, time travel clause, ``$`` and window is at the target, or after USING."""
    offsets = [use.offset for name, use in plain.tables.items() if name not in target.stand_ins]
    offsets += [call.offset for call in plain.windows.values()]
    start, end = using
    lost = [offset for offset in offsets if not start <= offset < end]
    if lost:
        raise plain.source.error(
            min(lost), "a hint, time travel, system table or window is given where no table is named"
        )


def _where(tree: exp.Expr, source: StatementText, target: _Named) -> str:
    where = tree.args.get("where")
    if where is None:
        raise source.error(0, "expected WHERE and a condition; TRUNCATE TABLE removes all rows")
    if where.find(exp.Select) is not None:
        raise UnsupportedFeatureError("a condition of DELETE and UPDATE has no query; MERGE INTO takes rows of one")
    text = filter_text(where.this, target.names)
    if text is None:
        column = next(each for each in where.find_all(exp.Column, exp.Dot) if filter_text(each, target.names) is None)
        raise UnsupportedFeatureError(
            f"'{column.sql()}' cannot be in a condition of DELETE and UPDATE, which compares whole columns, named by"
            f" themselves or after '{target.shown}.'; MERGE INTO takes rows of a query, which may compare anything"
        )
    return text


def _values(
    assignments: Sequence[exp.Expr], prefixes: Mapping[str, str], names: Collection[str], source: StatementText
) -> tuple[tuple[str, object], ...]:
    """Return the columns that are set, with their values.

    Args:
        prefixes: as for ``_expression``.
        names: what the columns that are set may have before them, in lower case.
    """
    values: dict[str, object] = {}
    for each in assignments:
        column = each.this
        if not isinstance(each, exp.EQ) or not isinstance(column, exp.Column):
            raise source.error(0, "expected column = value after SET")
        if len(column.parts) > 2 or (column.table and column.table.lower() not in names):
            raise source.error(0, f"SET {column.sql()}: expected a column of the table; a ROW is set as a whole")
        if column.name in values:
            raise source.error(0, f"SET: column '{column.name}' is given twice")
        values[column.name] = _value(each.expression, prefixes)
    return tuple(values.items())


def _value(node: exp.Expr, prefixes: Mapping[str, str]) -> object:
    try:
        value, is_constant = constant_of(node)
    except UnknownExpressionError as error:
        raise _unknown(error, prefixes) from None
    return value if is_constant else _expression(node, prefixes)


def _expression(node: exp.Expr, prefixes: Mapping[str, str]) -> pc.Expression:
    """Return an expression over the columns of the table, and of the source with the prefix that merges use.

    Args:
        prefixes: names of tables, in lower case, with what the columns have before them in Arrow. Where there is
            more than one prefix, each column needs the name of its table.
    """
    needs_name = len(set(prefixes.values())) > 1

    def field(column: exp.Column) -> pc.Expression:
        table = column.table.lower()
        is_known = table in prefixes or not (table or needs_name)
        if len(column.parts) > 2 or not is_known:
            raise UnknownExpressionError(column.sql())
        found: pc.Expression = pc.field(f"{prefixes.get(table, '')}{column.name}")
        return found

    try:
        return arrow_expression(node, field)
    except UnknownExpressionError as error:
        raise _unknown(error, prefixes) from None


def _unknown(error: UnknownExpressionError, prefixes: Mapping[str, str]) -> UnsupportedFeatureError:
    names: dict[str, str] = {}
    for name, prefix in prefixes.items():
        names.setdefault(prefix, name)
    which = f" with {' or '.join(f'{name}.' for name in names.values())} before each column" if len(names) > 1 else ""
    return UnsupportedFeatureError(
        f"'{error}' cannot be evaluated here; there are {WORKS}{which}. Compute other values in the query of a "
        "MERGE INTO, or use Table.update and Table.merge"
    )


# MERGE


def _merge(tree: exp.Merge, plain: PlainQuery, target: _Named) -> MergeRows:
    source = plain.source
    using = tree.args["using"]
    start, end = _using_range(source)
    _check_placed(plain, target, (start, end))
    if isinstance(using, exp.Table) and isinstance(using.this, exp.Identifier) and using.name not in plain.windows:
        named = _named(using, plain)
        names, shown = named.names, named.shown
        rows = _whole_table(using, named.use, source) or _query_at(source, "SELECT * FROM ", start, end)
    else:
        shown = using.alias_or_name
        names = frozenset({shown.lower()})
        if not using.alias:
            raise source.error(start, "give the query after USING a name")
        rows = _source_query(using, source, (start, end))
    if target.names & names:
        raise source.error(start, f"the table and the rows after USING are both called '{shown}': give one AS …")
    prefixes = {**dict.fromkeys(sorted(target.names), ""), **dict.fromkeys(sorted(names), SOURCE)}
    clauses: dict[str, list[MergeClause]] = {_MATCHED: [], _NOT_MATCHED: [], _BY_SOURCE: []}
    for when in tree.args["whens"].expressions:
        kind = _MATCHED if when.args.get("matched") else _BY_SOURCE if when.args.get("source") else _NOT_MATCHED
        clauses[kind].append(_clause(when, kind, prefixes, target, source))
    return MergeRows(
        name=target.use.name,
        options=target.use.options,
        source=rows,
        on=_keys(tree.args["on"], prefixes, (target.shown, shown)),
        matched=tuple(clauses[_MATCHED]),
        not_matched=tuple(clauses[_NOT_MATCHED]),
        not_matched_by_source=tuple(clauses[_BY_SOURCE]),
    )


def _using_range(source: StatementText) -> tuple[int, int]:
    """Return where the text between USING and ON begins and ends."""
    depth, start = 0, 0
    for token in scan(source.text):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.word == "USING" and not start:
            start = token.end
        elif depth == 0 and token.word == "ON" and start:
            return start, token.start
    return start, len(source.text)


def _whole_table(using: exp.Table, use: TableUse, source: StatementText) -> Query | None:
    """Return all rows of a table as a query that needs no engine; None if it has more than a name."""
    if using.args.get("alias") and using.args["alias"].args.get("columns"):
        return None
    _check_clauses(using, source)
    return Query(
        source=source,
        tables=(use,),
        pieces=("SELECT * FROM ", 0),
        starts=((use.offset, False), (use.offset, False)),
        simple=SimpleSelect(columns=(), where=None, limit=None),
    )


def _source_query(using: exp.Expr, source: StatementText, found: tuple[int, int]) -> Query:
    """Return the rows after USING as a query; it keeps its text, with hints, time travel and windows."""
    start, end = found
    if isinstance(using, exp.Subquery) and not using.args["alias"].args.get("columns"):
        tokens = [token for token in scan(source.text) if start <= token.start < end]
        depth = 0
        for token in tokens:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return _query_at(source, "", tokens[0].end, token.start)
    return _query_at(source, "SELECT * FROM ", start, end)


def _query_at(source: StatementText, before: str, start: int, end: int) -> Query:
    text = source.text[start:end]
    start += len(text) - len(text.lstrip())
    line, column = source.place(start)
    return parse_query(StatementText(text=before + text.strip(), line=line, column=column - len(before)))


def _keys(node: exp.Expr, prefixes: Mapping[str, str], shown: tuple[str, str]) -> Pairs:
    if isinstance(node, exp.Paren):
        return _keys(node.this, prefixes, shown)
    if isinstance(node, exp.And):
        pairs = tuple(dict.fromkeys((*_keys(node.this, prefixes, shown), *_keys(node.expression, prefixes, shown))))
        twice = next((name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place])), None)
        if twice is None:
            return pairs
        raise UnsupportedFeatureError(
            f"ON '{node.sql()}': column '{twice}' is compared with two columns of the source: compare these in the"
            " query after USING"
        )
    sides: dict[str, str] = {}
    if isinstance(node, exp.EQ):
        for side in (node.this, node.expression):
            if isinstance(side, exp.Column) and len(side.parts) == 2 and side.table.lower() in prefixes:
                sides[prefixes[side.table.lower()]] = side.name
    if len(sides) != 2:
        table, other = shown
        raise UnsupportedFeatureError(
            f"ON '{node.sql()}': rows match by equal columns, such as {table}.id = {other}.id AND …; other conditions "
            "belong after WHEN MATCHED AND"
        )
    return ((sides[""], sides[SOURCE]),)


def _clause(
    when: Any,  # noqa: ANN401 - a node of sqlglot
    kind: str,
    prefixes: Mapping[str, str],
    target: _Named,
    source: StatementText,
) -> MergeClause:
    condition, then = when.args.get("condition"), when.args["then"]
    where = None if condition is None else _expression(condition, prefixes)
    match then:
        case exp.Update() if kind != _NOT_MATCHED and then.expressions:
            if isinstance(then.expressions[0], exp.Star) and kind == _MATCHED:
                return MergeClause(where=where)
            return MergeClause(values=_values(then.expressions, prefixes, target.names, source), where=where)
        case exp.Insert() if kind == _NOT_MATCHED and isinstance(then.this, exp.Star):
            return MergeClause(where=where)
        case exp.Insert() if kind == _NOT_MATCHED and isinstance(then.this, exp.Tuple):
            columns, given = then.this.expressions, then.expression.expressions
            if len(columns) == len(given):
                pairs = [exp.EQ(this=column, expression=value) for column, value in zip(columns, given, strict=True)]
                return MergeClause(values=_values(pairs, prefixes, target.names, source), where=where)
            raise source.error(0, f"{kind}: INSERT names {len(columns)} columns, and has {len(given)} values")
        case exp.Var() if kind != _NOT_MATCHED and then.name.upper() == "DELETE":
            return MergeClause(where=where, is_delete=True)
        case _:
            raise source.error(0, f"{kind}: expected {_WORKS[kind]}")


_WORKS: Final[Mapping[str, str]] = {
    _MATCHED: "THEN UPDATE SET column = value, UPDATE SET *, or DELETE",
    _NOT_MATCHED: "THEN INSERT (column, …) VALUES (value, …), or INSERT *",
    _BY_SOURCE: "THEN UPDATE SET column = value, or DELETE",
}
