"""Formats of data files, derived from the file name alone.

Source:
    Paimon ``core:io/DataFilePathFactory.java``; docs/spec/format.md section 1.3.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from penstock.errors import UnsupportedFeatureError


class FileFormat(StrEnum):
    """Format of a data file; the value is the file extension and the text of option ``file.format``."""

    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


CODEC_SUFFIXES: Final = {
    "gzip": "gz",
    "bzip2": "bz2",
    "deflate": "deflate",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zst",
}
"""Codec name to the extension that Hadoop uses for it."""

_CODEC_EXTENSIONS: Final = frozenset(CODEC_SUFFIXES.values())


def format_of(file_name: str) -> FileFormat:
    """Return a data file's format from its last extension; one codec extension after it is skipped.

    Table options are not used: one table may mix formats.

    Raises:
        UnsupportedFeatureError: the extension is not that of a supported format.
    """
    parts = file_name.rpartition("/")[2].split(".")[1:]
    if len(parts) > 1 and parts[-1] in _CODEC_EXTENSIONS:
        parts.pop()
    extension = parts[-1] if parts else ""
    try:
        return FileFormat(extension)
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"data file '{file_name}' has format '{extension}': only parquet, orc and avro are read; "
            "rewrite it with one of them"
        ) from error
