"""Rows from files and standard input, batch by batch, with the table's types."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.api.exchange.csv_files import infer_csv_schema, read_csv
from penstock.api.exchange.json_files import infer_json_schema, read_json
from penstock.api.exchange.options import InputFile, InputFormat, InputOptions
from penstock.api.rows import fit_rows
from penstock.datafile.parquet.reader import int96_types, read_with_int96
from penstock.datafile.streams import as_native_file
from penstock.errors import InvalidOptionError, SchemaMismatchError
from penstock.io.failures import to_storage_error
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.api.table import Table
    from penstock.cli.output.progress import Report
    from penstock.datafile.types import ArrowAny

_FORMATS: Final = {
    ".csv": InputFormat.CSV,
    ".tsv": InputFormat.CSV,
    ".parquet": InputFormat.PARQUET,
    ".json": InputFormat.JSON,
    ".jsonl": InputFormat.JSON,
    ".ndjson": InputFormat.JSON,
}
_COMPRESSIONS: Final[dict[str, Literal["gzip", "bz2", "zstd"]]] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def plan_inputs(paths: Sequence[str], options: InputOptions) -> tuple[InputFile, ...]:
    """Find format and compression of each input from its name."""
    if list(paths).count("-") > 1:
        raise InvalidOptionError("standard input (-) can be read only once; name it once")
    return tuple(_plan_input(path, options.format) for path in paths)


def total_bytes(inputs: Sequence[InputFile]) -> int | None:
    """Return the size of all files; None when standard input is one of them. Raises ``NotFoundError``."""
    if any(each.is_standard_input for each in inputs):
        return None
    total = 0
    for each in inputs:
        with _opened(each.path) as stream:
            total += stream.seek(0, 2)
    return total


def open_rows(table: Table, inputs: Sequence[InputFile], options: InputOptions, report: Report) -> pa.RecordBatchReader:
    """Return a reader over the rows of all inputs, in order, as the table's canonical batches.

    Files are opened while it is consumed, and errors raised then: ``SchemaMismatchError`` with the file and the place
    in it, ``NotFoundError`` and ``StorageError``.

    Args:
        report: called with the progress.
    """
    schema = table.arrow_schema
    return pa.RecordBatchReader.from_batches(schema, _rows(table, inputs, options, report))


def infer_schema(path: str, options: InputOptions) -> pa.Schema:
    """Return the columns of a file: those of its footer, or a guess from its first rows."""
    (given,) = plan_inputs([path], options)
    with _opened_input(given) as (_, stream), _named_errors(given):
        match given.format:
            case InputFormat.PARQUET:
                metadata = pq.read_metadata(stream)
                _int96_columns(metadata, None)
                return metadata.schema.to_arrow_schema()
            case InputFormat.CSV:
                return infer_csv_schema(stream, options, _name(given))
            case InputFormat.JSON:
                return infer_json_schema(stream, _name(given))


def _plan_input(path: str, given: InputFormat | None) -> InputFile:
    suffixes = [suffix.lower() for suffix in PurePosixPath(path).suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    found = given or (_FORMATS.get(suffixes[-1]) if suffixes else None)
    if found is None:
        name = "standard input" if path == "-" else f"'{path}'"
        raise InvalidOptionError(f"{name}: give its format with --input-format csv, parquet or json")
    return InputFile(path=path, format=found, compression=compression)


def _rows(table: Table, inputs: Sequence[InputFile], options: InputOptions, report: Report) -> Iterator[pa.RecordBatch]:
    rows = finished_bytes = 0
    for given in inputs:
        first_row = rows
        with _opened_input(given) as (raw, stream), _named_errors(given):
            batches, position = _read(raw, stream, table, given, options)
            for batch in fit_rows(table.schema, table.name, batches, given.constants):
                for start in range(0, batch.num_rows, options.batch_rows):
                    piece = batch.slice(start, options.batch_rows)
                    yield piece
                    rows += piece.num_rows
                    done_bytes = position(rows - first_row)
                    report(rows, None if done_bytes is None else finished_bytes + done_bytes)
            finished_bytes += position(rows - first_row) or 0


def _read(
    raw: ArrowAny, stream: ArrowAny, table: Table, given: InputFile, options: InputOptions
) -> tuple[Iterable[pa.RecordBatch], Callable[[int], int | None]]:
    """Return the batches of an input, and a function of how many bytes were read after a number of rows."""
    wanted = table.arrow_schema

    def position(_rows: int) -> int | None:
        return None if given.is_standard_input or raw.closed else int(raw.tell())

    match given.format:
        case InputFormat.CSV:
            return read_csv(stream, wanted, options, _name(given)), position
        case InputFormat.JSON:
            return read_json(stream, wanted, _name(given)), position
        case InputFormat.PARQUET:
            size = stream.seek(0, 2)
            file = pq.ParquetFile(stream)
            total_rows = max(file.metadata.num_rows, 1)
            types = _int96_columns(file.metadata, wanted)
            # The file's row group size determines the memory; it is decoded in batches of this many rows, so that
            # progress is finer-grained.
            batches = (
                read_with_int96(as_native_file(stream), types, batch_rows=options.batch_rows)
                if types
                else file.iter_batches(batch_size=options.batch_rows)
            )
            return batches, lambda rows: size * rows // total_rows


def _int96_columns(metadata: pq.FileMetaData, wanted: pa.Schema | None) -> dict[str, Any]:
    """Return the types as which to read INT96 columns. Raises SchemaMismatchError if they are unknown.

    Args:
        wanted: the table's columns; None for a new table.
    """
    types = int96_types(metadata)
    for name, known in types.items():
        column = None if wanted is None or name not in wanted.names else wanted.field(name).type
        if known is None and column is not None and pa.types.is_timestamp(column) and column.tz is not None:
            types[name] = column
        elif known is None:
            raise SchemaMismatchError(
                f"column '{name}' has timestamps of the old type INT96, which does not say whether they are instants "
                "(Spark writes instants, Paimon wall clocks too): if they are, give the table a column "
                f"{name} TIMESTAMP_LTZ(6); if they are wall clocks, penstock convert --type {name}='TIMESTAMP(9)' "
                "makes a table of them, from which INSERT INTO copies; nested ones are not read"
            )
    return types


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    file_io, resolved = resolve(path)
    stream = file_io.open_input(resolved)
    with stream:
        yield stream


@contextmanager
def _opened_input(given: InputFile) -> Iterator[tuple[Any, Any]]:
    """Yield the stream whose position is the progress, and the stream to read from."""
    if not given.is_standard_input:
        with _opened(given.path) as raw:
            yield raw, raw if given.compression is None else pa.CompressedInputStream(raw, given.compression)
    elif given.format is InputFormat.PARQUET:
        # Its footer is at the end, so it cannot be read as a stream.
        with tempfile.TemporaryFile() as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
            spooled.seek(0)
            yield spooled, spooled
    else:
        yield sys.stdin.buffer, sys.stdin.buffer


@contextmanager
def _named_errors(given: InputFile) -> Iterator[None]:
    """Name the input in errors."""
    try:
        yield
    except SchemaMismatchError as error:
        message = str(error)
        name = _name(given)
        raise SchemaMismatchError(message if message.startswith(name) else f"{name}: {message}") from error
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(f"{_name(given)} is not a valid {given.format} file: {error}") from error
    except OSError as error:
        raise to_storage_error("read", _name(given), error) from error


def _name(given: InputFile) -> str:
    return "standard input" if given.is_standard_input else given.path
