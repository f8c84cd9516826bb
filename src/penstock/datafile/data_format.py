"""What a file format does for the rest of Penstock; Parquet, ORC and Avro are three of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.format.manifest.stats import ColumnStats
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """What a closed writer tells of its file.

    Attributes:
        file_size: exact bytes.
        columns: per field of the schema, in order; None where the format keeps no statistics of such a column.
    """

    file_size: int
    row_count: int
    columns: tuple[ColumnStats | None, ...]


class DataFileWriter(Protocol):
    """Writes one file; a worker, never pickled. Nothing is on storage before the first rows are flushed."""

    @property
    def bytes_written(self) -> int:
        """About the bytes that the file would have if closed now: those flushed and an estimate of those buffered."""
        ...

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes that the writer holds in memory."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows, which have the canonical Arrow schema of the fields. The batch is kept, not copied."""
        ...

    def settle(self) -> None:
        """Flush what is buffered where ``bytes_written`` is a guess that nothing flushed has borne out, if possible."""
        ...

    def close(self) -> WrittenFile:
        """Flush, finish the file and say what it holds. A failure leaves the file for ``abort`` to delete."""
        ...

    def abort(self) -> None:
        """Close and delete what is there; does nothing more the second time."""
        ...


class OpenWriter(Protocol):
    """Starts a file."""

    def __call__(
        self, file_io: FileIO, path: str, fields: Sequence[DataField], options: FormatOptions, /
    ) -> DataFileWriter:
        """Start a file at a fresh path.

        Raises:
            UnsupportedFeatureError: a type that the format cannot hold.
            InvalidOptionError: an option that the format does not know how to follow.
        """
        ...


class ReadFile(Protocol):
    """Reads a file."""

    def __call__(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        *,
        batch_rows: int,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read columns as batches of the canonical Arrow schema of ``fields``, in file order, none of them empty.

        Args:
            fields: names as spelled in the file; one that the file lacks comes as nulls.
            batch_rows: most rows a batch.
            ranges: rows to read, as half-open ascending intervals of row positions; None = all.

        Raises:
            NotFoundError: no file is there.
            FormatError: it is truncated, or its types are not those of ``fields``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFormat:
    """One way to encode rows in a file."""

    open_writer: OpenWriter
    read: ReadFile
