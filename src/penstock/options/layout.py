"""Options for the location and the encoding of files.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md section 8.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from penstock.errors import InvalidOptionError
from penstock.format.layout import FileFormat
from penstock.format.manifest.stats import DEFAULT_STATS_MODE, StatsKind, StatsMode, choose_modes
from penstock.format.row.bucket import BucketFunction
from penstock.format.text.names import check_file_name
from penstock.options.group import Family, Key, OptionGroup
from penstock.options.values import (
    MIB,
    ValueKind,
    at_least,
    parse_bool,
    parse_bytes,
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

    table_type: Annotated[str, Key("type", parse_lower, "kind of table; only 'table' is opened", honoured=True)] = (
        "table"
    )
    branch: Annotated[str, Key("branch", parse_text, "branch to read and write, given per use")] = "main"
    data_file_prefix: Annotated[
        str, Key("data-file.prefix", _FILE_PREFIX, "first part of the names of data files", honoured=True)
    ] = "data-"
    data_directory: Annotated[
        str | None,
        Key("data-file.path-directory", _DIRECTORY, "sub-directory for data, before the partitions", honoured=True),
    ] = None
    suffix_includes_compression: Annotated[
        bool,
        Key(
            "file.suffix.include.compression", parse_bool, "include the codec in the names of data files", honoured=True
        ),
    ] = False
    default_partition_name: Annotated[
        str, Key("partition.default-name", parse_text, "directory of a null or blank partition value", honoured=True)
    ] = "__DEFAULT_PARTITION__"
    legacy_partition_name: Annotated[
        bool,
        Key(
            "partition.legacy-name",
            parse_bool,
            "write dates in directory names as days since 1970-01-01",
            honoured=True,
        ),
    ] = True
    external_paths: Annotated[
        tuple[str, ...],
        Key(
            "data-file.external-paths",
            parse_names,
            "directories outside the table for data files; read if the user allows it, never written to",
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOptions(OptionGroup):
    """How rows are distributed over buckets.

    Attributes:
        bucket: number of buckets; -1 for a scalable table.
        bucket_key: columns in the order of the option, with blanks kept.
        is_append_ordered: whether each bucket keeps the order of writes, as a queue does.
    """

    bucket: Annotated[int, Key("bucket", parse_int, "number of buckets; -1 for a scalable table", honoured=True)] = -1
    bucket_key: Annotated[
        tuple[str, ...], Key("bucket-key", parse_names, "columns whose hash gives the bucket of a row", honoured=True)
    ] = ()
    bucket_function: Annotated[
        BucketFunction,
        Key("bucket-function.type", BucketFunction, "function that computes the bucket from the key", honoured=True),
    ] = BucketFunction.DEFAULT
    is_append_ordered: Annotated[
        bool, Key("bucket-append-ordered", parse_bool, "keep the order of writes in each bucket", honoured=True)
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions(OptionGroup):
    """How data files are encoded.

    Attributes:
        compression: codec in lower case, with the name that the file format uses.
        block_bytes: size of a Parquet row group or ORC stripe; None for the default of the format.
        parquet: pairs of the key after ``parquet.`` and its text; likewise ``orc`` and ``avro``.
    """

    file_format: Annotated[FileFormat, Key("file.format", FileFormat, "format of new data files", honoured=True)] = (
        FileFormat.PARQUET
    )
    compression: Annotated[str, Key("file.compression", parse_lower, "codec of new data files", honoured=True)] = "zstd"
    compression_zstd_level: Annotated[
        int, Key("file.compression.zstd-level", parse_int, "zstd level of data files and manifests", honoured=True)
    ] = 1
    block_bytes: Annotated[
        int | None,
        Key("file.block-size", at_least(1, parse_bytes), "size of a Parquet row group or ORC stripe", honoured=True),
    ] = None
    read_batch_rows: Annotated[int, Key("read.batch-size", at_least(1, parse_int), "rows of a batch while reading")] = (
        1024
    )
    write_batch_rows: Annotated[
        int,
        Key("write.batch-size", at_least(1, parse_int), "rows of a batch while writing", ("orc.write.batch-size",)),
    ] = 1024
    write_batch_bytes: Annotated[
        int, Key("write.batch-memory", at_least(1, parse_bytes), "memory of a batch while writing")
    ] = 128 * MIB
    parquet: Annotated[
        tuple[tuple[str, str], ...], Family("parquet.", "", parse_text, "passed to the Parquet writer", honoured=True)
    ] = ()
    orc: Annotated[
        tuple[tuple[str, str], ...], Family("orc.", "", parse_text, "passed to the ORC writer", honoured=True)
    ] = ()
    avro: Annotated[
        tuple[tuple[str, str], ...], Family("avro.", "", parse_text, "passed to the Avro writer", honoured=True)
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions(OptionGroup):
    """Which column statistics manifests contain.

    Attributes:
        keep_first_columns: only this many first columns have statistics; -1 for no limit.
        column_modes: pairs of column and mode; they take precedence.
    """

    mode: Annotated[StatsMode, Key("metadata.stats-mode", _STATS_MODE, "statistics of each column", honoured=True)] = (
        DEFAULT_STATS_MODE
    )
    dense_store: Annotated[
        bool, Key("metadata.stats-dense-store", parse_bool, "leave out columns without statistics", honoured=True)
    ] = True
    keep_first_columns: Annotated[
        int,
        Key(
            "metadata.stats-keep-first-n-columns",
            at_least(-1, parse_int),
            "columns that have statistics; -1 for all",
            honoured=True,
        ),
    ] = -1
    column_modes: Annotated[
        tuple[tuple[str, StatsMode], ...],
        Family("fields.", ".stats-mode", _STATS_MODE, "statistics of one column", honoured=True),
    ] = ()

    def modes(self, names: Sequence[str]) -> tuple[StatsMode, ...]:
        """Return the mode of each column, in the order of the table's columns."""
        return choose_modes(names, self.mode, dict(self.column_modes), self.keep_first_columns)
