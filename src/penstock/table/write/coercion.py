"""Lossless casts of Arrow arrays to a column's canonical type: which types can be cast, and the cast itself.

Numbers of all types are cast to each other by value, as ``python_values`` converts them; Arrow's own casts are used
where they are exact or fail, as they are faster.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from penstock.datafile.conform import with_children
from penstock.datafile.python_values import MAX_WHOLE_FLOAT, stored_value
from penstock.datafile.types import from_arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.datafile.types import ArrowAny

# Holds every integer of Arrow.
_WHOLE: Final = pa.decimal128(20, 0)
_WITHOUT_VIEW: Final = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
# The numbers of these extension types count something that only pandas knows, such as months since 1970.
_UNKNOWN_NUMBERS: Final = "pandas."


def is_same_type(given: ArrowAny, wanted: ArrowAny) -> bool:
    """Whether two types are equal, including names and nullability of nested fields.

    Arrow's own equality ignores the names of list elements.
    """
    if given != wanted:
        return False
    pairs = zip(inner_fields(given), inner_fields(wanted), strict=True)
    return all(
        one.name == other.name and one.nullable == other.nullable and is_same_type(one.type, other.type)
        for one, other in pairs
    )


def inner_fields(data_type: ArrowAny) -> list[ArrowAny]:
    """Return the fields of a nested type; empty for other types."""
    if arrow.is_struct(data_type):
        return list(data_type)
    if arrow.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if arrow.is_list(data_type) or arrow.is_fixed_size_list(data_type):
        return [data_type.value_field]
    return []


def cast_array(array: ArrowAny, wanted: ArrowAny, path: str) -> ArrowAny:
    """Cast an array to exactly the wanted type.

    Nested arrays are rebuilt from their cast parts, as Arrow's own casts leave some names and nullability of nested
    fields unchanged. This does not check for nulls in nested NOT NULL fields.

    Args:
        array: of a type that ``find_incompatibility`` accepts.
        wanted: canonical Arrow type.
        path: as for ``find_incompatibility``.
    """
    if is_same_type(array.type, wanted):
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return cast_array(array.storage, wanted, path)
    if arrow.is_dictionary(array.type):
        # Arrow does not decode dictionaries of views, as polars has them.
        kind = _WITHOUT_VIEW.get(array.type.value_type)
        if kind is not None:
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(kind))
        return cast_array(array.dictionary_decode(), wanted, path)
    if arrow.is_null(array.type):
        return array.cast(wanted)
    if inner_fields(wanted):
        return _cast_nested(array, wanted, path)
    return _cast_number(array, wanted, path) if _is_number(wanted) else array.cast(wanted)


def _cast_nested(array: ArrowAny, wanted: ArrowAny, path: str) -> ArrowAny:
    mask = array.is_null() if array.null_count else None
    if arrow.is_struct(wanted):
        # Flattened, so that children are null where their parent is null: the values there are arbitrary.
        found = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
        children = [cast_array(found[field.name], field.type, f"{path}.{field.name}") for field in wanted]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if arrow.is_map(wanted):
        lists = as_lists(array)
        entries: ArrowAny = pc.list_flatten(lists)
        keys = cast_array(entries.field(0), wanted.key_type, f"{path}.key")
        items = cast_array(entries.field(1), wanted.item_type, f"{path}.value")
        # The stubs know only maps without a mask.
        make_map: ArrowAny = pa.MapArray.from_arrays
        return make_map(_list_offsets(lists), keys, items, type=wanted, mask=mask)
    if arrow.is_list(wanted):
        values = cast_array(pc.list_flatten(array), wanted.value_type, f"{path}.element")
        make_list: ArrowAny = pa.ListArray.from_arrays
        return make_list(_list_offsets(array), values, type=wanted, mask=mask)
    size = wanted.list_size
    values = cast_array(
        array.values.slice(array.offset * size, len(array) * size), wanted.value_type, f"{path}.element"
    )
    return pa.FixedSizeListArray.from_arrays(values, type=wanted, mask=mask)


def _cast_number(array: ArrowAny, wanted: ArrowAny, path: str) -> ArrowAny:
    given = array.type
    if arrow.is_float16(given):
        array = array.cast(pa.float32())
    elif arrow.is_decimal32(given) or arrow.is_decimal64(given):
        array = array.cast(pa.decimal128(given.precision, given.scale))
    # What fails is converted one by one: fewer values fail then, and the message names the value.
    with suppress(pa.ArrowInvalid):
        quickly = _cast_quickly(array, wanted)
        if quickly is not None:
            return quickly
    distinct: ArrowAny = pc.unique(array)
    data_type = from_arrow_type(wanted, path)
    values = [stored_value(value, data_type, path) for value in distinct.to_pylist()]
    return pa.array(values, wanted).take(pc.index_in(array, distinct))


def _cast_quickly(array: ArrowAny, wanted: ArrowAny) -> ArrowAny | None:
    """Cast by Arrow alone; None if it does not show that nothing is lost. Raises ``pyarrow.ArrowInvalid``."""
    given = array.type
    if arrow.is_decimal(given):
        return _cast_decimals(array, wanted)
    if arrow.is_integer(given):
        return (array.cast(_WHOLE) if arrow.is_decimal(wanted) else array).cast(wanted)
    if arrow.is_decimal(wanted):
        return None
    cast = array.cast(wanted)
    if arrow.is_integer(wanted):
        is_unique: ArrowAny = pc.less(pc.abs(array), pa.scalar(MAX_WHOLE_FLOAT, given))
        return cast if _all(is_unique) else None
    if given.bit_width <= wanted.bit_width:
        return cast
    # Equal, or equal as texts: 0.1 is a value of FLOAT.
    texts: ArrowAny = pc.equal(cast.cast(pa.string()).cast(given), array)
    same: ArrowAny = pc.or_(pc.equal(cast.cast(given), array), texts)
    return cast if _all(pc.or_(same, pc.is_nan(array))) else None


def _cast_decimals(array: ArrowAny, wanted: ArrowAny) -> ArrowAny | None:
    if not arrow.is_floating(wanted):
        return array.cast(wanted)
    # Not by Arrow's cast, which is not correctly rounded.
    numbers = array.cast(pa.string()).cast(wanted)
    printed: ArrowAny = pc.equal(numbers.cast(pa.string()).cast(array.type), array)
    return numbers if _all(printed) else None


def _all(answers: ArrowAny) -> bool:
    return bool(pc.all(answers).as_py() is not False)


def as_lists(maps: ArrowAny) -> ArrowAny:
    """Return a map array as one of lists of entries, each a struct of a key and a value.

    Arrow's own cast refuses nulls in NOT NULL fields of a value, even if the value itself is null.
    """
    return with_children(maps, pa.list_(maps.values.type), [maps.values])


def _list_offsets(lists: ArrowAny) -> ArrowAny:
    """Return offsets into ``list_flatten(lists)``, which leaves out the values of null lists."""
    lengths = pc.list_value_length(lists).fill_null(0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum_checked(lengths)])


def find_incompatibility(given: ArrowAny, wanted: ArrowAny, path: str) -> str | None:
    """Return why a column of type ``given`` cannot be written as ``wanted``; None when it can.

    Other encodings of the same values are accepted, and so are all types of numbers for each other, and all units of
    time: only the values show whether the cast loses something, so the cast itself checks that.

    Args:
        given: incoming Arrow type; dictionaries and extension types count as the type of their values.
        wanted: canonical Arrow type.
        path: column name, followed by the names of nested fields, separated by dots.
    """
    given = _plain_type(given)
    if arrow.is_null(given):
        return None
    if arrow.is_struct(given) and arrow.is_struct(wanted):
        given_names, wanted_names = ([field.name for field in struct] for struct in (given, wanted))
        if sorted(given_names) != sorted(wanted_names):
            return f"'{path}' has the fields {', '.join(given_names)}, but the table {', '.join(wanted_names)}"
    inner = _inner_types(given, wanted)
    if inner is None:
        return _describe(given, wanted, path)
    misfits = (find_incompatibility(pair[0], pair[1], f"{path}.{name}") for name, *pair in inner)
    return next((misfit for misfit in misfits if misfit is not None), None)


def _inner_types(given: ArrowAny, wanted: ArrowAny) -> list[tuple[str, ArrowAny, ArrowAny]] | None:
    """Return the names and type pairs of nested fields that still have to be compared; None if the types cannot fit."""
    if arrow.is_struct(wanted):
        if not arrow.is_struct(given):
            return None
        return [(field.name, given.field(field.name).type, field.type) for field in wanted]
    if arrow.is_map(wanted):
        if not arrow.is_map(given):
            return None
        return [("key", given.key_type, wanted.key_type), ("value", given.item_type, wanted.item_type)]
    if arrow.is_list(wanted) or arrow.is_fixed_size_list(wanted):
        return [("element", given.value_type, wanted.value_type)] if _is_list_for(given, wanted) else None
    return [] if _atom_fits(given, wanted) else None


def _plain_type(given: ArrowAny) -> ArrowAny:
    while True:
        if isinstance(given, pa.BaseExtensionType) and not given.extension_name.startswith(_UNKNOWN_NUMBERS):
            given = given.storage_type
        elif arrow.is_dictionary(given):
            given = given.value_type
        else:
            return given


def _is_list_for(given: ArrowAny, wanted: ArrowAny) -> bool:
    if arrow.is_fixed_size_list(wanted):
        return arrow.is_fixed_size_list(given) and given.list_size == wanted.list_size
    return arrow.is_list(given) or arrow.is_large_list(given) or arrow.is_fixed_size_list(given)


def _atom_fits(given: ArrowAny, wanted: ArrowAny) -> bool:
    if given == wanted:
        return True
    return any(is_kind(wanted) and fits(given, wanted) for is_kind, fits in _RULES)


def _is_number(given: ArrowAny) -> bool:
    return bool(arrow.is_integer(given) or arrow.is_floating(given) or arrow.is_decimal(given))


def _number_fits(given: ArrowAny, _: ArrowAny) -> bool:
    return _is_number(given)


def _string_fits(given: ArrowAny, _: ArrowAny) -> bool:
    return arrow.is_string(given) or arrow.is_large_string(given) or arrow.is_string_view(given)


def _binary_fits(given: ArrowAny, _: ArrowAny) -> bool:
    kinds = (arrow.is_binary, arrow.is_large_binary, arrow.is_binary_view, arrow.is_fixed_size_binary)
    return any(is_kind(given) for is_kind in kinds)


def _timestamp_fits(given: ArrowAny, wanted: ArrowAny) -> bool:
    # A wall-clock time is not an instant: the caller must convert it with a zone of its choice.
    return arrow.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)


def _date_fits(given: ArrowAny, _: ArrowAny) -> bool:
    return arrow.is_date(given)


def _time_fits(given: ArrowAny, _: ArrowAny) -> bool:
    return arrow.is_time(given)


_Rule = tuple["Callable[[ArrowAny], bool]", "Callable[[ArrowAny, ArrowAny], bool]"]
_RULES: Final[tuple[_Rule, ...]] = (
    (_is_number, _number_fits),
    (arrow.is_string, _string_fits),
    (arrow.is_binary, _binary_fits),
    (arrow.is_timestamp, _timestamp_fits),
    (arrow.is_date, _date_fits),
    (arrow.is_time, _time_fits),
)


_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _describe(given: ArrowAny, wanted: ArrowAny, path: str) -> str:
    text = f"column '{path}' is given as {given}"
    if arrow.is_timestamp(given) and arrow.is_date(wanted):
        return f"{text}, but the table expects DATE (.dt.date in pandas, .cast('date32') in Arrow, to_date in Spark)"
    if not (arrow.is_timestamp(given) and arrow.is_timestamp(wanted)):
        return f"{text}, but the table expects {wanted}"
    digits = _DIGITS[wanted.unit]
    if given.tz is not None:
        return (
            f"{text} (with a time zone, Spark's TIMESTAMP), but the table expects {wanted} (Spark's TIMESTAMP_NTZ): in "
            f"Spark .cast('timestamp_ntz') takes the wall clock of the session's zone; or declare the column "
            f"TIMESTAMP_LTZ({digits})"
        )
    return (
        f"{text} (without a time zone, Spark's TIMESTAMP_NTZ), but the table expects {wanted} (Spark's TIMESTAMP): in "
        f"Spark .cast('timestamp') takes it for the wall clock of the session's zone; or declare the column "
        f"TIMESTAMP({digits})"
    )
