"""Write Parquet data files.

Source:
    Paimon ``format:parquet/writer/RowDataParquetBuilder.java``; docs/spec/format.md section 8.1.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.datafile.column_stats import holds_nan
from penstock.datafile.conform import convert_leaves, leaf_arrays
from penstock.datafile.data_format import WrittenFile
from penstock.datafile.int96 import carriers_as_int96, encode_int96
from penstock.datafile.parquet.footer import CODECS, FooterSink, drop_ranges
from penstock.datafile.parquet.schema import (
    footer_stats,
    has_required,
    is_int96_type,
    leaves_of,
    to_parquet_schema,
    without_nulls_below_null,
)
from penstock.datafile.streams import writing
from penstock.errors import InvalidOptionError, TableStoreError
from penstock.format.types.data_types import TypeRoot
from penstock.options import parse_bool, parse_bytes
from penstock.options.group import parse_int

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.datafile.conform import Array
    from penstock.datafile.data_format import EncodingChoices
    from penstock.datafile.parquet.schema import Leaf
    from penstock.datafile.thrift import ThriftStruct
    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import AtomicType, DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions

ROW_GROUP_ROWS: Final = 131_072
"""Default maximum of rows in a row group. Rows are buffered up to it: a smaller write would be a smaller row group."""

_MIB: Final = 1024 * 1024
_ROW_GROUP_BYTES: Final = 128 * _MIB
_LEAST_ROW_GROUP_ROWS: Final = 64
_ANY_ROWS: Final = 2**31
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """What all files of the same columns share.

    Attributes:
        float_places: columns whose footer ranges have to be removed if they hold NaN.
        required_places: columns in which NULL may stand where it is not allowed, below a ROW that is NULL.
    """

    leaves: tuple[Leaf, ...]
    schema: pa.Schema
    int96_places: frozenset[int]
    float_places: frozenset[int]
    required_places: tuple[int, ...]


@lru_cache(maxsize=16)
def _layout_of(fields: tuple[DataField, ...]) -> _Layout:
    leaves = leaves_of(fields)
    schema = to_parquet_schema(fields)
    return _Layout(
        leaves=leaves,
        schema=schema,
        int96_places=frozenset(leaf.place for leaf in leaves if leaf.is_int96),
        float_places=frozenset(leaf.place for leaf in leaves if leaf.data_type.root in _FLOATS and not leaf.is_nested),
        required_places=tuple(place for place, field in enumerate(schema) if has_required(field.type)),
    )


class ParquetFileWriter:
    """Buffers batches to row groups; the first row group opens the file, and its values decide on dictionaries."""

    def __init__(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        options: FormatOptions,
        choices: EncodingChoices | None = None,
    ) -> None:
        self._file_io = file_io
        self._path = path
        self._fields = tuple(fields)
        layout = _layout_of(self._fields)
        self._leaves = layout.leaves
        self._schema = layout.schema
        self._int96_places = layout.int96_places
        self._float_places = layout.float_places
        self._required_places = layout.required_places
        self._edits_footer = bool(self._int96_places or self._float_places)
        # Columns whose footer range is unusable; INT96 columns with their null count, which the footer lacks.
        self._unordered: dict[int, int | None] = {
            leaf.place: 0 for leaf in self._leaves if leaf.is_int96 and not leaf.is_nested
        }
        self._options = dict(options.parquet)
        self._choices = {} if choices is None else choices
        self._settings = _writer_settings(options, self._options)
        block_bytes = self._options.get("block.size")
        limit = options.block_bytes if block_bytes is None else parse_bytes(block_bytes)
        self._group_bytes = limit or _ROW_GROUP_BYTES
        self._most_group_rows = _ANY_ROWS if limit else ROW_GROUP_ROWS
        self._batches: list[pa.RecordBatch] = []
        self._buffered_rows = 0
        self._buffered_bytes = 0
        self._flushed_rows = 0
        self._flushed_arrow_bytes = 0
        self._sink: Any = None
        self._target: Any = None
        self._writer: ArrowAny = None
        self._metadata: list[pq.FileMetaData] = []

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes buffered for the current row group."""
        return self._buffered_bytes

    @property
    def bytes_written(self) -> int:
        """Flushed bytes, plus an estimate of the buffered ones by the compression ratio so far."""
        flushed = 0 if self._sink is None else self._sink.tell()
        # A ratio of one half until a row group is written: rolling early is better than files of twice the target size.
        ratio = flushed / self._flushed_arrow_bytes if self._flushed_arrow_bytes else 0.5
        return int(flushed + self._buffered_bytes * ratio)

    def write(self, batch: pa.RecordBatch) -> None:
        """Buffer rows, and write full row groups."""
        if not batch.num_rows:
            return
        self._note_values(batch)
        if self._required_places:
            batch = self._without_nulls_below_null(batch)
        if self._int96_places:
            batch = self._with_carriers(batch)
        self._batches.append(batch)
        self._buffered_rows += batch.num_rows
        self._buffered_bytes += batch.nbytes
        if self._buffered_rows >= self._group_rows():
            self._flush(keep_rest=True)

    def settle(self) -> None:
        """Write a first row group, to learn the compression ratio."""
        if not self._flushed_arrow_bytes:
            self._flush(keep_rest=False)

    def close(self) -> WrittenFile:
        """Write the remaining rows and the footer."""
        if self._writer is None:
            # All values are known before the file is opened, so the footer need not be held back for later ones.
            self._edits_footer = bool(self._footer_changes())
        self._flush(keep_rest=False)
        with writing(self._path):
            if self._writer is None:
                self._open(())
            if self._edits_footer:
                self._sink.expect_footer()
            self._writer.close()
            size = self._sink.finish(self._footer_changes()) if self._edits_footer else self._sink.tell()
            self._target.close()
            columns = footer_stats(self._metadata[0], self._leaves, self._unordered)
        return WrittenFile(file_size=size, row_count=self._flushed_rows, columns=columns)

    def abort(self) -> None:
        """Drop the buffered rows and delete the unfinished file."""
        self._batches.clear()
        self._buffered_rows = self._buffered_bytes = 0
        writer, target = self._writer, self._target
        self._writer = self._target = None
        if target is None:
            return
        # The file is deleted, so a failure to finish it does not matter; if left open, pyarrow's writer would try to
        # finish it at garbage collection.
        # RuntimeError: pyarrow requests the metadata of a file whose footer could not be written.
        with contextlib.suppress(OSError, RuntimeError, pa.ArrowException, TableStoreError):
            if writer is not None:
                writer.close()
        with contextlib.suppress(OSError, pa.ArrowException, TableStoreError):
            target.close()
        self._file_io.delete(self._path)

    def _without_nulls_below_null(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = batch.columns
        for place in self._required_places:
            arrays[place] = without_nulls_below_null(arrays[place])
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _note_values(self, batch: pa.RecordBatch) -> None:
        for place in self._float_places - self._unordered.keys():
            if holds_nan(batch.column(place)):
                self._unordered[place] = None
        for place, null_count in self._unordered.items():
            if null_count is not None:
                self._unordered[place] = null_count + batch.column(place).null_count

    def _footer_changes(self) -> list[Callable[[ThriftStruct], None]]:
        """Return the corrections to statements of pyarrow's footer that readers interpret differently."""
        # pyarrow's ranges exclude NaN. Readers that order NaN above all numbers would skip NaN rows for `f > 5`.
        with_nan = [
            index
            for index, leaf in enumerate(self._leaves)
            if leaf.place in self._float_places and leaf.place in self._unordered
        ]
        changes: list[Callable[[ThriftStruct], None]] = [carriers_as_int96] if self._int96_places else []
        if with_nan:
            changes.append(partial(drop_ranges, columns=with_nan))
        return changes

    def _with_carriers(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = batch.columns
        for place in self._int96_places:
            arrow_type = self._schema.field(place).type
            arrays[place] = convert_leaves(arrays[place], self._fields[place].type, arrow_type, _carry_int96)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _group_rows(self) -> int:
        """Return the number of rows per row group, by the average size of the buffered rows."""
        by_size = self._buffered_rows * self._group_bytes // max(self._buffered_bytes, 1)
        return min(self._most_group_rows, max(by_size, _LEAST_ROW_GROUP_ROWS))

    def _flush(self, *, keep_rest: bool) -> None:
        """Write the buffered rows as row groups; with ``keep_rest`` rows that do not fill a row group stay buffered."""
        if not self._buffered_rows:
            return
        table = pa.Table.from_batches(self._batches)
        group_rows = self._group_rows()
        rows = table.num_rows - (table.num_rows % group_rows if keep_rest else 0)
        written = table.slice(0, rows)
        with writing(self._path):
            if self._writer is None:
                self._open(shared_dictionary_columns(written.slice(0, group_rows), self._leaves, self._choices))
            self._writer.write_table(written, row_group_size=group_rows)
        rest = table.slice(rows)
        self._flushed_rows += rows
        self._flushed_arrow_bytes += self._buffered_bytes - rest.nbytes
        self._batches = rest.to_batches()
        self._buffered_rows, self._buffered_bytes = rest.num_rows, rest.nbytes

    def _open(self, dictionaries: Sequence[str]) -> None:
        self._target = self._file_io.open_output(self._path)
        self._sink = FooterSink(self._target) if self._edits_footer else self._target
        settings: dict[str, Any] = {
            **self._settings,
            "use_dictionary": _enabled_dictionaries(dictionaries, self._leaves, self._options),
        }
        ranged = [leaf.path for leaf in self._leaves if _has_safe_range(leaf)]
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            write_statistics=ranged if len(ranged) < len(self._leaves) else True,
            metadata_collector=self._metadata,
            **settings,
        )


def _has_safe_range(leaf: Leaf) -> bool:
    # The range of a carrier column would be that of its bytes. Nested numbers are not checked for NaN.
    return not leaf.is_int96 and not (leaf.is_nested and leaf.data_type.root in _FLOATS)


def _carry_int96(data_type: AtomicType) -> Callable[[Array], Array] | None:
    return encode_int96 if is_int96_type(data_type) else None


def _enabled_dictionaries(
    earned: Sequence[str], leaves: Sequence[Leaf], options: Mapping[str, str]
) -> list[str] | bool:
    """Return the columns to encode with a dictionary: those worth it, unless options override this."""
    general = options.get("enable.dictionary")
    default = None if general is None else parse_bool(general)
    chosen = []
    for leaf in leaves:
        own = options.get(f"enable.dictionary#{leaf.path}")
        enabled = default if own is None else parse_bool(own)
        if leaf.path in earned if enabled is None else enabled:
            chosen.append(leaf.path)
    return chosen or False


def _writer_settings(options: FormatOptions, own: Mapping[str, str]) -> dict[str, Any]:
    codec = CODECS.get(options.compression)
    if codec is None:
        raise InvalidOptionError(
            f"option 'file.compression' = '{options.compression}': Parquet files are written with one of "
            f"{', '.join(sorted(CODECS))}"
        )
    settings: dict[str, Any] = {
        "version": "1.0",
        "compression": codec.arrow,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "write_time_adjusted_to_utc": True,
    }
    if codec.arrow == "zstd":
        level = own.get("compression.codec.zstd.level")
        settings["compression_level"] = options.compression_zstd_level if level is None else parse_int(level)
    if "page.size" in own:
        settings["data_page_size"] = parse_bytes(own["page.size"])
    if "dictionary.page.size" in own:
        settings["dictionary_pagesize_limit"] = parse_bytes(own["dictionary.page.size"])
    return settings


_SAMPLE_ROWS: Final = 4096
# With more distinct values than a quarter of a row group's rows (four-byte values: an eighth), plain pages were as
# small and faster to write.
_ROWS_PER_VALUE: Final = 4
_ROWS_PER_SMALL_VALUE: Final = 8
_SMALL_BYTES: Final = 4
# pyarrow's limit; beyond it the writer would switch to plain pages within the column.
_MOST_DICTIONARY_BYTES: Final = 1024 * 1024
_ONLY_VALID: Final = pc.CountOptions(mode="only_valid")


# To judge the columns of a larger file takes little of the time of writing it.
_MAX_SHARED_ROWS: Final = 16_384
_FILES_PER_CHOICE: Final = 16


def shared_dictionary_columns(table: pa.Table, leaves: Sequence[Leaf], choices: EncodingChoices) -> Sequence[str]:
    """Return ``dictionary_columns``, for small files judged by one in 16, as those of one partition are alike.

    Only files of about the same number of rows share a choice. Threads may do so, too: two may judge at once.
    """
    if table.num_rows > _MAX_SHARED_ROWS:
        return dictionary_columns(table, leaves)
    size = table.num_rows.bit_length()
    columns, left = choices.get(size, ((), 0))
    if not left:
        columns, left = dictionary_columns(table, leaves), _FILES_PER_CHOICE
    choices[size] = columns, left - 1
    return columns


def dictionary_columns(table: pa.Table, leaves: Sequence[Leaf]) -> list[str]:
    """Return the paths of the physical columns worth a dictionary, judged by a sample of the first row group."""
    return [
        leaf.path
        for leaf, chunks in zip(leaves, _chunks_of_leaves(table), strict=True)
        if not pa.types.is_boolean(chunks[0].type) and _earns_dictionary(chunks)
    ]


def _earns_dictionary(chunks: Sequence[ArrowAny]) -> bool:
    rows = sum(len(chunk) for chunk in chunks)
    sample = _sample(chunks, rows)
    values = len(sample) - sample.null_count
    if not values:
        return False
    distinct = pc.call_function("count_distinct", [sample], _ONLY_VALID).as_py()
    total = _estimate_distinct(distinct, values, max(values, rows * values // len(sample)))
    width = sample.nbytes / values
    rows_per_value = _ROWS_PER_SMALL_VALUE if width <= _SMALL_BYTES else _ROWS_PER_VALUE
    return total * rows_per_value <= rows and total * width <= _MOST_DICTIONARY_BYTES


def _sample(chunks: Sequence[ArrowAny], rows: int) -> ArrowAny:
    """Return a random sample of values from all chunks; in sorted columns, adjacent values would be too similar."""
    if rows <= _SAMPLE_ROWS:
        return pa.chunked_array(chunks)
    picked = np.sort(np.random.default_rng(0).integers(0, rows, _SAMPLE_ROWS))
    starts = np.cumsum([0, *(len(chunk) for chunk in chunks)])
    bounds = np.searchsorted(picked, starts)
    return pa.chunked_array(
        [
            chunk.take(pa.array(picked[low:high] - start))
            for chunk, start, low, high in zip(chunks, starts, bounds, bounds[1:], strict=False)
        ]
    )


def _estimate_distinct(distinct: int, sample: int, rows: int) -> float:
    """Estimate the distinct values of ``rows`` rows from a random sample of ``sample`` rows with ``distinct`` of them.

    Solves ``distinct = n * (1 - exp(-sample / n))``, which holds for values that are about equally frequent.
    """
    if sample >= rows:
        return distinct
    low, high = float(distinct), float(rows)
    for _ in range(30):
        middle = (low + high) / 2
        if middle * -np.expm1(-sample / middle) < distinct:
            low = middle
        else:
            high = middle
    return low


def _chunks_of_leaves(table: pa.Table) -> Iterator[list[ArrowAny]]:
    for column in table.columns:
        yield from leaf_arrays(column.chunks)
