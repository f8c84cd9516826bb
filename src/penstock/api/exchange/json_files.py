"""Rows from JSON Lines, a block at a time, and the values of JSON as those of columns."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyarrow import types as arrow

from penstock.datafile.python_values import stored_value
from penstock.datafile.types import from_arrow_type
from penstock.errors import SchemaMismatchError
from penstock.predicate.literals import parse_time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny

_BLOCK_BYTES: Final = 8 << 20


def read_json(stream: ArrowAny, wanted: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream of JSON lines, with the wanted types.

    Args:
        stream: open for reading; one object per line, missing keys are null.
        name: of the input, for messages.
    """
    first_line = 1
    for block in _blocks(stream):
        if block.strip():
            try:
                batch = _typed(block, wanted)
            except ValueError as error:
                raise SchemaMismatchError(_explain(block, wanted, first_line, name)) from error
            yield batch
        first_line += block.count(b"\n")


def infer_json_schema(stream: ArrowAny, name: str) -> pa.Schema:
    """Infer column types from the first block. Raises ``SchemaMismatchError``."""
    block = next(_blocks(stream), b"")
    try:
        check_nesting(block.decode())
        return read_lines(block, None).schema
    except ValueError as error:
        raise SchemaMismatchError(f"{name}: {error}; expected one JSON object a line") from error


def _blocks(stream: ArrowAny) -> Iterator[bytes]:
    """Yield pieces of whole lines."""
    rest = b""
    while data := stream.read(_BLOCK_BYTES):
        whole, end, begun = bytes(data).rpartition(b"\n")
        if end:
            yield rest + whole + end
            rest = begun
        else:
            rest += begun
    if rest:
        yield rest


def _typed(block: bytes, wanted: pa.Schema) -> pa.RecordBatch:
    block.decode()  # Arrow accepts invalid UTF-8 as text
    schema = pa.schema([(field.name, reading_type(field.type)) for field in wanted])
    read = read_lines(block, schema).combine_chunks()
    arrays = [from_json(_one_array(read.column(field.name)), field.type) for field in wanted]
    for field, array in zip(wanted, arrays, strict=True):
        if not field.nullable and array.null_count:
            raise ValueError(null_text(field.name))
    return pa.RecordBatch.from_arrays(arrays, names=wanted.names)


def null_text(column: str) -> str:
    """Return what is wrong with a row that has NULL in a NOT NULL column."""
    return f"column '{column}' is NOT NULL, but the row has null; fill it or drop the row"


def _one_array(column: ArrowAny) -> ArrowAny:
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], column.type)


def _explain(block: bytes, wanted: pa.Schema, first_line: int, name: str) -> str:
    """Find the first line that cannot be read, by bisection."""
    lines = block.splitlines(keepends=True)
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _cause(b"".join(lines[good:middle]), wanted) is None:
            good = middle
        else:
            bad = middle
    line = lines[good]
    return f"{name}, line {first_line + good}: {_wrong_keys(line, wanted) or _cause(line, wanted)}"


def _cause(block: bytes, wanted: pa.Schema) -> str | None:
    if not block.strip():
        return None
    try:
        _typed(block, wanted)
    except ValueError as error:
        return str(error).removesuffix(" in row 0")
    return None


def _wrong_keys(line: bytes, wanted: pa.Schema) -> str | None:
    try:
        found = parse_json(line.decode())
    except ValueError:
        return None
    if not isinstance(found, dict):
        return "expected one JSON object a line"
    extra = [key for key in found if key not in wanted.names]
    return f"'{extra[0]}' is not a column; the table has {', '.join(wanted.names)}" if extra else None


_ENTRY: Final = ("key", "value")
# Types are nested 64 deep at most. Arrow's inference of types ends the process at some thousands, and Python's parser
# raises a RecursionError at about a thousand.
_MAX_NESTING: Final = 64
_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)
_CELL: Final = "value"


def reading_type(wanted: ArrowAny) -> pa.DataType:
    """Return the type to read a column as: text for dates, times and bytes, lists for MAP and VECTOR.

    Arrow's JSON parser would drop zones of times, and round to FLOAT.
    """
    if arrow.is_temporal(wanted) or arrow.is_binary(wanted):
        return pa.string()
    if arrow.is_float32(wanted):
        return pa.float64()
    if arrow.is_map(wanted):
        parts = (wanted.key_type, wanted.item_type)
        return pa.list_(pa.struct([(name, reading_type(part)) for name, part in zip(_ENTRY, parts, strict=True)]))
    if arrow.is_list(wanted) or arrow.is_fixed_size_list(wanted):
        return pa.list_(reading_type(wanted.value_type))
    if arrow.is_struct(wanted):
        return pa.struct([(field.name, reading_type(field.type)) for field in wanted])
    plain: pa.DataType = wanted
    return plain


def from_json(array: ArrowAny, wanted: ArrowAny) -> ArrowAny:
    """Return an array that was read as ``reading_type(wanted)`` as one of the wanted type."""
    if arrow.is_binary(wanted):
        return decode_hex(array)
    if arrow.is_time(wanted) or arrow.is_float32(wanted):
        return _exactly(array, wanted)
    mask = array.is_null() if array.null_count else None
    if arrow.is_struct(wanted):
        children = [from_json(array.field(field.name), field.type) for field in wanted]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if arrow.is_map(wanted):
        entries: ArrowAny = pc.list_flatten(array)
        keys = from_json(entries.field("key"), wanted.key_type)
        items = from_json(entries.field("value"), wanted.item_type)
        # The stubs know neither maps nor lists with a mask.
        make_map: ArrowAny = pa.MapArray.from_arrays
        return make_map(_offsets(array), keys, items, type=wanted, mask=mask)
    if arrow.is_list(wanted) or arrow.is_fixed_size_list(wanted):
        values = from_json(pc.list_flatten(array), wanted.value_type)
        make_list: ArrowAny = pa.ListArray.from_arrays
        lists = make_list(_offsets(array), values, type=pa.list_(wanted.value_field), mask=mask)
        return lists.cast(wanted) if arrow.is_fixed_size_list(wanted) else lists
    return array.cast(wanted)


def _exactly(array: ArrowAny, wanted: ArrowAny) -> ArrowAny:
    """Convert texts of times, and numbers of FLOAT; only fractions are rounded, as by every parser of numbers."""
    values = array.to_pylist()
    if arrow.is_time(wanted):
        values = [None if text is None else parse_time_text(text) for text in values]
    data_type = from_arrow_type(wanted, _CELL)

    def stored(value: object) -> object:
        return value if isinstance(value, float) and value % 1 else stored_value(value, data_type, _CELL)

    return pa.array(list(map(stored, values)), wanted)


def decode_hex(array: ArrowAny) -> ArrowAny:
    """Decode strings of hexadecimal digits, with or without ``0x``, to bytes. Raises ``ValueError``."""
    texts = array.to_pylist()
    return pa.array([None if text is None else bytes.fromhex(text.removeprefix("0x")) for text in texts], pa.binary())


def parse_cells(texts: ArrowAny, wanted: ArrowAny) -> ArrowAny:
    """Parse JSON strings, each to one value."""
    if not len(texts):
        return pa.array([], wanted)
    cells = [None if text is None else parse_json(text) for text in texts.to_pylist()]
    lines = "".join(f"{json.dumps({_CELL: cell})}\n" for cell in cells).encode()
    read = read_lines(lines, pa.schema([(_CELL, reading_type(wanted))]))
    column: Any = read.column(_CELL).combine_chunks()
    return from_json(column, wanted)


def parse_json(text: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Parse JSON. Raises ``ValueError``, also for arrays and objects nested deeper than any type."""
    check_nesting(text)
    return json.loads(text)


def check_nesting(text: str) -> None:
    """Check how deep arrays and objects are nested in JSON, or in lines of it. Raises ``ValueError``."""
    if text.count("[") + text.count("{") <= _MAX_NESTING:
        return
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if depth > _MAX_NESTING:
            raise ValueError(f"arrays and objects are nested deeper than {_MAX_NESTING}, which no type of a column is")


def read_lines(data: bytes, schema: pa.Schema | None) -> pa.Table:
    """Read whole JSON lines at once; ``schema`` None infers it. Raises ``pyarrow.ArrowInvalid``."""
    return pj.read_json(
        io.BytesIO(data),
        # An object must not be split, however long it is.
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "error"
        ),
    )


def _offsets(lists: ArrowAny) -> ArrowAny:
    """Offsets into ``list_flatten(lists)``, which leaves out the values of null lists."""
    lengths = pc.list_value_length(lists).fill_null(0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum_checked(lengths)])
