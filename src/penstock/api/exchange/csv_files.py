"""Rows from CSV, a block at a time."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.csv as pc
from pyarrow import types as arrow

from penstock.api.exchange.json_files import decode_hex, null_text, parse_cells
from penstock.datafile.python_values import parse_floats
from penstock.datafile.types import from_arrow_type
from penstock.errors import SchemaMismatchError
from penstock.format.types.data_types import DOUBLE, FLOAT
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.api.exchange.options import InputOptions
    from penstock.datafile.types import ArrowAny

NULL_CURE: Final = "; correct it, or give the text for NULL with --null-value"
"""End of the errors of values, for commands with this option."""

# A row must fit into a block, and Arrow reads 32 blocks ahead: larger ones only cost memory.
_BLOCK_BYTES: Final = 2 << 20
_CONVERSION: Final = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", re.DOTALL)
_VALUE: Final = re.compile(r"[^:]+: invalid value '(.*)'", re.DOTALL)
_DELIMITERS: Final = (";", "\t", "|", ",", ":", " ")
_PARSE: Final = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.DOTALL)


def read_csv(stream: ArrowAny, wanted: pa.Schema, options: InputOptions, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV stream; columns without a wanted type get an inferred one.

    Args:
        stream: open for reading.
        name: of the input, for messages.
    """
    header = None if options.header else tuple(wanted.names)
    if header is None:
        header = _peek_header(stream, options.delimiter)
        _check_delimiter(header, wanted, options.delimiter, name)
    try:
        reader = _open(stream, wanted, options)
        # As Arrow counts them: from 1, with the header.
        first_row = 1 + options.header
        for batch in reader:
            typed = _typed(batch, wanted, name, first_row)
            for field in wanted:
                if not field.nullable and field.name in typed.schema.names and typed.column(field.name).null_count:
                    row = first_row + typed.column(field.name).is_null().index(True).as_py()
                    raise SchemaMismatchError(f"{name}, row {row}: {null_text(field.name)}")
            yield typed
            first_row += batch.num_rows
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(_explain(error, header, name, wanted)) from error


def infer_csv_schema(stream: ArrowAny, options: InputOptions, name: str) -> pa.Schema:
    """Infer column types from the first block; columns without any value become text."""
    try:
        schema = _open(stream, None, options).schema
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(_explain(error, None, name)) from error
    return pa.schema([field.with_type(pa.string()) if arrow.is_null(field.type) else field for field in schema])


def _open(stream: ArrowAny, wanted: pa.Schema | None, options: InputOptions) -> pc.CSVStreamingReader:
    types = {} if wanted is None else {field.name: _reading_type(field.type) for field in wanted}
    names = None if options.header or wanted is None else wanted.names
    return pc.open_csv(
        stream,
        # One thread: with more, Arrow's errors do not name the row.
        read_options=pc.ReadOptions(
            use_threads=False,
            block_size=_BLOCK_BYTES,
            column_names=names,
            autogenerate_column_names=not options.header and names is None,
        ),
        parse_options=pc.ParseOptions(delimiter=options.delimiter, newlines_in_values=True),
        convert_options=pc.ConvertOptions(
            column_types=types,
            null_values=list(options.null_values),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _reading_type(wanted: ArrowAny) -> ArrowAny:
    is_text = arrow.is_nested(wanted) or arrow.is_binary(wanted) or arrow.is_floating(wanted)
    return pa.string() if is_text else wanted


def _typed(batch: pa.RecordBatch, wanted: pa.Schema, name: str, first_row: int) -> pa.RecordBatch:
    types = {field.name: field.type for field in wanted}
    columns = []
    for column, array in zip(batch.schema.names, batch.columns, strict=True):
        kind = types.get(column)
        if kind is None or _reading_type(kind) == kind:
            columns.append(array)
            continue
        try:
            columns.append(_parsed(array, kind))
        except ValueError as error:
            row, cause = _first_wrong(array, kind, error)
            raise SchemaMismatchError(f"{name}, row {first_row + row}, column '{column}': {cause}") from error
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _parsed(texts: ArrowAny, wanted: ArrowAny) -> ArrowAny:
    if arrow.is_floating(wanted):
        return parse_floats(texts, FLOAT if arrow.is_float32(wanted) else DOUBLE, "value")
    return decode_hex(texts) if arrow.is_binary(wanted) else parse_cells(texts, wanted)


def _first_wrong(texts: ArrowAny, wanted: ArrowAny, error: ValueError) -> tuple[int, str]:
    """Return the first row that is not a text of the type, and why."""
    kind = "hexadecimal digits" if arrow.is_binary(wanted) else f"the JSON text of a {wanted}"
    expected = "" if arrow.is_floating(wanted) else f"expected {kind}: "
    for row in range(len(texts)):
        try:
            _parsed(texts.slice(row, 1), wanted)
        except ValueError as found:
            return row, f"{expected}{found}{NULL_CURE}"
    return 0, f"{expected}{error}"


def _peek_header(stream: ArrowAny, delimiter: str) -> tuple[str, ...]:
    """Return the names in the first line, for messages; none when the stream cannot seek."""
    if not stream.seekable():
        return ()
    head = stream.read(1 << 16)
    stream.seek(0)
    lines = bytes(head).decode(errors="replace").lstrip("\ufeff").splitlines()
    try:
        return tuple(next(csv.reader(lines[:1], delimiter=delimiter), ()))
    except csv.Error:
        return ()


def _check_delimiter(header: Sequence[str], wanted: pa.Schema, delimiter: str, name: str) -> None:
    """Raise ``SchemaMismatchError`` if the first line has the wanted columns with another delimiter."""
    others = [other for other in _DELIMITERS if len(header) == 1 and {*header[0].split(other)} == {*wanted.names}]
    if others and len(wanted) > 1:
        raise SchemaMismatchError(
            f"{name}: its first line has {others[0]!r} between the columns, not {delimiter!r}: give --delimiter"
        )


def _explain(error: pa.ArrowInvalid, header: Sequence[str] | None, name: str, wanted: pa.Schema | None = None) -> str:
    text = str(error)
    conversion, parse = _CONVERSION.fullmatch(text), _PARSE.fullmatch(text)
    if conversion is not None:
        place, row, cause = int(conversion[1]), conversion[2], conversion[3].removeprefix("CSV conversion error to ")
        column = f"'{header[place]}'" if header and place < len(header) else f"number {place + 1}"
        where = f"row {row}, " if row else ""
        value = _VALUE.fullmatch(cause)
        if value is not None and wanted is not None and header and header[place] in wanted.names:
            kind = from_arrow_type(wanted.field(header[place]).type, header[place])
            cause = f"'{value[1]}' is not a value of {format_sql_type(kind)}"
        return f"{name}, {where}column {column}: {cause}{NULL_CURE}"
    if parse is not None:
        return f"{name}, row {parse[1]}: {parse[2]}; is --delimiter right?"
    if "straddles two block boundaries" in text:
        return (
            f"{name}: a row is longer than {_BLOCK_BYTES} bytes, or a quote is never closed; give it as JSON or Parquet"
        )
    return f"{name}: {text}"
