"""The interface of a file format to the rest of Penstock; Parquet, ORC and Avro implement it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.format.manifest.stats import ColumnStats
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """Metadata of a finished file, from its closed writer.

    Attributes:
        file_size: exact size in bytes.
        columns: per field of the schema, in order; None if the format has no statistics for the column.
        without_dictionary: names of columns that have no dictionary; known for Parquet files of other writers only.
    """

    file_size: int
    row_count: int
    columns: tuple[ColumnStats | None, ...]
    without_dictionary: frozenset[str] = frozenset()


# By about the number of rows: the columns with a dictionary, and the number of further files that take them over.
EncodingChoices: TypeAlias = "dict[int, tuple[Sequence[str], int]]"


class DataFileWriter(Protocol):
    """Writes one file; never pickled, as it holds the open file. Nothing is on storage before the first flush."""

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it were closed now: flushed bytes plus an estimate of the buffered ones."""
        ...

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes that the writer holds in memory."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows with the canonical Arrow schema of the fields. The batch is kept, not copied."""
        ...

    def settle(self) -> None:
        """Flush the buffer if nothing was flushed yet, since ``bytes_written`` is a guess until then; optional."""
        ...

    def close(self) -> WrittenFile:
        """Flush, finish the file and return its metadata. On failure the file remains, for ``abort`` to delete."""
        ...

    def abort(self) -> None:
        """Close and delete the file; a second call does nothing."""
        ...


class OpenWriter(Protocol):
    """Opens a writer."""

    def __call__(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        options: FormatOptions,
        choices: EncodingChoices | None = None,
        /,
    ) -> DataFileWriter:
        """Open a writer for a file at a new path.

        Args:
            choices: shared by the files of a partition; Parquet's writer alone makes such choices.
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
        """Read columns as non-empty batches of the canonical Arrow schema of ``fields``, in file order.

        Args:
            fields: names as spelled in the file; a field that the file lacks is read as nulls.
            batch_rows: maximum rows per batch.
            ranges: rows to read, as half-open ascending intervals of row positions; None = all.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFormat:
    """A file format for rows."""

    open_writer: OpenWriter
    read: ReadFile
