"""The indexes of a new data file, built from its rows while they are written (design/0103).

Source:
    Paimon ``core:io/DataFileIndexWriter.java``, ``api:fileindex/FileIndexOptions.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.file_index import BITMAP, BLOOM_FILTER, RANGE_BITMAP
from penstock.format.file_index_writer import (
    BloomFilter,
    Texts,
    bloom_bits,
    describe_numbers,
    describe_texts,
    encode_bitmap_index,
    encode_file_index,
    encode_range_bitmap,
    hash_integers,
    hash_texts,
)
from penstock.format.layout import FILE_INDEX_SUFFIX
from penstock.format.types.data_types import INTEGERS, AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type
from penstock.options import FileIndexOptions
from penstock.options.group import KIB, MAX_INT
from penstock.printable import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BYTES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
_NUMBERS: Final = frozenset(
    {*INTEGERS, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DATE, TypeRoot.TIME}
    | {TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ}
)
_TYPES: Final = {
    BLOOM_FILTER: _TEXTS | _BYTES | _NUMBERS,
    BITMAP: _TEXTS | _NUMBERS | {TypeRoot.BOOLEAN},
    RANGE_BITMAP: _TEXTS | _NUMBERS | {TypeRoot.BOOLEAN, TypeRoot.DECIMAL},
}
_UNCHUNKED: Final = frozenset({TypeRoot.BOOLEAN, TypeRoot.TINYINT, TypeRoot.SMALLINT})
# The values of a range bitmap have 64 bits.
_MOST_DIGITS: Final = {TypeRoot.DECIMAL: 18, TypeRoot.TIMESTAMP: 6, TypeRoot.TIMESTAMP_LTZ: 6}
_NANOS_PER_MICRO: Final = 1_000
_DEFAULT_ITEMS: Final = 1_000_000
_DEFAULT_FALSE_POSITIVES: Final = 0.1
_VERSIONS: Final = (1, 2)
_Settings: TypeAlias = "dict[str, tuple[tuple[str, object], ...]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumn:
    """One index of each new data file.

    Attributes:
        kind: ``bloom-filter``, ``bitmap`` or ``range-bitmap``.
        name: of the column in the file.
        items: of a Bloom filter; likewise ``false_positives``.
        version: of a bitmap; likewise ``block_bytes``.
        chunk_bytes: of a range bitmap; None for what its type has by default.
    """

    kind: str
    name: str
    type: AtomicType
    items: int = _DEFAULT_ITEMS
    false_positives: float = _DEFAULT_FALSE_POSITIVES
    version: int = _VERSIONS[-1]
    block_bytes: int = 16 * KIB
    chunk_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """The indexes of new data files.

    Attributes:
        in_manifest_bytes: largest index that is in the manifest entry of its file.
    """

    columns: tuple[IndexedColumn, ...]
    in_manifest_bytes: int

    @property
    def bloom_bytes(self) -> int:
        """Memory for the Bloom filters of an open file."""
        blooms = (each for each in self.columns if each.kind == BLOOM_FILTER)
        return sum(bloom_bits(each.items, each.false_positives) // 8 for each in blooms)


def plan_indexes(ref: TableRef, schema: TableSchema | None = None) -> IndexPlan | None:
    """Return the indexes that the options of a table ask for; None if they ask for none.

    Args:
        schema: of a file that exists, in which columns may have other names; a column that it lacks, or that has a
            type there of which there is no index, has none.

    Raises:
        InvalidOptionError: an option names no column, or is not valid.
        UnsupportedFeatureError: an index cannot have the type of its column.
    """
    options = ref.parsed(FileIndexOptions)
    columns = index_columns(options, ref.schema.fields, ref.name)
    if schema is not None:
        by_id = {field.id: field for field in schema.fields}
        stored = {field.name: by_id.get(field.id) for field in ref.schema.fields}
        columns = tuple(
            replace(column, name=field.name, type=field.type)
            for column in columns
            for field in (stored[column.name],)
            if field is not None and isinstance(field.type, AtomicType) and _is_of_kind(column.kind, field.type)
        )
    return IndexPlan(columns=columns, in_manifest_bytes=options.in_manifest_bytes) if columns else None


def index_columns(options: FileIndexOptions, fields: Sequence[DataField], table: str) -> tuple[IndexedColumn, ...]:
    """Return the indexes that options ask for.

    Args:
        fields: the columns of the table.
        table: its name, for messages.

    Raises:
        InvalidOptionError, UnsupportedFeatureError: as ``plan_indexes``.
    """
    by_name = {field.name: field for field in fields}
    bloom: _Settings = {"items": options.bloom_items, "false_positives": options.bloom_false_positives}
    bitmap: _Settings = {"version": options.bitmap_version, "block_bytes": options.bitmap_block_bytes}
    range_bitmap: _Settings = {"chunk_bytes": options.range_bitmap_chunk_bytes}
    columns: list[IndexedColumn] = []
    for kind, texts, settings in (
        (BLOOM_FILTER, options.bloom_columns, bloom),
        (BITMAP, options.bitmap_columns, bitmap),
        (RANGE_BITMAP, options.range_bitmap_columns, range_bitmap),
    ):
        names = tuple(dict.fromkeys(text.strip() for text in texts))
        for key, pairs in settings.items():
            # The reference ignores keys with more parts, so columns with a point in their names have the defaults.
            settings[key] = tuple(pair for pair in pairs if "." not in pair[0])
            _check_declared(kind, names, settings[key], key, table)
        for name in names:
            if name in by_name:
                chosen = {key: dict(pairs)[name] for key, pairs in settings.items() if name in dict(pairs)}
                columns.append(_indexed_column(kind, by_name[name], chosen, table))
            elif name.endswith("]"):
                _warn_of_key(table, kind, name)
            else:
                raise InvalidOptionError(
                    f"table {table}: option 'file-index.{kind}.columns' names column '{name}', which is not there; "
                    f"name columns of {', '.join(by_name)}, separated by commas"
                )
    return tuple(columns)


def _check_declared(kind: str, names: Sequence[str], pairs: Sequence[tuple[str, object]], key: str, table: str) -> None:
    for name, _ in pairs:
        if name not in names and not any(each.startswith(f"{name}[") for each in names):
            raise InvalidOptionError(
                f"table {table}: 'file-index.{kind}.{name}.*' sets {key.replace('_', ' ')} of an index that the table "
                f"does not have: add the column to 'file-index.{kind}.columns', or remove the option"
            )


def _is_of_kind(kind: str, data_type: AtomicType) -> bool:
    """Whether an index of a kind has values of a type."""
    digits = _MOST_DIGITS.get(data_type.root) if kind == RANGE_BITMAP else None
    return data_type.root in _TYPES[kind] and (digits is None or (data_type.precision or 0) <= digits)


def _indexed_column(kind: str, field: DataField, chosen: Mapping[str, Any], table: str) -> IndexedColumn:
    if not isinstance(field.type, AtomicType) or not _is_of_kind(kind, field.type):
        raise UnsupportedFeatureError(
            f"table {table}: column '{field.name}' has the type {format_sql_type(field.type)}, of which an index of "
            f"kind {kind} has no values: remove it from 'file-index.{kind}.columns'"
        )
    column = IndexedColumn(kind=kind, name=field.name, type=field.type, **chosen)
    if column.version not in _VERSIONS:
        raise InvalidOptionError(
            f"table {table}: 'file-index.bitmap.{field.name}.version' = '{column.version}': expected 1 or 2"
        )
    if bloom_bits(column.items, column.false_positives) > MAX_INT:
        raise InvalidOptionError(
            f"table {table}: the Bloom filter of column '{field.name}' for {column.items} values would have more "
            "than 256 MB: choose fewer 'items' or a larger 'fpp'"
        )
    return column


@lru_cache(maxsize=256)
def _warn_of_key(table: str, kind: str, name: str) -> None:
    _LOG.warning("table %s: files have no index of kind %s of %s: keys of maps are not indexed", table, kind, name)


class FileIndexWriter:
    """Collects the indexes of one data file."""

    def __init__(self, plan: IndexPlan) -> None:
        self._plan = plan
        self._builders = [(column, _BUILDERS[column.kind](column)) for column in plan.columns]

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the next rows of the file; the batch has the columns at least."""
        for column, builder in self._builders:
            builder.add(batch.column(column.name))

    def encode(self, others: Mapping[tuple[str, str], bytes] = MappingProxyType({})) -> bytes:
        """Return the indexes of all rows, with others by kind and column."""
        own = {(column.kind, column.name): builder.encode() for column, builder in self._builders}
        return encode_file_index({**own, **others})


class _Builder(Protocol):
    def add(self, values: ArrowAny) -> None: ...

    def encode(self) -> bytes: ...


class _BloomBuilder:
    def __init__(self, column: IndexedColumn) -> None:
        self._type = column.type
        self._filter = BloomFilter(column.items, column.false_positives)

    def add(self, values: ArrowAny) -> None:
        present = _stored_values(values.drop_null(), self._type)
        self._filter.add(
            hash_integers(present.to_numpy()) if pa.types.is_int64(present.type) else hash_texts(_texts(present))
        )

    def encode(self) -> bytes:
        return self._filter.encode()


class _BitmapBuilder:
    """Keeps four bytes a row, and the different values of each batch."""

    def __init__(self, column: IndexedColumn) -> None:
        self._column = column
        self._chunks: list[ArrowAny] = []

    def add(self, values: ArrowAny) -> None:
        self._chunks.append(_stored_values(values, self._column.type).dictionary_encode())

    def encode(self) -> bytes:
        joined: ArrowAny = pa.chunked_array(self._chunks).unify_dictionaries()
        codes = pa.concat_arrays([chunk.indices for chunk in joined.chunks]).fill_null(-1).to_numpy()
        different = joined.chunk(0).dictionary
        root = self._column.type.root
        are_texts = not pa.types.is_int64(different.type)
        values = describe_texts(_texts(different)) if are_texts else describe_numbers(different.to_numpy(), root)
        if self._column.kind == RANGE_BITMAP:
            chunk_bytes = self._column.chunk_bytes
            if chunk_bytes is None:
                chunk_bytes = 0 if root in _UNCHUNKED else 16 * KIB
            return encode_range_bitmap(codes, values, chunk_bytes=chunk_bytes, are_texts=are_texts)
        return encode_bitmap_index(codes, values, version=self._column.version, block_bytes=self._column.block_bytes)


_BUILDERS: Final[Mapping[str, Callable[[IndexedColumn], _Builder]]] = {
    BLOOM_FILTER: _BloomBuilder,
    BITMAP: _BitmapBuilder,
    RANGE_BITMAP: _BitmapBuilder,
}


def _stored_values(values: ArrowAny, data_type: AtomicType) -> ArrowAny:
    """Return values as an index has them: binary, or integers of 64 bits; of floating-point numbers, their bits."""
    match data_type.root:
        case TypeRoot.CHAR | TypeRoot.VARCHAR | TypeRoot.BINARY | TypeRoot.VARBINARY:
            return values.cast(pa.binary())
        case TypeRoot.FLOAT | TypeRoot.DOUBLE:
            # Java has one NaN.
            numbers = np.array(values.fill_null(0).to_numpy(zero_copy_only=False))
            numbers[np.isnan(numbers)] = np.nan
            numbers = numbers.view(f"i{values.type.bit_width // 8}").astype(np.int64)
        case TypeRoot.DECIMAL:
            # The lower one of two words is first.
            words = np.frombuffer(values.buffers()[1] or b"", np.int64)
            numbers = words[2 * values.offset :: 2][: len(values)]
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ if values.type.unit == "ns":
            numbers = values.fill_null(0).cast(pa.int64()).to_numpy() // _NANOS_PER_MICRO
        case TypeRoot.BOOLEAN | TypeRoot.DATE | TypeRoot.TIME as root:
            return values.cast(pa.int8() if root is TypeRoot.BOOLEAN else pa.int32()).cast(pa.int64())
        case _:
            return values.cast(pa.int64())
    return pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))


def _texts(values: ArrowAny) -> Texts:
    """Return binary values without nulls."""
    _, offsets, data = values.buffers()
    found = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return Texts(found, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8))


def with_index(meta: DataFileMeta, data: bytes, plan: IndexPlan) -> DataFileMeta:
    """Return the metadata of a new file with its index, or with the name of its index file."""
    if len(data) <= plan.in_manifest_bytes:
        return replace(meta, embedded_file_index=data)
    return replace(meta, extra_files=(*meta.extra_files, meta.file_name + FILE_INDEX_SUFFIX))
