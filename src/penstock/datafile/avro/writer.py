"""Write Avro data files.

Source:
    Paimon ``format:avro/AvroFileFormat.java``; docs/spec/format.md section 8.3.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from fastavro.write import Writer

from penstock.datafile.avro.columns import to_records
from penstock.datafile.avro.schema import to_avro_schema
from penstock.datafile.column_stats import StatsCollector
from penstock.datafile.data_format import WrittenFile
from penstock.datafile.streams import writing
from penstock.errors import TableStoreError
from penstock.format.avro.container import AvroCodec, parse_codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.datafile.data_format import EncodingChoices
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions

_BLOCK_BYTES: Final = 64_000
# Rows converted to Python objects at a time.
_CHUNK_ROWS: Final = 8_192
_WITH_LEVEL: Final = frozenset({AvroCodec.ZSTANDARD})


class AvroFileWriter:
    """Writes each batch immediately; only the current block is buffered."""

    def __init__(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        options: FormatOptions,
        _choices: EncodingChoices | None = None,
    ) -> None:
        self._file_io = file_io
        self._path = path
        self._fields = tuple(fields)
        self._schema = to_avro_schema(fields)
        self._codec = parse_codec(options.compression)
        self._level = options.compression_zstd_level if self._codec in _WITH_LEVEL else None
        self._block_bytes = options.block_bytes or _BLOCK_BYTES
        self._stats = StatsCollector(fields)
        self._row_count = 0
        self._target: Any = None
        self._writer: Any = None

    @property
    def buffered_bytes(self) -> int:
        """Upper bound of the buffered bytes: one block."""
        return 0 if self._writer is None else self._block_bytes

    @property
    def bytes_written(self) -> int:
        """Bytes of the completed blocks."""
        return 0 if self._target is None else int(self._target.tell())

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if not batch.num_rows:
            return
        with writing(self._path):
            self._stats.add(batch)
        self._row_count += batch.num_rows
        with writing(self._path):
            self._open()
            for start in range(0, batch.num_rows, _CHUNK_ROWS):
                for record in to_records(batch.slice(start, _CHUNK_ROWS), self._fields):
                    self._writer.write(record)

    def settle(self) -> None:
        """Do nothing: ``bytes_written`` is not an estimate."""

    def close(self) -> WrittenFile:
        """Write the last block and close the file."""
        with writing(self._path):
            self._open()
            self._writer.flush()
            size = self._target.tell()
            self._target.close()
            columns = self._stats.result()
        return WrittenFile(file_size=size, row_count=self._row_count, columns=columns)

    def abort(self) -> None:
        """Delete the unfinished file."""
        target = self._target
        self._target = self._writer = None
        if target is None:
            return
        with contextlib.suppress(OSError, pa.ArrowException, TableStoreError):
            target.close()
        self._file_io.delete(self._path)

    def _open(self) -> None:
        if self._writer is None:
            self._target = self._file_io.open_output(self._path)
            self._writer = Writer(
                self._target,
                self._schema,
                codec=self._codec.value,
                sync_interval=self._block_bytes,
                compression_level=self._level,
            )
