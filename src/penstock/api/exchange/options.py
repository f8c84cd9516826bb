"""Options of reading files of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class InputFormat(StrEnum):
    """Format of an input."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How to read.

    Attributes:
        format: None infers it from the names.
        batch_rows: maximum number of rows per batch.
        header: whether the first line of CSV has the names; otherwise columns are in the table's order.
        null_values: unquoted CSV fields that mean NULL.
    """

    format: InputFormat | None = None
    batch_rows: int = 65_536
    delimiter: str = ","
    header: bool = True
    null_values: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file of rows, or standard input.

    Attributes:
        path: path or URI; ``-`` for standard input.
        format: already known.
        compression: Arrow's name of it; None for none.
        constants: columns that the file lacks, with the text of their constant value (None for null).
    """

    path: str
    format: InputFormat
    compression: Literal["gzip", "bz2", "zstd"] | None = None
    constants: tuple[tuple[str, str | None], ...] = ()

    @property
    def is_standard_input(self) -> bool:
        """Whether it is standard input."""
        return self.path == "-"
