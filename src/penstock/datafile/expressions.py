"""Arrow expressions as filters: ``pyarrow.compute.field("price") > 10``.

A converted filter is true, false or unknown for the same rows as the expression. What a filter cannot express is
refused.

Arrow has no API for the parts of an expression, and Substrait can express only some of them. But expressions can be
pickled, and their serialized form is complete: a file of Arrow's IPC format whose metadata lists the nodes in order,
and whose columns are the literals and the options of calls.

Source:
    Arrow ``cpp/src/arrow/compute/expression.cc``, ``Serialize``.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from penstock.errors import InvalidFilterError
from penstock.predicate.parse import MAX_DEPTH, split_pattern
from penstock.predicate.tree import (
    MIRRORED,
    And,
    ArrowNumber,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    StartsWith,
    TimestampLiteral,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.compute as pc

    from penstock.predicate.tree import Predicate

_COMPARISONS: Final = {
    "equal": Operator.EQ,
    "not_equal": Operator.NE,
    "less": Operator.LT,
    "less_equal": Operator.LE,
    "greater": Operator.GT,
    "greater_equal": Operator.GE,
}
_CONNECTIVES: Final = frozenset({"and_kleene", "or_kleene"})
_NANOS_PER: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# SetLookupOptions.NullMatchingBehavior.
_MATCH, _SKIP = 0, 1


@dataclass(slots=True)
class _Call:
    name: str
    arguments: list[_Node]
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any


_Node: TypeAlias = _Call | _Field | _Literal


def to_filter(expression: pc.Expression, table: str) -> Predicate:
    """Return the filter that gives the same answers as an expression of ``pyarrow.compute``.

    Conditions compare columns with values. Numbers of different types are compared exactly, also where Arrow rounds
    DECIMAL to DOUBLE or fails.

    Args:
        table: name for messages.

    Raises:
        InvalidFilterError: a part of the expression is something else; the message names it.
    """
    try:
        return _condition(_read(expression), 0)
    except _PartError as error:
        raise InvalidFilterError(f"table {table}: filter {_excerpt(str(expression))}: {error}") from error


class _PartError(Exception):
    """A part that a filter cannot express."""


def _condition(node: _Node, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise _PartError(f"more than {MAX_DEPTH} levels of nesting; flatten the condition")
    match node:
        case _Field(name=name):
            return Compare(column=name, operator=Operator.EQ, value=True)
        case _Literal(value=bool() | None as value):
            return Constant(value=value)
        case _Call(name="and_kleene" | "or_kleene", arguments=arguments):
            operands = tuple(_condition(each, depth + 1) for each in arguments)
            return And(operands=operands) if node.name == "and_kleene" else Or(operands=operands)
        case _Call(name="invert", arguments=[operand]):
            return Not(operand=_condition(operand, depth + 1))
        case _Call(name=name) if name in _COMPARISONS:
            return _comparison(node)
        case _Call(name=name, arguments=[_Field(name=column)]) if name in _TESTS:
            return _TESTS[name](node, column)
    raise _unknown_part(node)


def _comparison(node: _Call) -> Compare:
    operator = _COMPARISONS[node.name]
    match node.arguments:
        case [_Field(name=column), _Literal(value=value)]:
            return Compare(column=column, operator=operator, value=value)
        case [_Literal(value=value), _Field(name=column)]:
            return Compare(column=column, operator=MIRRORED[operator], value=value)
        case [_Field(), _Field()]:
            raise _PartError(f"{_text(node)}: columns compare with values only, not with columns")
        case arguments:
            raise _unknown_part(next((each for each in arguments if isinstance(each, _Call)), node))


def _is_null(node: _Call, column: str) -> Predicate:
    if node.options.get("nan_is_null"):
        return Or(operands=(IsNull(column=column), _is_nan(node, column)))
    return IsNull(column=column)


def _is_valid(_node: _Call, column: str) -> Predicate:
    return IsNull(column=column, negated=True)


def _is_nan(_node: _Call, column: str) -> Predicate:
    return Compare(column=column, operator=Operator.EQ, value=float("nan"))


def _is_in(node: _Call, column: str) -> Predicate:
    """Return the test whether a set has a value, which is never unknown."""
    values = node.options["value_set"]
    behavior = node.options["null_matching_behavior"]
    if behavior not in {_MATCH, _SKIP}:
        raise _PartError(f"{_text(node)}: NULL is matched in a way that filters do not have")
    found = In(column=column, values=tuple(value for value in values if value is not None))
    if behavior == _MATCH and None in values:
        return Or(operands=(IsNull(column=column), found))
    return And(operands=(IsNull(column=column, negated=True), found))


def _starts_with(node: _Call, column: str) -> Predicate:
    return StartsWith(column=column, prefix=_pattern(node))


def _match_like(node: _Call, column: str) -> Predicate:
    pattern = _pattern(node)
    prefix, wildcards = split_pattern(pattern)
    if wildcards not in {"", "%"} or "\\" in pattern:
        raise _PartError(f"{_text(node)}: only 'abc%' (a prefix) is supported; filter the rest after reading")
    if wildcards:
        return StartsWith(column=column, prefix=prefix)
    return Compare(column=column, operator=Operator.EQ, value=prefix)


def _pattern(node: _Call) -> str:
    if node.options["ignore_case"]:
        raise _PartError(f"{_text(node)}: ignore_case is not supported; filter after reading")
    return str(node.options["pattern"])


_TESTS: Final = {
    "is_null": _is_null,
    "is_valid": _is_valid,
    "is_nan": _is_nan,
    "is_in": _is_in,
    "starts_with": _starts_with,
    "match_like": _match_like,
}


def _unknown_part(node: _Node) -> _PartError:
    if isinstance(node, _Call) and node.name in {"and", "or"}:
        sign = "&" if node.name == "and" else "|"
        return _PartError(f"{_text(node)}: '{node.name}' has answers of its own for NULL; join conditions with {sign}")
    if isinstance(node, _Call) and node.name == "cast":
        return _PartError(f"{_text(node)} is not a column; compare the column itself: values need not have its type")
    return _PartError(
        f"{_text(node)} is not a condition on a column; conditions compare columns with values (==, !=, <, <=, >, >=), "
        "and are isin, is_null, is_valid, is_nan, starts_with and match_like('abc%'), joined with &, | and ~; evaluate "
        "others on the rows: table.to_arrow().filter(expression)"
    )


def _read(expression: pc.Expression) -> _Node:
    """Return the root of an expression."""
    try:
        serialized: Any = expression.__reduce__()[1][0]
    except pa.ArrowNotImplementedError as error:
        raise _PartError(f"it cannot be taken apart: {error}; name the columns") from error
    file = pa.ipc.open_file(serialized)
    columns = file.get_batch(0).columns
    steps = iter(_metadata(file.schema))
    try:
        root = _next_node(steps, columns)
    except (StopIteration, KeyError, IndexError, ValueError) as error:
        raise _PartError(f"it cannot be taken apart with pyarrow {pa.__version__}: {error}") from error
    return root


def _next_node(steps: Iterator[tuple[str, str]], columns: list[Any]) -> _Node:
    """Return the next node of the list, without recursion: chains of ``|`` are as deep as they are long."""
    calls: list[_Call] = []
    while True:
        done: _Node
        match next(steps):
            case ("call", name):
                calls.append(_Call(name, [], {}))
                continue
            case ("options", place):
                calls[-1].options = _options(columns[int(place)][0])
                continue
            case ("end", name) if calls and calls[-1].name == name:
                done = _flat(calls.pop())
            case ("field_ref", name):
                done = _Field(name)
            case ("literal", place):
                done = _Literal(_value(columns[int(place)][0]))
            case ("nested_field_ref", count):
                path = [next(steps)[1] for _ in range(int(count))]
                raise _PartError(f"{'.'.join(path)} is in a nested column; filter on it after reading")
            case (kind, text):
                raise _PartError(f"it cannot be taken apart with pyarrow {pa.__version__}: unknown node {kind} {text}")
        if not calls:
            return done
        calls[-1].arguments.append(done)


def _flat(call: _Call) -> _Call:
    """Return a call of a connective with the operands of its first operand, if that is a call of the same one."""
    if call.name in _CONNECTIVES and isinstance(first := call.arguments[0], _Call) and first.name == call.name:
        first.arguments.extend(call.arguments[1:])
        return first
    return call


def _options(scalar: Any) -> dict[str, Any]:  # noqa: ANN401 - pyarrow's scalars are generic
    options = {name: value.as_py() for name, value in scalar.items() if name != "value_set"}
    if "value_set" in scalar:
        options["value_set"] = [_value(each) for each in scalar["value_set"].values]
    return options


def _value(scalar: Any) -> object:  # noqa: ANN401 - a case a type
    """Return a literal as a value of a filter."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType):
        return _value(scalar.value)
    if pa.types.is_timestamp(kind):
        return TimestampLiteral(nanos=scalar.value * _NANOS_PER[kind.unit], has_zone=kind.tz is not None)
    try:
        value: object = scalar.as_py()
    except (ValueError, OverflowError) as error:
        raise _PartError(f"the value {scalar}: {error}") from error
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return ArrowNumber(value=value)
    return value


class _CSchema(ctypes.Structure):
    """The beginning of ``struct ArrowSchema`` of Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the metadata of a schema in order; ``schema.metadata`` has only one value of each key."""
    capsule = schema.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = _CSchema.from_address(get_pointer(capsule, b"arrow_schema")).metadata
    position = start

    def take_int() -> int:
        nonlocal position
        number = ctypes.c_int32.from_address(position).value
        position += 4
        return number

    def take_text() -> str:
        nonlocal position
        length = take_int()
        text = ctypes.string_at(position, length)
        position += length
        return text.decode()

    for _ in range(take_int()):
        yield take_text(), take_text()


def _text(node: _Node) -> str:
    match node:
        case _Call(name=name, arguments=arguments):
            return _excerpt(f"{name}({', '.join(map(_text, arguments))})")
        case _Field(name=name):
            return name
        case _Literal(value=value):
            return repr(value)


def _excerpt(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"
