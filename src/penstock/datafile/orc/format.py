"""ORC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datafile.orc.reader import read_orc
from penstock.datafile.orc.writer import OrcFileWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions


class Orc:
    """``DataFormat`` of ORC files."""

    def open_writer(
        self, file_io: FileIO, path: str, fields: Sequence[DataField], options: FormatOptions
    ) -> OrcFileWriter:
        """Start a file; see ``DataFormat.open_writer``."""
        return OrcFileWriter(file_io, path, fields, options)

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
        return read_orc(file_io, path, fields, batch_rows=batch_rows, ranges=ranges)
