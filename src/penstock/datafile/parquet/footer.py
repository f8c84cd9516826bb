"""Footers of Parquet files: read them, and change that of a file while pyarrow writes it.

Source:
    parquet-java ``ParquetMetadataConverter.java``; the Parquet format's ``parquet.thrift`` for the field numbers;
    docs/spec/format.md sections 7.3 and 8.1.
"""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.datafile.data_format import WrittenFile
from penstock.datafile.parquet.schema import footer_stats, leaves_of
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.thrift import ThriftStruct, decode_struct, encode_struct
from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO

MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8  # footer length and magic
_COUNT_BATCH_ROWS: Final = 1_024


class Codec(NamedTuple):
    """A compression of Parquet.

    Attributes:
        arrow: pyarrow's name. Its "lz4" is the format's LZ4_RAW; only Hadoop reads Hadoop's framed LZ4.
        number: in the format.
        spark: Spark's name; None if Spark's writer encodes it in another way, or not at all.
    """

    arrow: str
    number: int
    spark: str | None


CODECS: Final = {
    "none": Codec("none", 0, "uncompressed"),
    "uncompressed": Codec("none", 0, "uncompressed"),
    "snappy": Codec("snappy", 1, "snappy"),
    "gzip": Codec("gzip", 2, "gzip"),
    "brotli": Codec("brotli", 4, None),
    "zstd": Codec("zstd", 6, "zstd"),
    "lz4": Codec("lz4", 7, "lz4_raw"),
    "lz4_raw": Codec("lz4", 7, "lz4_raw"),
}
"""By the value of option ``file.compression``."""


def load_metadata(source: pa.NativeFile, *, max_bytes: int = sys.maxsize) -> tuple[ThriftStruct, int]:
    """Return the ``FileMetaData`` of a file, and the position of its footer.

    Raises:
        FormatError: there is no such footer, or it is longer.
    """
    size = source.size()
    source.seek(max(size - _TAIL_BYTES, 0))
    tail = source.read(_TAIL_BYTES)
    start = size - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or start < 0 or size - start > max_bytes:
        raise FormatError("has no Parquet footer that can be read")
    source.seek(start)
    return decode_struct(source.read(size - _TAIL_BYTES - start)), start


def encode_footer(metadata: ThriftStruct) -> bytes:
    """Return the last bytes of a file."""
    encoded = encode_struct(metadata)
    return encoded + len(encoded).to_bytes(4, "little") + MAGIC


def load_column_names(file_io: FileIO, path: str) -> frozenset[str]:
    """Return the names of a file's columns. Raises ``FormatError`` if it is not a Parquet file."""
    with reading(path), closing(file_io.open_input(path)) as opened:
        return frozenset(pq.read_schema(as_native_file(opened)).names)


def load_plain_columns(file_io: FileIO, path: str) -> frozenset[str]:
    """Return the columns of a file that have values and no dictionary, by their paths."""
    with reading(path), closing(file_io.open_input(path)) as opened:
        return _plain_columns(pq.read_metadata(as_native_file(opened)))


def describe_parquet(file_io: FileIO, path: str, fields: Sequence[DataField]) -> WrittenFile:
    """Return the same metadata from the footer as Penstock's own writer returns.

    Reads no data, except for columns with values so long that the footer lacks their null count.

    Args:
        fields: the required columns of the file, in their order; timestamps of at most six digits.
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
            without_dictionary=_plain_columns(metadata),
        )


def _plain_columns(metadata: pq.FileMetaData) -> frozenset[str]:
    return frozenset(
        metadata.schema.column(index).path for index in range(metadata.num_columns) if _is_plain(metadata, index)
    )


def _is_plain(metadata: pq.FileMetaData, index: int) -> bool:
    """Whether a column has values, and no dictionary of them."""
    chunks: list[ArrowAny] = [metadata.row_group(place).column(index) for place in range(metadata.num_row_groups)]
    has_values = any(each.statistics is None or each.statistics.null_count != each.num_values for each in chunks)
    return has_values and not any(name.endswith("_DICTIONARY") for each in chunks for name in each.encodings)


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


# Fields of ``Statistics``: max, min, max_value, min_value, is_max_value_exact, is_min_value_exact.
_RANGE_FIELDS: Final = (1, 2, 5, 6, 7, 8)


class FooterSink:
    """File object that pyarrow writes to; it buffers the footer from ``expect_footer`` on, and ``finish`` edits it."""

    closed = False

    def __init__(self, target: Any) -> None:  # noqa: ANN401 - whatever FileIO.open_output gives
        self._target = target
        self._footer: bytearray | None = None
        self._size = 0

    def write(self, data: bytes | memoryview) -> int:
        """Forward bytes to the target, or buffer them."""
        size = memoryview(data).nbytes
        if self._footer is None:
            self._target.write(data)
            self._size += size
        else:
            self._footer += data
        return size

    def tell(self) -> int:
        """Return the number of bytes so far, as pyarrow counts them."""
        return self._size + len(self._footer or b"")

    def flush(self) -> None:
        """Do nothing: only the footer is buffered."""

    def close(self) -> None:
        """Do nothing: the code that opened the target closes it."""

    def expect_footer(self) -> None:
        """Buffer the following bytes, up to ``finish``: they are the footer."""
        self._footer = bytearray()

    def finish(self, changes: Sequence[Callable[[ThriftStruct], None]]) -> int:
        """Apply the changes to the footer's ``FileMetaData`` and write it; return the size of the file."""
        footer = bytes(self._footer or b"")
        self._footer = None
        if changes:
            metadata, start = load_metadata(pa.BufferReader(footer))
            for change in changes:
                change(metadata)
            footer = footer[:start] + encode_footer(metadata)
        self.write(footer)
        return self._size


def drop_ranges(footer: ThriftStruct, columns: Collection[int]) -> None:
    """Remove minima and maxima of physical columns from every row group; null counts are kept."""
    for row_group in footer.get(4).items:
        for column in columns:
            stats = row_group.get(1).items[column].get(3).get(12)
            for field_id in _RANGE_FIELDS if stats is not None else ():
                stats.fields.pop(field_id, None)
