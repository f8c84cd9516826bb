"""Parse DELETE, UPDATE and MERGE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from penstock.dialect.parse.expressions import (
    SUPPORTED_EXPRESSIONS,
    RowColumns,
    UnknownExpressionError,
    arrow_expression,
    constant_of,
)
from penstock.dialect.parse.flink import READ_OTHERWISE, ParsedText, name_parts, parse_text, span_of
from penstock.dialect.parse.query import Query, SimpleSelect, filter_text, parse_query
from penstock.dialect.parse.statements import DeleteRows, MergeClause, MergeRows, UpdateRows
from penstock.dialect.parse.tables import TableUse, table_of
from penstock.errors import NotFoundError, UnsupportedFeatureError
from penstock.table.dml.merge import SOURCE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow.compute as pc

    from penstock.dialect.parse.reader import Pairs, StatementText
    from penstock.format.lexer import Token

WORDS: Final = ("DELETE", "UPDATE", "MERGE")

# Options that say which rows are read; time travel is one.
_READ_OPTION_PREFIXES: Final = ("scan.", "incremental-between", "consumer-id", "penstock.scan.")
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


def parse_row_change(source: StatementText, columns: RowColumns | None = None) -> DeleteRows | UpdateRows | MergeRows:
    """Parse a statement that begins with one of ``WORDS``.

    Args:
        columns: once they are known: only then can the expressions be evaluated, and ON of a MERGE is known.

    Raises:
        InvalidSqlError: a syntax error, or a column without the name of a table that both sides have.
        NotFoundError: such a column that no side has.
        UnsupportedFeatureError: an expression or a condition that cannot be evaluated here.
    """
    parsed = parse_text(source)
    if parsed.difference is not None:
        raise source.error(parsed.difference, READ_OTHERWISE)
    tree = parsed.tree
    if not isinstance(tree, exp.Delete | exp.Update | exp.Merge):
        raise source.error(0, "expected DELETE FROM, UPDATE or MERGE INTO")
    _check_clauses(tree, source)
    target = _target(tree.this, parsed)
    if isinstance(tree, exp.Merge):
        return _merge(tree, parsed, target, columns)
    _check_placed(parsed, target, (0, 0))
    where = _where(tree, source, target)
    if isinstance(tree, exp.Delete):
        return DeleteRows(name=target.use.name, options=target.use.options, where=where)
    sides = _Sides(prefixes=dict.fromkeys(target.qualifiers, ""), columns=columns)
    values = _values(tree.expressions, sides, target.qualifiers, source)
    return UpdateRows(name=target.use.name, options=target.use.options, values=values, where=where, text=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A table of the statement.

    Attributes:
        qualifiers: what its columns may have before them, in lower case.
        display_name: one of them, as it was written.
    """

    use: TableUse
    qualifiers: frozenset[str]
    display_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """The tables whose columns an expression may have.

    Attributes:
        prefixes: names of the tables, in lower case, with what their columns have before them in Arrow.
        unqualified: likewise, columns that are given without the name of a table.
        default: for other columns without the name of a table.
    """

    prefixes: Mapping[str, str]
    unqualified: Mapping[str, str] = field(default_factory=dict)
    default: str = ""
    columns: RowColumns | None = None

    def name_of(self, column: exp.Column) -> str:
        """Return the name of a column in Arrow. Raises ``UnknownExpressionError``."""
        table = column.table.lower()
        if len(column.parts) > 2 or (table and table not in self.prefixes):
            raise UnknownExpressionError(column.sql())
        prefix = self.prefixes[table] if table else self.unqualified.get(column.name, self.default)
        return f"{prefix}{column.name}"


def _check_clauses(node: exp.Expr, source: StatementText) -> None:
    known, works = _CLAUSES[type(node)]
    others = sorted(name for name, value in node.args.items() if value and name not in known)
    if others:
        raise source.error(0, f"expected {works}, without {', '.join(others).strip('_').upper()}")


def _target(table: exp.Expr, parsed: ParsedText) -> _Named:
    source = parsed.source
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise source.error(0, "expected a table's name")
    _check_clauses(table, source)
    found = _named(table, parsed)
    if found.use.system is not None:
        raise source.error(found.use.offset, f"{found.use.title} is a system table, which can only be read")
    key = next((key for key, _ in found.use.options if key.startswith(_READ_OPTION_PREFIXES)), None)
    if key is not None:
        raise source.error(
            found.use.offset, f"rows of the latest snapshot are changed: leave out the time travel, or '{key}'"
        )
    return found


def _named(table: exp.Table, parsed: ParsedText) -> _Named:
    start, _ = span_of(table)
    use = parsed.tables.get(start) or table_of(tuple(part.name for part in name_parts(table)), start)
    own = use.name[-1]
    names = [table.alias] if table.alias else [use.last_name, own, own.partition("$")[0]]
    return _Named(
        use=use,
        qualifiers=frozenset(name.lower() for name in names),
        display_name=names[0],
    )


def _check_placed(parsed: ParsedText, target: _Named, using: tuple[int, int]) -> None:
    """Check that each hint, time travel clause, ``$`` and window is at the target, or after USING."""
    start, end = using
    others = {*parsed.tables, *parsed.windows} - {target.use.offset}
    unused = [offset for offset in others if not start <= offset < end]
    if unused:
        raise parsed.misplaced(min(unused))


def _where(tree: exp.Expr, source: StatementText, target: _Named) -> str:
    where = tree.args.get("where")
    if where is None:
        raise source.error(0, "expected WHERE and a condition; TRUNCATE TABLE removes all rows")
    if where.find(exp.Select) is not None:
        raise UnsupportedFeatureError("a condition of DELETE and UPDATE has no query; MERGE INTO takes rows of one")
    text = filter_text(where.this, target.qualifiers)
    if text is None:
        column = next(
            each for each in where.find_all(exp.Column, exp.Dot) if filter_text(each, target.qualifiers) is None
        )
        raise UnsupportedFeatureError(
            f"'{column.sql()}' cannot be in a condition of DELETE and UPDATE, which compares whole columns, named by"
            f" themselves or after '{target.display_name}.'; MERGE INTO takes rows of a query, which may compare"
            " anything"
        )
    return text


def _values(
    assignments: Sequence[exp.Expr], sides: _Sides, qualifiers: Collection[str], source: StatementText
) -> tuple[tuple[str, object], ...]:
    """Return the columns that are set, with their values.

    Args:
        qualifiers: what the columns that are set may have before them, in lower case.
    """
    values: dict[str, object] = {}
    for each in assignments:
        column = each.this
        if not isinstance(each, exp.EQ) or not isinstance(column, exp.Column):
            raise source.error(0, "expected column = value after SET")
        if len(column.parts) > 2 or (column.table and column.table.lower() not in qualifiers):
            raise source.error(0, f"SET {column.sql()}: expected a column of the table; a ROW is set as a whole")
        if column.name in values:
            raise source.error(0, f"SET: column '{column.name}' is given twice")
        values[column.name] = _value(each.expression, sides)
    return tuple(values.items())


def _value(node: exp.Expr, sides: _Sides) -> object:
    try:
        value, is_constant = constant_of(node)
    except UnknownExpressionError as error:
        raise _unknown(error) from None
    return value if is_constant else _expression(node, sides)


def _expression(node: exp.Expr, sides: _Sides) -> pc.Expression:
    """Return an expression over the columns of the table, and of the source with the prefix that merges use."""
    try:
        return arrow_expression(node, sides.name_of, sides.columns)
    except UnknownExpressionError as error:
        raise _unknown(error) from None


def _unknown(error: UnknownExpressionError) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"'{error}' cannot be evaluated here; there are {SUPPORTED_EXPRESSIONS}. Compute other values in the query of "
        "a MERGE INTO, or use Table.update and Table.merge"
    )


# MERGE


def _merge(tree: exp.Merge, parsed: ParsedText, target: _Named, columns: RowColumns | None) -> MergeRows:
    source = parsed.source
    using = tree.args["using"]
    if tree.args["on"] is None:
        raise source.error(0, "expected a condition after ON")
    start, end = _using_range(parsed.tokens)
    _check_placed(parsed, target, (start, end))
    if (
        isinstance(using, exp.Table)
        and isinstance(using.this, exp.Identifier)
        and span_of(using)[0] not in parsed.windows
    ):
        named = _named(using, parsed)
        qualifiers, display_name = named.qualifiers, named.display_name
        rows = _whole_table(using, named.use, source) or _query_at(source, "SELECT * FROM ", start, end)
    else:
        display_name = using.alias_or_name
        qualifiers = frozenset({display_name.lower()})
        if not using.alias:
            raise source.error(start, "give the query after USING a name")
        rows = _source_query(using, parsed, (start, end))
    if target.qualifiers & qualifiers:
        raise source.error(start, f"the table and the rows after USING are both called '{display_name}': give one AS …")
    prefixes = {**dict.fromkeys(sorted(target.qualifiers), ""), **dict.fromkeys(sorted(qualifiers), SOURCE)}
    unqualified = _unqualified_columns(tree)
    display_names = (target.display_name, display_name)
    found = {name: _side_of(name, columns, display_names, source) for name in unqualified} if columns else {}
    sides = _Sides(prefixes=prefixes, unqualified=found, columns=columns)
    clauses: dict[str, list[MergeClause]] = {_MATCHED: [], _NOT_MATCHED: [], _BY_SOURCE: []}
    for when in tree.args["whens"].expressions:
        kind = _MATCHED if when.args.get("matched") else _BY_SOURCE if when.args.get("source") else _NOT_MATCHED
        # As in Spark, a clause has the columns of the sides that have a row for it.
        visible = replace(sides, default=SOURCE) if kind == _NOT_MATCHED else sides
        clauses[kind].append(_clause(when, kind, visible, target, source))
    return MergeRows(
        name=target.use.name,
        options=target.use.options,
        source=rows,
        on=() if unqualified and columns is None else _keys(tree.args["on"], sides, display_names),
        matched=tuple(clauses[_MATCHED]),
        not_matched=tuple(clauses[_NOT_MATCHED]),
        not_matched_by_source=tuple(clauses[_BY_SOURCE]),
        text=source,
    )


def _unqualified_columns(tree: exp.Merge) -> tuple[str, ...]:
    """Return the columns without the name of a table in ON and after WHEN MATCHED, which may be those of either."""
    nodes = [tree.args["on"]]
    for when in tree.args["whens"].expressions:
        if not when.args.get("matched"):
            continue
        nodes += [when.args["condition"]] if when.args.get("condition") else []
        then = when.args["then"]
        nodes += [each.expression for each in then.expressions if isinstance(each, exp.EQ)]
    columns = (column for node in nodes for column in node.find_all(exp.Column))
    return tuple(dict.fromkeys(column.name for column in columns if len(column.parts) == 1))


def _side_of(name: str, columns: RowColumns, display_names: tuple[str, str], source: StatementText) -> str:
    """Return the prefix of the side that has a column. Raises ``InvalidSqlError`` or ``NotFoundError``."""
    table, other = display_names
    names = columns.schema.names
    match name in names, f"{SOURCE}{name}" in names:
        case True, True:
            raise source.error(0, f"column '{name}' is in both tables: write {table}.{name} or {other}.{name}")
        case True, False:
            return ""
        case False, True:
            return SOURCE
        case _:
            of_table = ", ".join(sorted(each for each in names if not each.startswith(SOURCE)))
            of_source = ", ".join(sorted(each.removeprefix(SOURCE) for each in names if each.startswith(SOURCE)))
            raise NotFoundError(f"there is no column '{name}' in {table} ({of_table}) nor in {other} ({of_source})")


def _using_range(tokens: Sequence[Token]) -> tuple[int, int]:
    """Return where the text between USING and ON begins and ends."""
    depth, start = 0, 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.word == "USING" and not start:
            start = token.end
        elif depth == 0 and token.word == "ON" and start:
            return start, token.start
    return start, tokens[-1].start


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


def _source_query(using: exp.Expr, parsed: ParsedText, found: tuple[int, int]) -> Query:
    """Return the rows after USING as a query; it keeps its text, with hints, time travel and windows."""
    start, end = found
    if isinstance(using, exp.Subquery) and not using.args["alias"].args.get("columns"):
        tokens = [token for token in parsed.tokens if start <= token.start < end]
        depth = 0
        for token in tokens:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return _query_at(parsed.source, "", tokens[0].end, token.start)
    return _query_at(parsed.source, "SELECT * FROM ", start, end)


def _query_at(source: StatementText, before: str, start: int, end: int) -> Query:
    text = source.text[start:end]
    start += len(text) - len(text.lstrip())
    line, column = source.place(start)
    return parse_query(replace(source, text=before + text.strip(), line=line, column=column - len(before)))


def _keys(node: exp.Expr, sides: _Sides, display_names: tuple[str, str]) -> Pairs:
    if isinstance(node, exp.Paren):
        return _keys(node.this, sides, display_names)
    if isinstance(node, exp.And):
        pairs = tuple(
            dict.fromkeys((*_keys(node.this, sides, display_names), *_keys(node.expression, sides, display_names)))
        )
        twice = next((name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place])), None)
        if twice is None:
            return pairs
        raise UnsupportedFeatureError(
            f"ON '{node.sql()}': column '{twice}' is compared with two columns of the source: compare these in the"
            " query after USING"
        )
    names: dict[str, str] = {}
    if isinstance(node, exp.EQ):
        for side in (node.this, node.expression):
            if isinstance(side, exp.Column) and len(side.parts) == 2 and side.table.lower() in sides.prefixes:
                names[sides.prefixes[side.table.lower()]] = side.name
            elif isinstance(side, exp.Column) and side.name in sides.unqualified and len(side.parts) == 1:
                names[sides.unqualified[side.name]] = side.name
    if len(names) != 2:
        table, other = display_names
        raise UnsupportedFeatureError(
            f"ON '{node.sql()}': rows match by equal columns, such as {table}.id = {other}.id AND …; other conditions "
            "belong after WHEN MATCHED AND"
        )
    return ((names[""], names[SOURCE]),)


def _clause(
    when: Any,  # noqa: ANN401 - a node of sqlglot
    kind: str,
    sides: _Sides,
    target: _Named,
    source: StatementText,
) -> MergeClause:
    condition, then = when.args.get("condition"), when.args["then"]
    where = None if condition is None else _expression(condition, sides)
    match then:
        case exp.Update() if kind != _NOT_MATCHED and then.expressions:
            if isinstance(then.expressions[0], exp.Star) and kind == _MATCHED:
                return MergeClause(where=where)
            return MergeClause(values=_values(then.expressions, sides, target.qualifiers, source), where=where)
        case exp.Insert() if kind == _NOT_MATCHED and isinstance(then.this, exp.Star):
            return MergeClause(where=where)
        case exp.Insert() if kind == _NOT_MATCHED and isinstance(then.this, exp.Tuple):
            columns, given = then.this.expressions, then.expression.expressions
            if len(columns) == len(given):
                pairs = [exp.EQ(this=column, expression=value) for column, value in zip(columns, given, strict=True)]
                return MergeClause(values=_values(pairs, sides, target.qualifiers, source), where=where)
            raise source.error(0, f"{kind}: INSERT names {len(columns)} columns, and has {len(given)} values")
        case exp.Var() if kind != _NOT_MATCHED and then.name.upper() == "DELETE":
            return MergeClause(where=where, is_delete=True)
        case _:
            raise source.error(0, f"{kind}: expected {_EXPECTED_ACTION[kind]}")


_EXPECTED_ACTION: Final[Mapping[str, str]] = {
    _MATCHED: "THEN UPDATE SET column = value, UPDATE SET *, or DELETE",
    _NOT_MATCHED: "THEN INSERT (column, …) VALUES (value, …), or INSERT *",
    _BY_SOURCE: "THEN UPDATE SET column = value, or DELETE",
}
