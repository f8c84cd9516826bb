"""Parquet, the default format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datafile.parquet.reader import read_parquet
from penstock.datafile.parquet.writer import ParquetFileWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions


class Parquet:
    """``DataFormat`` of Parquet files."""

    def open_writer(
        self, file_io: FileIO, path: str, fields: Sequence[DataField], options: FormatOptions
    ) -> ParquetFileWriter:
        """Start a file; see ``DataFormat.open_writer``."""
        return ParquetFileWriter(file_io, path, fields, options)

    def read(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        *,
        batch_rows: int,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read columns; see ``DataFormat.read``."""
        return read_parquet(file_io, path, fields, batch_rows=batch_rows, ranges=ranges)
