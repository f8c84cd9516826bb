"""Parse DELETE, UPDATE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.dialect.parse.expressions import WORKS, UnknownExpressionError, arrow_expression, constant_of
from penstock.dialect.parse.query import as_filter, parse_query
from penstock.dialect.parse.query_errors import check_text, parse_error
from penstock.dialect.parse.script import StatementText
from penstock.dialect.parse.statements import DeleteRows, MergeClause, MergeRows, UpdateRows
from penstock.dialect.parse.tables import parser_text
from penstock.errors import UnsupportedFeatureError
from penstock.table.dml.merge import SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.dialect.parse.names import Path

WORDS: Final = ("DELETE", "UPDATE", "MERGE")


def parse_row_change(source: StatementText) -> DeleteRows | UpdateRows | MergeRows:
    """Parse a statement that begins with one of ``WORDS``.

    Raises:
        InvalidSqlError: a syntax error.
        UnsupportedFeatureError: an expression or a condition that cannot be evaluated here.
    """
    check_text(source)
    try:
        tree = sqlglot.parse_one(parser_text(source.text), read="spark")
    except SqlglotError as error:
        raise parse_error(source, error) from error
    match tree:
        case exp.Delete():
            return DeleteRows(name=_path(tree.this, source), where=_where(tree, source))
        case exp.Update():
            values = _values(tree.expressions, {}, source)
            return UpdateRows(name=_path(tree.this, source), values=values, where=_where(tree, source))
        case exp.Merge():
            return _merge(tree, source)
        case _:
            raise source.error(0, "expected DELETE FROM, UPDATE or MERGE INTO")


def _path(table: exp.Expr, source: StatementText) -> Path:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise source.error(0, "expected a table's name")
    return tuple(part.name for part in (table.args.get("catalog"), table.args.get("db"), table.this) if part)


def _where(tree: exp.Expr, source: StatementText) -> str:
    where = tree.args.get("where")
    if where is None:
        raise source.error(0, "expected WHERE and a condition; TRUNCATE TABLE removes all rows")
    if where.find(exp.Select) is not None:
        raise UnsupportedFeatureError("a condition of DELETE and UPDATE has no query; MERGE INTO takes rows of one")
    text: str = where.this.transform(as_filter).sql()
    return text


def _values(
    assignments: Sequence[exp.Expr], aliases: dict[str, str], source: StatementText
) -> tuple[tuple[str, object], ...]:
    values = []
    for each in assignments:
        if not isinstance(each, exp.EQ) or not isinstance(each.this, exp.Column):
            raise source.error(0, "expected column = value after SET")
        values.append((each.this.name, _value(each.expression, aliases)))
    return tuple(values)


def _value(node: exp.Expr, aliases: dict[str, str]) -> object:
    value, is_constant = constant_of(node)
    return value if is_constant else _expression(node, aliases)


def _expression(node: exp.Expr, aliases: dict[str, str]) -> pc.Expression:
    """Return an expression over the columns of the table, and of the source with the prefix that merges use."""

    def field(column: exp.Column) -> pc.Expression:
        if len(column.parts) > 2 or (aliases and column.table not in aliases):
            raise UnknownExpressionError(column.sql())
        found: pc.Expression = pc.field(f"{aliases.get(column.table, '')}{column.name}")
        return found

    try:
        return arrow_expression(node, field)
    except UnknownExpressionError as error:
        which = f" with {' or '.join(f'{alias}.' for alias in aliases)} before each column" if aliases else ""
        raise UnsupportedFeatureError(
            f"'{error}' cannot be evaluated here; there are {WORKS}{which}. Compute other values in the query of a "
            "MERGE INTO, or use Table.update and Table.merge"
        ) from None


def _merge(tree: exp.Merge, source: StatementText) -> MergeRows:
    target, using = tree.this, tree.args["using"]
    if not using.alias_or_name:
        raise source.error(0, "give the query after USING a name")
    aliases = {target.alias_or_name: "", using.alias_or_name: SOURCE}
    if isinstance(using, exp.Subquery):
        query = using.this.sql(dialect="spark")
    else:
        parts = {name: using.args.get(name) for name in ("this", "db", "catalog")}
        query = exp.select("*").from_(exp.Table(**parts)).sql(dialect="spark")
    whens = tree.args["whens"].expressions
    return MergeRows(
        name=_path(target, source),
        source=parse_query(StatementText(text=query)),
        on=_keys(tree.args["on"], aliases, source),
        matched=_clauses([each for each in whens if each.args.get("matched")], aliases, source),
        not_matched=_clauses(
            [each for each in whens if not each.args.get("matched") and not each.args.get("source")], aliases, source
        ),
        not_matched_by_source=_clauses(
            [each for each in whens if not each.args.get("matched") and each.args.get("source")], aliases, source
        ),
    )


def _keys(node: exp.Expr, aliases: dict[str, str], source: StatementText) -> tuple[tuple[str, str], ...]:
    if isinstance(node, exp.Paren):
        return _keys(node.this, aliases, source)
    if isinstance(node, exp.And):
        return (*_keys(node.this, aliases, source), *_keys(node.expression, aliases, source))
    sides: dict[str, str] = {}
    if isinstance(node, exp.EQ):
        for side in (node.this, node.expression):
            if isinstance(side, exp.Column) and side.table in aliases:
                sides[aliases[side.table]] = side.name
    if len(sides) != 2:
        table, other = aliases
        raise UnsupportedFeatureError(
            f"ON '{node.sql()}': rows match by equal columns, such as {table}.id = {other}.id AND …; other conditions "
            "belong after WHEN MATCHED AND"
        )
    return ((sides[""], sides[SOURCE]),)


def _clauses(whens: Sequence[Any], aliases: dict[str, str], source: StatementText) -> tuple[MergeClause, ...]:
    clauses = []
    for when in whens:
        condition = when.args.get("condition")
        where = None if condition is None else _expression(condition, aliases)
        then = when.args["then"]
        match then:
            case exp.Update() if not isinstance(then.expressions[0], exp.Star):
                clauses.append(MergeClause(values=_values(then.expressions, aliases, source), where=where))
            case exp.Insert() if isinstance(then.this, exp.Tuple):
                pairs = zip(then.this.expressions, then.expression.expressions, strict=True)
                values = tuple((column.name, _value(value, aliases)) for column, value in pairs)
                clauses.append(MergeClause(values=values, where=where))
            case exp.Update() | exp.Insert():
                clauses.append(MergeClause(where=where))
            case _:
                clauses.append(MergeClause(where=where, is_delete=True))
    return tuple(clauses)
