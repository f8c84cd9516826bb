"""Formats of data files, told from the file's name alone.

Source:
    Paimon ``core:io/DataFilePathFactory.java``; docs/spec/format.md section 1.3.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from penstock.errors import UnsupportedFeatureError


class FileFormat(StrEnum):
    """How a data file is encoded; the value is its extension and the text of option ``file.format``."""

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
"""Codec name to the extension that Hadoop gives its files."""

_CODEC_EXTENSIONS: Final = frozenset(CODEC_SUFFIXES.values())


def format_of(file_name: str) -> FileFormat:
    """Tell a data file's format from its last extension, one codec extension skipped.

    Table options don't matter: one table may mix formats.

    Raises:
        UnsupportedFeatureError: the extension names no format that is read here.
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
