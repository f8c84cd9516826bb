"""Merge Parquet files by copying their row groups undecoded, where these are large and nothing in them changes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from penstock.datafile.data_format import WrittenFile
from penstock.datafile.parquet.concatenate import concatenate, load_footer
from penstock.datafile.parquet.schema import is_int96_type, leaves_of
from penstock.datafile.streams import writing
from penstock.errors import FormatError, NotFoundError
from penstock.format.layout import FileFormat, format_of
from penstock.format.manifest.stats import ColumnStats, StatsKind, decode_stats
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.metrics import ROWS
from penstock.options import CompactOptions
from penstock.options.group import MAX_LONG
from penstock.table.row_tracking import has_ids
from penstock.table.write.rolling import describe_file, file_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.datafile.parquet.concatenate import Footer
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.stats import StatsMode
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataType
    from penstock.table.compact.task import CompactTask
    from penstock.table.store import MetadataStore
    from penstock.table.write.rolling import FileTarget

# With files of 1 MB and row groups of 25,000 rows, a scan of two columns of the result took 1.4 times as long.
_MIN_FILE_BYTES: Final = 8 * 1024 * 1024
_MIN_GROUP_ROWS: Final = 65_536
_MIN_GROUP_BYTES: Final = 8 * 1024 * 1024
# Of all files of a task. Decoded, a footer takes up to fifty times as much memory.
_MAX_FOOTER_BYTES: Final = 2 * 1024 * 1024
# Files of such columns with values may lack a range: binary values have none, and numbers with NaN.
_WITHOUT_RANGE: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.FLOAT, TypeRoot.DOUBLE})


def copy_row_groups(
    task: CompactTask, schema: TableSchema, store: MetadataStore, target: FileTarget
) -> tuple[DataFileMeta, ...] | None:
    """Write the row groups of a task's files to new files.

    Args:
        schema: of the table, as it is stored.

    Returns:
        The new files, each of at least the target size but the last; None if the rows must be decoded.
    """
    try:
        footers = _load_footers(task, schema, store, target)
        return None if footers is None else _write_copies(task, schema, footers, target)
    except (FormatError, NotFoundError):
        return None  # of a damaged or lost file, or of damaged statistics; decoding says what is wrong, if it matters


def _write_copies(
    task: CompactTask, schema: TableSchema, footers: Sequence[Footer], target: FileTarget
) -> tuple[DataFileMeta, ...] | None:
    ref = target.ref
    parts = [
        (first, stop, _merge_stats(task.files[first:stop], schema, target)) for first, stop in _parts(task, target)
    ]
    names = file_names(target)
    directory = target.locator.directory(task.partition, task.bucket)
    outputs: list[DataFileMeta] = []
    with ExitStack() as on_error:
        for first, stop, stats in parts:
            if stats is None:
                return None
            path = f"{directory}/{(name := next(names))}"
            on_error.callback(ref.file_io.delete, path)
            rows = sum(file.row_count for file in task.files[first:stop])
            with writing(path), ref.file_io.open_output(path) as output:
                size = concatenate(ref.file_io, footers[first:stop], output)
            written = WrittenFile(file_size=size, row_count=rows, columns=stats)
            outputs.append(describe_file(target, name, written, first_row=sum(each.row_count for each in outputs)))
            if ROWS.location is not None:
                ROWS.add(ref.location, read=rows)
        on_error.pop_all()
    return tuple(outputs)


def _load_footers(
    task: CompactTask, schema: TableSchema, store: MetadataStore, target: FileTarget
) -> tuple[Footer, ...] | None:
    """Return the footers of a task's files if copying gives what decoding would; None if not."""
    files = task.files
    if not _has_defaults(target) or task.vectors or len(files) < 2 or not all(map(_is_plain, files)):
        return None
    older = {file.schema_id for file in files} - {schema.id}
    if any(store.load_schema(number).fields != schema.fields for number in older):
        return None
    columns = [leaf.path for leaf in leaves_of(schema.fields)]
    footers: list[Footer] = []
    left, shared = _MAX_FOOTER_BYTES, b""
    for file in files:
        path = target.locator.path(task.partition, task.bucket, file)
        footer = load_footer(target.ref.file_io, path, max_bytes=left)
        shared = shared or footer.shared_part()
        has_large_groups = (
            file.row_count >= footer.group_count * _MIN_GROUP_ROWS
            or file.file_size >= footer.group_count * _MIN_GROUP_BYTES
        )
        is_plain = footer.is_plain(columns, target.format.compression, file.row_count)
        if not has_large_groups or not is_plain or footer.shared_part() != shared:
            return None
        left -= footer.encoded_bytes
        footers.append(footer)
    return tuple(footers)


def _has_defaults(target: FileTarget) -> bool:
    """Whether no option but the codec says how files are written, or their exact number of rows or indexes."""
    options = target.format
    is_encoded_so = options.block_bytes is None and not options.parquet and options.compression_zstd_level == 1
    is_parquet = options.file_format is FileFormat.PARQUET
    if target.ref.parsed(CompactOptions).force_rewrite_all_files or target.indexes is not None:
        return False
    return is_parquet and is_encoded_so and target.target_file_rows == MAX_LONG and not target.is_tracked


def _is_plain(file: DataFileMeta) -> bool:
    """Whether a file is of Parquet, large, and has all columns and no ids of rows."""
    is_parquet = format_of(file.file_name) is FileFormat.PARQUET
    return is_parquet and file.file_size >= _MIN_FILE_BYTES and file.write_cols is None and not has_ids(file)


def _parts(task: CompactTask, target: FileTarget) -> Iterator[tuple[int, int]]:
    """Yield the ranges of files that make one file each, of at least the target size but the last."""
    first = size = 0
    for place, file in enumerate(task.files):
        size += file.file_size
        if size >= target.target_file_bytes or place + 1 == len(task.files):
            yield first, place + 1
            first, size = place + 1, 0


def _merge_stats(
    files: Sequence[DataFileMeta], schema: TableSchema, target: FileTarget
) -> tuple[ColumnStats, ...] | None:
    """Return statistics of the rows of all files by those of each in its manifest entry; None if some are missing."""
    known = [decode_stats(file.value_stats, file.value_stats_cols, schema.fields) for file in files]
    rows = [file.row_count for file in files]
    merged = []
    for field, mode in zip(schema.fields, target.stats_modes, strict=True):
        stats = [each.get(field.name, ColumnStats()) for each in known]
        if any(_lacks_some(each, count, field.type, mode) for each, count in zip(stats, rows, strict=True)):
            return None
        merged.append(_merge(stats, rows))
    return tuple(merged)


def _lacks_some(stats: ColumnStats, row_count: int, data_type: DataType, mode: StatsMode) -> bool:
    """Whether statistics of a file lack what an encoded file would have by the options of the table."""
    if mode.kind is StatsKind.NONE or not isinstance(data_type, AtomicType) or data_type.root is TypeRoot.VARIANT:
        return False
    if stats.null_count is None:
        return True
    is_ranged = mode.kind is not StatsKind.COUNTS and data_type.root not in _WITHOUT_RANGE
    has_range = stats.min is not None and stats.max is not None
    return is_ranged and not is_int96_type(data_type) and not has_range and stats.null_count != row_count


def _merge(stats: Sequence[ColumnStats], rows: Sequence[int]) -> ColumnStats:
    counts = [each.null_count for each in stats if each.null_count is not None]
    null_count = sum(counts) if len(counts) == len(stats) else None
    with_values = [each for each, count in zip(stats, rows, strict=True) if each.null_count != count]
    bounds: list[Any] = [bound for each in with_values for bound in (each.min, each.max)]
    if not bounds or any(bound is None or bound != bound for bound in bounds):  # noqa: PLR0124 - NaN is not itself
        return ColumnStats(null_count=null_count)
    if isinstance(bounds[0], float):  # a bound of 0 includes both zeros
        return ColumnStats(min=min(bounds) or -0.0, max=max(bounds) or 0.0, null_count=null_count)
    return ColumnStats(min=min(bounds), max=max(bounds), null_count=null_count)
