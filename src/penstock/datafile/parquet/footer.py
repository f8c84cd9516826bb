"""Read the metadata of a Parquet file of another writer.

Source:
    parquet-java ``ParquetMetadataConverter.java``; docs/spec/format.md sections 7.3 and 8.1.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from penstock.datafile.data_format import WrittenFile
from penstock.datafile.parquet.schema import leaves_of
from penstock.datafile.parquet.stats import footer_stats
from penstock.datafile.streams import as_native_file, reading
from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO

_COUNT_BATCH_ROWS: Final = 1_024
_FIELD_ID: Final = b"PARQUET:field_id"


def load_column_names(file_io: FileIO, path: str) -> frozenset[str]:
    """Return the names of a file's columns. Raises ``FormatError`` if it is not a Parquet file."""
    with reading(path), closing(file_io.open_input(path)) as opened:
        return frozenset(pq.read_schema(as_native_file(opened)).names)


def load_field_ids(file_io: FileIO, path: str) -> dict[str, int]:
    """Return the field ids of a file's columns by name, without columns that have no id.

    Raises:
        FormatError: the file is not a Parquet file.
    """
    with reading(path), closing(file_io.open_input(path)) as opened:
        schema = pq.read_schema(as_native_file(opened))
        known = {field.name: (field.metadata or {}).get(_FIELD_ID) for field in schema}
    return {name: int(found) for name, found in known.items() if found is not None}


def describe_parquet(file_io: FileIO, path: str, fields: Sequence[DataField]) -> WrittenFile:
    """Return the same metadata from the footer as Penstock's own writer returns.

    Reads no data, except for columns with values so long that the footer lacks their null count.

    Args:
        fields: the required columns of the file, in their order; timestamps of at most six digits.

    Raises:
        FormatError: the file has other columns, or its columns cannot be read.
    """
    leaves = leaves_of(fields)
    with reading(path), closing(file_io.open_input(path)) as opened:
        source = as_native_file(opened)
        file = pq.ParquetFile(source)
        metadata = file.metadata
        found = [file.schema.column(index).path for index in range(metadata.num_columns)]
        if found != [leaf.path for leaf in leaves]:
            raise FormatError(f"has the columns {', '.join(found)}, not those of the table")
        uncounted = {
            leaf.place: _count_nulls(file, index)
            for index, leaf in enumerate(leaves)
            if not leaf.is_nested and not _is_counted(metadata, index)
        }
        return WrittenFile(
            file_size=source.size(),
            row_count=metadata.num_rows,
            columns=footer_stats(metadata, leaves, uncounted),
        )


def _is_counted(metadata: pq.FileMetaData, index: int) -> bool:
    # Java's writer omits all statistics of a chunk if its minimum and maximum have more than 4 KiB together.
    for place in range(metadata.num_row_groups):
        stats: ArrowAny = metadata.row_group(place).column(index).statistics
        if stats is None or not stats.has_null_count:
            return False
    return True


def _count_nulls(file: pq.ParquetFile, index: int) -> int:
    name = file.schema.column(index).path
    return sum(batch.column(0).null_count for batch in file.iter_batches(_COUNT_BATCH_ROWS, columns=[name]))
