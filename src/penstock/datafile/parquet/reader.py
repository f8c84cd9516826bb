"""Read Parquet files of any writer.

Source:
    Paimon ``format:parquet/ParquetReaderFactory.java``; docs/spec/format.md section 8.1.
"""

from __future__ import annotations

import base64
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.datafile.conform import conform_batch, make_batch, select_rows
from penstock.datafile.int96 import INT96_CARRIER, decode_int96, int96_as_carriers
from penstock.datafile.parquet.footer import MAGIC, encode_footer, load_metadata
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.types import to_arrow_schema
from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO

# File bytes whose column chunks are fetched together and kept in memory while they are decoded.
_FETCH_BYTES: Final = 64 * 1024 * 1024


def read_parquet(
    file_io: FileIO,
    path: str,
    fields: Sequence[DataField],
    *,
    batch_rows: int,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read columns by name as canonical Arrow; see ``ReadFile``."""
    schema = to_arrow_schema(fields)
    data_types = [field.type for field in fields]
    with reading(path), closing(file_io.open_input(path)) as opened:
        source = as_native_file(opened)
        file = _open(source)
        known = set(file.schema_arrow.names)
        if len(known) < len(file.schema_arrow.names):
            raise FormatError("two columns have the same name, so it is unknown which one is meant")
        names = [field.name for field in fields if field.name in known]
        if names:
            for groups, start in _runs(file, source.size(), ranges):
                batches = file.iter_batches(batch_rows, row_groups=groups, columns=names)
                for batch in select_rows(batches, start, ranges):
                    yield conform_batch(batch, data_types, schema)
        else:
            for batch in select_rows(_rowless(file.metadata.num_rows, batch_rows), 0, ranges):
                yield conform_batch(batch, data_types, schema)


def int96_types(metadata: pq.FileMetaData) -> dict[str, ArrowAny | None]:
    """Return the INT96 columns of a file, by their paths: ``timestamp[ns]`` for wall clocks, None if it is unknown.

    INT96 does not say whether a value is an instant: Spark writes instants only, Paimon wall clocks too. Only pyarrow's
    own schema in the footer says it, for columns that are not nested.
    """
    columns = (metadata.schema.column(place) for place in range(len(metadata.schema)))
    paths = [column.path for column in columns if column.physical_type == "INT96"]
    text = (metadata.metadata or {}).get(b"ARROW:schema") if paths else None
    stored = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))) if text else pa.schema([])
    wall_clocks = {each.name for each in stored if pa.types.is_timestamp(each.type) and each.type.tz is None}
    return {path: pa.timestamp("ns") if path in wall_clocks else None for path in paths}


def read_with_int96(
    source: pa.NativeFile, types: Mapping[str, ArrowAny], *, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Read all columns of a file of another writer with their own types, and INT96 exactly as timestamps of ``types``.

    Args:
        types: a timestamp type for each INT96 column, none of which is nested.
    """
    for batch in _open(source).iter_batches(batch_rows):
        read = batch
        for place, name in enumerate(batch.schema.names):
            if name in types and batch.column(place).type == INT96_CARRIER:
                numbers = decode_int96(batch.column(place), types[name].unit, exactly=True)
                read = read.set_column(place, name, numbers.view(types[name]))
        yield read


def _rowless(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches without columns: none of the requested columns is in the file."""
    for start in range(0, rows, batch_rows):
        yield make_batch((), pa.schema([]), min(batch_rows, rows - start))


def _open(source: pa.NativeFile) -> pq.ParquetFile:
    """Open a file with its INT96 columns as carriers."""
    file = pq.ParquetFile(source, pre_buffer=True)
    schema = file.schema
    if all(schema.column(index).physical_type != "INT96" for index in range(len(schema))):
        return file
    footer, _ = load_metadata(source)
    int96_as_carriers(footer)
    metadata = pq.read_metadata(pa.BufferReader(MAGIC + encode_footer(footer)))
    return pq.ParquetFile(source, metadata=metadata, pre_buffer=True)


def _runs(
    file: pq.ParquetFile, file_bytes: int, ranges: Sequence[tuple[int, int]] | None
) -> Iterator[tuple[list[int], int]]:
    """Yield groups of adjacent row groups to fetch together, with the position of their first row."""
    metadata = file.metadata
    most = max(1, metadata.num_row_groups * _FETCH_BYTES // max(file_bytes, 1))
    run: list[int] = []
    first = start = 0
    for group in range(metadata.num_row_groups):
        end = start + metadata.row_group(group).num_rows
        wanted = ranges is None or any(low < end and high > start for low, high in ranges)
        if run and (not wanted or len(run) == most):
            yield run, first
            run = []
        if wanted:
            first = first if run else start
            run.append(group)
        start = end
    if run:
        yield run, first
