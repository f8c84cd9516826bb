"""Scope of an overwrite: which partitions it replaces."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import InvalidFilterError, InvalidOptionError
from penstock.format.row.row import encode_row, row_decoder
from penstock.format.text.partitions import PathText
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.options import LayoutOptions
from penstock.predicate.bind import bind, columns_of
from penstock.predicate.evaluate import evaluate
from penstock.predicate.literals import FLOAT_ROOTS, parse_timestamp_text
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And, BoundPredicate, Compare, In, IsNull, Operator, Or, Predicate, SignedZero

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.format.types.data_types import DataField
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTable:
    """Every partition, or an unpartitioned table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPartitions:
    """Exactly the partitions that get new files (dynamic overwrite); without new files nothing is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingPartitions:
    """Partitions whose values pass a filter on partition columns."""

    predicate: BoundPredicate


# Values may hold commas and slashes; these end a value only if another ``column=`` follows.
# At most seven digits: eight digits are a date without its dashes.
_EPOCH: Final = dt.date(1970, 1, 1)
_EPOCH_DAY: Final = re.compile(r"-?[0-9]{1,7}")
_MIDNIGHT: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a time of any day
_DAY_MILLIS: Final = 86_400_000

OverwriteScope: TypeAlias = WholeTable | WrittenPartitions | MatchingPartitions


def scope_of_specs(ref: TableRef, specs: Sequence[Mapping[str, object]]) -> OverwriteScope:
    """Return the scope of all partitions that match at least one spec.

    Args:
        specs: partition column to value; a partial spec covers all partitions that match it, an empty spec the whole
            table. None, and a ``PathText`` that is ``partition.default-name``, match only NULL. For columns that
            are not of a text type, a text is parsed.
    """
    if any(not spec for spec in specs):
        return WholeTable()
    try:
        return MatchingPartitions(predicate=bind(filter_of_specs(ref, specs), ref.schema.partition_fields, ref.name))
    except InvalidFilterError as error:
        raise InvalidOptionError(f"in the partition that is named: {error}") from error


def filter_of_specs(ref: TableRef, specs: Sequence[Mapping[str, object]]) -> Predicate:
    """Return a filter that selects the partitions that match at least one spec.

    Args:
        specs: as for ``scope_of_specs``, none of them empty.
    """
    fields = {field.name: field for field in ref.schema.partition_fields}
    default_name = ref.parsed(LayoutOptions).default_partition_name
    branches = []
    for spec in specs:
        for name in spec:
            if name not in fields:
                keys = ", ".join(fields) or "none: it is not partitioned"
                raise InvalidOptionError(
                    f"table {ref.name}: '{name}' is not a partition column; partition columns are {keys}"
                )
        leaves = [_leaf(fields[name], value, default_name) for name, value in spec.items()]
        branches.append(And(operands=tuple(leaves)))
    return Or(operands=tuple(branches))


def scope_of_filter(ref: TableRef, text: str, option: str) -> OverwriteScope:
    """Return the scope of all partitions for which a condition holds.

    Args:
        text: the condition, such as ``dt >= '2026-01-01' AND region = 'eu'``.
        option: the option that the condition was given in, for messages.

    Raises:
        InvalidOptionError: the text is not a condition; or it names a column that is not a partition column, so that
                it may be true for only some rows of a partition.
    """
    fields = ref.schema.partition_fields
    try:
        condition = parse_filter(text)
        names = {field.name for field in fields}
        for column in columns_of(condition):
            if column not in names:
                raise InvalidOptionError(
                    f"table {ref.name}: option '{option}' = '{text}': '{column}' is not a partition column, and only "
                    f"whole partitions are replaced; partition columns are {', '.join(sorted(names)) or 'none'}"
                )
        return MatchingPartitions(predicate=bind(condition, fields, ref.name))
    except InvalidFilterError as error:
        raise InvalidOptionError(f"table {ref.name}: option '{option}' = '{text}': {error}") from error


def partition_of_spec(ref: TableRef, spec: Mapping[str, object]) -> bytes:
    """Return the serialized partition of a spec that names every partition column.

    Args:
        spec: as for ``scope_of_specs``.
    """
    fields = ref.schema.partition_fields
    if set(spec) != {field.name for field in fields}:
        raise InvalidOptionError(
            f"table {ref.name}: {dict(spec)} names no partition: give each of "
            + (", ".join(field.name for field in fields) or "none: the table is not partitioned")
        )
    default_name = ref.parsed(LayoutOptions).default_partition_name
    values: list[object] = []
    for field in fields:
        leaf = _leaf(field, spec[field.name], default_name)
        try:
            bound = bind(leaf, fields, ref.name).root
        except InvalidFilterError as error:
            raise InvalidOptionError(f"in a partition: {error}") from error
        if isinstance(bound, In):  # a CHAR, of which one partition has one spelling
            bound = leaf
        if not isinstance(bound, Compare | IsNull):
            raise InvalidOptionError(f"table {ref.name}: no partition has {spec[field.name]!r} for '{field.name}'")
        values.append(bound.value if isinstance(bound, Compare) else None)
    return encode_row(values, [field.type for field in fields])


def partition_test(scope: OverwriteScope, *, touched: frozenset[bytes], ref: TableRef) -> Callable[[bytes], bool]:
    """Return a function that says whether a serialized partition is in the scope.

    Args:
        touched: serialized partitions of the new files.
    """
    match scope:
        case WholeTable():
            return lambda _: True
        case WrittenPartitions():
            return touched.__contains__
        case MatchingPartitions(predicate=predicate):
            decode = row_decoder(tuple(field.type for field in ref.schema.partition_fields))
            names = ref.schema.partition_keys
            return lambda partition: evaluate(predicate.root, dict(zip(names, decode(partition), strict=True))) is True


def _leaf(field: DataField, value: object, default_name: str) -> Predicate:
    if value is None or (isinstance(value, PathText) and value == default_name):
        return IsNull(column=field.name)
    literal = _parse_text(field, value) if isinstance(value, str) else value
    if literal == 0 and isinstance(field.type, AtomicType) and field.type.root in FLOAT_ROOTS:
        literal = literal if isinstance(literal, bool) else SignedZero(literal)
    return Compare(column=field.name, operator=Operator.EQ, value=literal)


def _parse_text(field: DataField, text: str) -> object:  # noqa: PLR0911 - a case a type
    """Parse a number, BOOLEAN, epoch day, instant, or milliseconds of a day; of other types, return the text."""
    root = field.type.root if isinstance(field.type, AtomicType) else None
    try:
        match root:
            case TypeRoot.TINYINT | TypeRoot.SMALLINT | TypeRoot.INT | TypeRoot.BIGINT:
                return int(text)
            case TypeRoot.FLOAT | TypeRoot.DOUBLE | TypeRoot.DECIMAL:
                return Decimal(text)
            case TypeRoot.BOOLEAN:
                return {"true": True, "false": False}[text.strip().lower()]
            case TypeRoot.DATE if _EPOCH_DAY.fullmatch(text):
                # The names of partition directories have dates as epoch days.
                return _EPOCH + dt.timedelta(days=int(text))
            case TypeRoot.TIME if text.isdecimal() and int(text) < _DAY_MILLIS:
                # Likewise times as milliseconds, of which 1000 would else be ten o'clock.
                return (_MIDNIGHT + dt.timedelta(milliseconds=int(text))).time()
            case TypeRoot.TIMESTAMP_LTZ:
                # The names of partitions have instants in UTC, without a zone.
                return replace(parse_timestamp_text(text), has_zone=True)
            case _:
                return text
    except (ValueError, InvalidOperation, KeyError, OverflowError) as error:
        raise InvalidOptionError(f"partition column '{field.name}' = '{text}': expected a {root}") from error
