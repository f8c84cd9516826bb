"""Rows from JSON Lines, a block at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.cli.input.json_values import check_nesting, from_json, parse_json, read_lines, reading_type
from penstock.errors import SchemaMismatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny

_BLOCK_BYTES: Final = 8 << 20


def read_json(stream: ArrowAny, wanted: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream of JSON lines, with the wanted types.

    Args:
        stream: open for reading; one object per line, missing keys are null.
        name: of the input, for messages.

    Raises:
        SchemaMismatchError: a line is not a JSON object, has unknown keys, or a value of another type; the message has
            the line.
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
    # NOT NULL is checked with the rest of the schema, where the message can have more detail.
    return pa.RecordBatch.from_arrays(arrays, names=wanted.names)


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
