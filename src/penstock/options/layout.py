"""Options for the location and the encoding of files.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md section 8.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.format.layout import FileFormat
from penstock.format.manifest.stats import DEFAULT_STATS_MODE, StatsKind, StatsMode, choose_modes
from penstock.format.row.bucket import BucketFunction
from penstock.format.text.names import check_file_name
from penstock.options.group import (
    MIB,
    OptionGroup,
    ValueKind,
    at_least,
    family,
    option,
    parse_bool,
    parse_bytes,
    parse_fraction,
    parse_int,
    parse_lower,
    parse_names,
    parse_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def _decode_stats_mode(text: str) -> StatsMode:
    try:
        return StatsMode.parse(text)
    except InvalidOptionError as error:
        raise ValueError("none, counts, full or truncate(n)") from error


def _encode_stats_mode(mode: StatsMode) -> str:
    return f"truncate({mode.length})" if mode.kind is StatsKind.TRUNCATE else mode.kind.value


def _decode_prefix(text: str) -> str:
    if not _is_file_name(f"{text}-"):
        raise ValueError("a text without slashes and control characters: it becomes part of file names")
    return text


def _decode_directory(text: str) -> str:
    path = text.rstrip("/")
    if path and not all(map(_is_file_name, path.split("/"))):
        raise ValueError("a directory below the table's, such as 'data' or 'a/b', without '.' and '..'")
    return path


def _is_file_name(text: str) -> bool:
    try:
        check_file_name(text)
    except ValueError:
        return False
    return True


_FILE_PREFIX: Final = ValueKind("text", _decode_prefix)
_DIRECTORY: Final = ValueKind("text", _decode_directory)
_STATS_MODE: Final = ValueKind("none, counts, full or truncate(n)", _decode_stats_mode, _encode_stats_mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOptions(OptionGroup):
    """Names and directories of data files.

    Attributes:
        data_directory: sub-directory of the table's location for data files, above the partitions; None for none.
        external_paths: directories outside of the table that may contain its data files; Penstock never writes there.
    """

    table_type: str = option("type", parse_lower, "table", "kind of table; only 'table' is opened")
    branch: str = option("branch", parse_text, "main", "branch to read and write, given per use", honoured=False)
    data_file_prefix: str = option("data-file.prefix", _FILE_PREFIX, "data-", "first part of the names of data files")
    data_directory: str | None = option(
        "data-file.path-directory", _DIRECTORY, None, "sub-directory for data, before the partitions"
    )
    suffix_includes_compression: bool = option(
        "file.suffix.include.compression", parse_bool, False, "include the codec in the names of data files"
    )
    default_partition_name: str = option(
        "partition.default-name", parse_text, "__DEFAULT_PARTITION__", "directory of a null or blank partition value"
    )
    legacy_partition_name: bool = option(
        "partition.legacy-name", parse_bool, True, "write dates in directory names as days since 1970-01-01"
    )
    external_paths: tuple[str, ...] = option(
        "data-file.external-paths",
        parse_names,
        (),
        "directories outside the table for data files; read if the user allows it, never written to",
        honoured=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOptions(OptionGroup):
    """How rows are distributed over buckets.

    Attributes:
        bucket: number of buckets; -1 for a scalable table.
        bucket_key: columns in the order of the option, with blanks kept.
        is_append_ordered: whether each bucket keeps the order of writes, as a queue does.
    """

    bucket: int = option("bucket", parse_int, -1, "number of buckets; -1 for a scalable table")
    bucket_key: tuple[str, ...] = option("bucket-key", parse_names, (), "columns whose hash gives the bucket of a row")
    bucket_function: BucketFunction = option(
        "bucket-function.type", BucketFunction, BucketFunction.DEFAULT, "function that computes the bucket from the key"
    )
    is_append_ordered: bool = option(
        "bucket-append-ordered", parse_bool, True, "keep the order of writes in each bucket"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions(OptionGroup):
    """How data files are encoded.

    Attributes:
        compression: codec in lower case, with the name that the file format uses.
        block_bytes: size of a Parquet row group or ORC stripe; None for the default of the format.
        parquet: pairs of the key after ``parquet.`` and its text; likewise ``orc`` and ``avro``.
    """

    file_format: FileFormat = option("file.format", FileFormat, FileFormat.PARQUET, "format of new data files")
    compression: str = option("file.compression", parse_lower, "zstd", "codec of new data files")
    compression_zstd_level: int = option(
        "file.compression.zstd-level", parse_int, 1, "zstd level of data files and manifests"
    )
    block_bytes: int | None = option(
        "file.block-size", at_least(1, parse_bytes), None, "size of a Parquet row group or ORC stripe"
    )
    read_batch_rows: int = option(
        "read.batch-size", at_least(1, parse_int), 1024, "rows of a batch while reading", honoured=False
    )
    write_batch_rows: int = option(
        "write.batch-size",
        at_least(1, parse_int),
        1024,
        "rows of a batch while writing",
        ("orc.write.batch-size",),
        honoured=False,
    )
    write_batch_bytes: int = option(
        "write.batch-memory", at_least(1, parse_bytes), 128 * MIB, "memory of a batch while writing", honoured=False
    )
    parquet: tuple[tuple[str, str], ...] = family("parquet.", "", parse_text, "passed to the Parquet writer")
    orc: tuple[tuple[str, str], ...] = family("orc.", "", parse_text, "passed to the ORC writer")
    avro: tuple[tuple[str, str], ...] = family("avro.", "", parse_text, "passed to the Avro writer")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndexOptions(OptionGroup):
    """Which columns of new data files are indexed, and how; the settings are pairs of column and value."""

    in_manifest_bytes: int = option(
        "file-index.in-manifest-threshold", parse_bytes, 500, "largest index that the manifest contains"
    )
    bloom_columns: tuple[str, ...] = option(
        "file-index.bloom-filter.columns", parse_names, (), "columns with a Bloom filter for each file"
    )
    bitmap_columns: tuple[str, ...] = option(
        "file-index.bitmap.columns", parse_names, (), "columns with a bitmap of each value for each file"
    )
    range_bitmap_columns: tuple[str, ...] = option(
        "file-index.range-bitmap.columns", parse_names, (), "columns with sorted values and their rows for each file"
    )
    bloom_items: tuple[tuple[str, int], ...] = family(
        "file-index.bloom-filter.", ".items", at_least(1, parse_int), "expected values of a column in a file"
    )
    bloom_false_positives: tuple[tuple[str, float], ...] = family(
        "file-index.bloom-filter.", ".fpp", parse_fraction, "rate at which values that are not in the file are found"
    )
    bitmap_version: tuple[tuple[str, int], ...] = family(
        "file-index.bitmap.", ".version", parse_int, "version of the format, 1 or 2"
    )
    bitmap_block_bytes: tuple[tuple[str, int], ...] = family(
        "file-index.bitmap.", ".index-block-size", parse_bytes, "size of a block of values"
    )
    range_bitmap_chunk_bytes: tuple[tuple[str, int], ...] = family(
        "file-index.range-bitmap.", ".chunk-size", parse_bytes, "size of a part of the sorted values"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions(OptionGroup):
    """Which column statistics manifests contain.

    Attributes:
        keep_first_columns: only this many first columns have statistics; -1 for no limit.
        column_modes: pairs of column and mode; they take precedence.
    """

    mode: StatsMode = option("metadata.stats-mode", _STATS_MODE, DEFAULT_STATS_MODE, "statistics of each column")
    dense_store: bool = option("metadata.stats-dense-store", parse_bool, True, "leave out columns without statistics")
    keep_first_columns: int = option(
        "metadata.stats-keep-first-n-columns", at_least(-1, parse_int), -1, "columns that have statistics; -1 for all"
    )
    column_modes: tuple[tuple[str, StatsMode], ...] = family(
        "fields.", ".stats-mode", _STATS_MODE, "statistics of one column"
    )

    def modes(self, names: Sequence[str]) -> tuple[StatsMode, ...]:
        """Return the mode of each column, in the order of the table's columns."""
        return choose_modes(names, self.mode, dict(self.column_modes), self.keep_first_columns)
