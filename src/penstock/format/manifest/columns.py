"""The entries of a manifest as columns: one numpy array per field that planning needs, and no object per file.

A manifest is kept as its compressed bytes, with 30 to 60 bytes of columns per entry; entries are decoded on demand, by
the decoder of ``files``. That decoder is the reference: a manifest that the columns cannot represent, or that is
damaged, has no columns.

Source:
    As ``files``; design/0093.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.errors import FormatError
from penstock.format.avro.columns import Cursor, Records, discard, step_of
from penstock.format.avro.container import CODEC_ERRORS, AvroCodec, BlockPlace, find_blocks, uncompress
from penstock.format.avro.reader import field_types
from penstock.format.avro.schemas import MANIFEST_SCHEMA
from penstock.format.avro.values import DEFAULT_LIMITS, ITEMS_PER_RECORD, AvroLimits, read_item_count, read_text
from penstock.format.manifest.entry import FileKind, FileSource, ManifestEntry, StatsLayout
from penstock.format.manifest.files import REQUIRED_FILE_FIELDS, decode_entries_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.format.avro.columns import Array, Step
    from penstock.format.avro.schemas import AvroType

    ReadColumn: TypeAlias = Callable[["_Reading"], None]

MIN_RECORDS: Final = 64
"""Manifests with fewer entries are decoded to entries in less time."""

# So that the columns of a group stay in the processor's cache.
_GROUP_RECORDS: Final = 2048
_GROUP_BYTES: Final = 4 << 20
# Writers end a block at 64 KB.
_MAX_BLOCK_BYTES: Final = 16 << 20
_MAX_SCHEMA_CHARACTERS: Final = 20_000
_MAX_NAME_BYTES: Final = 255
_MAX_TEXT_BYTES: Final = 1_024
_ARITY_BYTES: Final = 4
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class _Group(NamedTuple):
    """Blocks that are uncompressed together."""

    first_row: int
    blocks: tuple[BlockPlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestColumns:
    """The entries of one manifest, in file order; the arrays have one value per entry.

    Attributes:
        partitions: distinct serialized partitions, in order of first occurrence.
        partition: indexes into ``partitions``.
        created_millis: 0 if unknown.
        name_hash: of the file's name; the same in every manifest.
        layouts: of statistics; ``layout`` has indexes into it.
        may_have_index: whether the file has an index in its entry, or extra files.
        is_external: whether the file is outside of the table's directory.
        nbytes: about how much memory all of this takes, without ``decoded``.
        encoded: the entries in encoded form, if they were read.
        decoded: all entries, if they were decoded.
        keep: called with all entries after most of them were decoded.
    """

    partitions: tuple[bytes, ...]
    partition: Array
    is_delete: Array
    bucket: Array
    total_buckets: Array
    file_size: Array
    row_count: Array
    schema_id: Array
    created_millis: Array
    name_hash: Array
    layouts: tuple[StatsLayout, ...]
    layout: Array
    may_have_index: Array
    is_external: Array
    level: Array
    nbytes: int
    encoded: EncodedEntries | None = None
    decoded: tuple[ManifestEntry, ...] | None = None
    keep: Callable[[ManifestColumns, tuple[ManifestEntry, ...]], None] | None = None

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.partition)

    def entries(self, rows: Array | None = None) -> list[ManifestEntry]:
        """Decode some entries.

        Args:
            rows: ascending; None for all.
        """
        decoded, count = self.decoded, len(self) if rows is None else len(rows)
        if decoded is None and self.encoded is not None:
            if 2 * count < len(self):
                return list(self.encoded.entries(np.arange(len(self)) if rows is None else rows))
            decoded = tuple(self.encoded.entries(np.arange(len(self))))
            if self.keep is not None:
                self.keep(self, decoded)
        decoded = decoded or ()
        return list(decoded) if rows is None else [decoded[row] for row in rows.tolist()]

    def names(self, rows: Array) -> Array:
        """Return the names of some files, as bytes; ``rows`` are ascending."""
        if self.encoded is None:
            return np.array([entry.file.file_name.encode() for entry in self.entries(rows)], bytes)
        return np.concatenate([np.zeros(0, "S1"), *self.encoded.names(rows)])

    def of_partitions(self, keep: Callable[[bytes], bool]) -> Array:
        """Return the numbers of the entries of some partitions; ``keep`` is called once for each."""
        kept = np.array([keep(each) for each in self.partitions], bool)
        return np.flatnonzero(kept[self.partition])

    def statistics(self, rows: Array) -> Iterator[tuple[Array, Cursor]]:
        """Yield some of the entries, and a cursor at their ``_VALUE_STATS``; nothing if they are not in encoded form.

        Args:
            rows: ascending.
        """
        if self.encoded is not None:
            yield from self.encoded.statistics(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedEntries:
    """The compressed bytes of a manifest, and where its entries are in them.

    Attributes:
        starts: of the entries, in the uncompressed bytes of their group.
        stats_starts: of their ``_VALUE_STATS``, likewise.
    """

    data: bytes
    path: str
    schema: str
    codec: AvroCodec
    limits: AvroLimits
    groups: tuple[_Group, ...]
    starts: Array
    stats_starts: Array

    def entries(self, rows: Array) -> Iterator[ManifestEntry]:
        """Decode some entries; ``rows`` are ascending."""
        for group, part in self._by_group(rows):
            starts = self.starts[part].tolist()
            # Blocks without any of the entries are not uncompressed.
            offset, at = 0, 0
            for place in group.blocks:
                payload = self._uncompress(place) if at < len(starts) else b""
                first = at
                while at < len(starts) and starts[at] < offset + len(payload):
                    at += 1
                positions = [start - offset for start in starts[first:at]]
                yield from decode_entries_at(payload, positions, self.schema, self.path, self.limits)
                offset += len(payload)

    def statistics(self, rows: Array) -> Iterator[tuple[Array, Cursor]]:
        """Yield as ``ManifestColumns.statistics``."""
        for group, part in self._by_group(rows):
            records = Records(map(self._uncompress, group.blocks))
            yield part, Cursor(records, self.stats_starts[part].astype(np.int64))

    def names(self, rows: Array) -> Iterator[Array]:
        """Yield the names of some files, as bytes."""
        for group, part in self._by_group(rows):
            cursor = Cursor(Records(map(self._uncompress, group.blocks)), self.starts[part].astype(np.int64))
            for step in takewhile(lambda step: step is not _read_name, _steps_of(self.schema) or ()):
                step(_Reading(cursor))
            texts, _ = _name_rows(cursor)
            yield np.ascontiguousarray(texts).view(f"S{texts.shape[1]}")[:, 0]

    def _by_group(self, rows: Array) -> Iterator[tuple[_Group, Array]]:
        ends = np.searchsorted(rows, [*(group.first_row for group in self.groups[1:]), len(self.starts)])
        for group, (first, end) in zip(self.groups, pairwise([0, *ends.tolist()]), strict=True):
            if end > first:
                yield group, rows[first:end]

    def _uncompress(self, place: BlockPlace) -> bytes:
        payload = uncompress(self.codec, self.data[place.start : place.end], self.limits.block_bytes)
        if payload is None:
            raise AssertionError("the block was within the limits when it was read first")
        return payload


def columns_of_entries(entries: Sequence[ManifestEntry]) -> ManifestColumns:
    """Return entries as columns, which refer to them."""
    files = [entry.file for entry in entries]
    names = [file.file_name.encode() for file in files]
    sizes = np.array([len(name) for name in names], np.int64)
    partitions = _Codes()
    layouts = _Codes()
    layout_of = [
        StatsLayout(file.schema_id, file.value_stats_cols, file.write_cols, file.file_name.endswith(".orc"))
        for file in files
    ]
    return ManifestColumns(
        partition=np.array([partitions.code(entry.partition) for entry in entries], np.int32),
        partitions=tuple(partitions.values),
        is_delete=np.array([entry.kind is FileKind.DELETE for entry in entries], bool),
        bucket=np.array([entry.bucket for entry in entries], np.int64),
        total_buckets=np.array([entry.total_buckets for entry in entries], np.int64),
        file_size=np.array([file.file_size for file in files], np.int64),
        row_count=np.array([file.row_count for file in files], np.int64),
        schema_id=np.array([file.schema_id for file in files], np.int64),
        created_millis=np.array([file.creation_millis or 0 for file in files], np.int64),
        name_hash=_hash_texts(_text_rows(Records(names), np.cumsum(sizes) - sizes, sizes), sizes),
        layout=np.array([layouts.code(each) for each in layout_of], np.int32),
        layouts=tuple(layouts.values),
        may_have_index=np.array(
            [file.embedded_file_index is not None or bool(file.extra_files) for file in files], bool
        ),
        is_external=np.array([file.external_path is not None for file in files], bool),
        level=np.array([file.level for file in files], np.int64),
        nbytes=0,
        decoded=tuple(entries),
    )


def decode_manifest_columns(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> ManifestColumns | None:
    """Decode a manifest of any version to columns.

    Args:
        data: the whole file.
        path: for messages only.
        limits: how much the file may hold.

    Returns:
        None if the manifest is small, or has to be decoded by ``decode_manifest``, which may raise.
    """
    try:
        schema, codec, blocks = find_blocks(data, path)
        steps = _steps_of(schema) if len(schema) <= _MAX_SCHEMA_CHARACTERS else None
        count = sum(max(block.record_count, 0) for block in blocks)
        if steps is None or not MIN_RECORDS <= count <= limits.records:
            return None
        return _Decoder(data, path, schema, codec, limits, steps).decode(blocks)
    except (_NotKnownError, FormatError, RecursionError, *CODEC_ERRORS):
        return None


class _NotKnownError(Exception):
    """The columns cannot represent the manifest."""


class _Codes:
    """Numbers for distinct values, in order of first occurrence."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}

    def code(self, value: object) -> int:
        """Return the number of a value."""
        return self.values.setdefault(value, len(self.values))


class _Reading:
    """A cursor over entries, and the columns that were read."""

    __slots__ = ("columns", "cursor")

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.columns: dict[str, Array] = {}

    def check(self, is_good: Array) -> None:
        """Mark the entries of which this is not true."""
        self.cursor.is_good &= is_good


class _Decoder:
    """Decodes one manifest, some blocks at a time."""

    def __init__(
        self, data: bytes, path: str, schema: str, codec: AvroCodec, limits: AvroLimits, steps: tuple[ReadColumn, ...]
    ) -> None:
        self._data = data
        self._path = path
        self._schema = schema
        self._codec = codec
        self._limits = limits
        self._steps = steps
        self._partitions, self._stats_cols, self._write_cols, self._layouts = _Codes(), _Codes(), _Codes(), _Codes()
        self._parts: dict[str, list[Array]] = {}
        self._items = 0

    def decode(self, blocks: Sequence[BlockPlace]) -> ManifestColumns:
        """Decode the blocks of the file."""
        groups: list[_Group] = []
        places: list[BlockPlace] = []
        payloads: list[bytes] = []
        left = self._limits.file_bytes
        first_row = rows = size = 0
        for place in blocks:
            limit = min(self._limits.block_bytes, left, _MAX_BLOCK_BYTES)
            payload = uncompress(self._codec, self._data[place.start : place.end], limit)
            if payload is None or not 0 <= place.record_count <= len(payload):
                raise _NotKnownError
            left -= len(payload)
            if places and (
                rows + place.record_count - first_row > _GROUP_RECORDS or size + len(payload) > _GROUP_BYTES
            ):
                groups.append(_Group(first_row, tuple(places)))
                self._add_group(places, payloads)
                places, payloads, size, first_row = [], [], 0, rows
            places.append(place)
            payloads.append(payload)
            rows += place.record_count
            size += len(payload)
        groups.append(_Group(first_row, tuple(places)))
        self._add_group(places, payloads)
        return self._columns(tuple(groups))

    def _add_group(self, places: Sequence[BlockPlace], payloads: Sequence[bytes]) -> None:
        records = Records(payloads)
        count = sum(place.record_count for place in places)
        starts = _find_candidates(records, count)
        reading = _Reading(Cursor(records, starts))
        for step in self._steps:
            step(reading)
        # Arrays may have so many items per record in the reference.
        self._items += records.items
        if self._items > self._limits.records * ITEMS_PER_RECORD:
            raise _NotKnownError
        kept = _follow(starts, reading.cursor, records.size)
        columns = {name: column[kept] for name, column in reading.columns.items()}
        columns["starts"] = starts[kept]
        if not reading.cursor.is_good[kept].all() or len(kept) != count:
            raise _NotKnownError
        _check_blocks(columns["starts"], places, payloads)
        self._encode_texts(records, columns)
        for name, dtype in _KEPT.items():
            self._parts.setdefault(name, []).append(columns[name].astype(dtype))

    def _encode_texts(self, records: Records, columns: dict[str, Array]) -> None:
        count = len(columns["starts"])
        zeros = np.zeros(count, np.int64)
        partition = (columns["partition@"], columns["partition#"])
        columns["partition"] = _codes_of(records, *partition, lambda data: data, self._partitions)
        stats_cols, write_cols = (
            _codes_of(records, columns[f"{name}@"], columns[f"{name}#"], _read_texts, known)
            if f"{name}@" in columns
            else zeros + known.code(None)
            for name, known in (("stats_cols", self._stats_cols), ("write_cols", self._write_cols))
        )
        columns["layout"] = self._layout_codes(columns["schema_id"], stats_cols, write_cols, columns["is_orc"])
        columns.setdefault("created_millis", zeros)
        columns.setdefault("is_external", zeros)
        columns["may_have_index"] = (columns.get("extra_files", zeros) > 0) | (columns.get("index", zeros) > 0)

    def _layout_codes(self, schema_id: Array, stats_cols: Array, write_cols: Array, is_orc: Array) -> Array:
        rows = np.stack([schema_id, stats_cols, write_cols, is_orc.astype(np.int64)], axis=1)
        if (rows == rows[0]).all():
            distinct, inverse = rows[:1], np.zeros(len(rows), np.int64)
        else:
            distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        known_stats, known_write = list(self._stats_cols.values), list(self._write_cols.values)
        codes = [
            self._layouts.code(StatsLayout(schema, known_stats[stats], known_write[write], bool(orc)))
            for schema, stats, write, orc in distinct.tolist()
        ]
        layout: Array = np.array(codes, np.int32)[inverse.reshape(-1)]
        return layout

    def _columns(self, groups: tuple[_Group, ...]) -> ManifestColumns:
        arrays: dict[str, Any] = {name: _shrunk(np.concatenate(parts)) for name, parts in self._parts.items()}
        starts, stats_starts = arrays.pop("starts"), arrays.pop("stats_starts")
        blocks = sum(len(group.blocks) for group in groups)
        sizes = [_size_of(each) for each in (starts, stats_starts, *arrays.values())]
        partition_bytes = sum(map(len, self._partitions.values)) + 100 * len(self._partitions.values)
        encoded = EncodedEntries(
            data=self._data,
            path=self._path,
            schema=self._schema,
            codec=self._codec,
            limits=self._limits,
            groups=groups,
            starts=starts,
            stats_starts=stats_starts,
        )
        return ManifestColumns(
            partitions=tuple(self._partitions.values),
            layouts=tuple(self._layouts.values),
            nbytes=len(self._data) + sum(sizes) + partition_bytes + 120 * blocks,
            encoded=encoded,
            **arrays,
        )


_KEPT: Final[dict[str, type]] = {
    "starts": np.uint32,
    "stats_starts": np.uint32,
    "partition": np.int32,
    "is_delete": np.bool_,
    "bucket": np.int32,
    "total_buckets": np.int32,
    "file_size": np.int64,
    "row_count": np.int64,
    "schema_id": np.int64,
    "created_millis": np.int64,
    "name_hash": np.uint64,
    "layout": np.int32,
    "may_have_index": np.bool_,
    "is_external": np.bool_,
    "level": np.int32,
}


def _shrunk(column: Array) -> Array:
    """Return a column; one value only in memory if all are equal."""
    return np.broadcast_to(column[:1].copy(), column.shape) if len(column) and (column == column[0]).all() else column


def _size_of(column: Array) -> int:
    return column.nbytes if column.strides != (0,) else column.itemsize


def _find_candidates(records: Records, count: int) -> Array:
    """Return positions where entries may begin: of version 2, of a known kind, with a row of as many partition columns.

    All entries of a table's manifest begin alike, so all of them are found, and rarely anything else.
    """
    data, words, size = records.bytes, records.words, records.size
    if not count:
        return np.zeros(0, np.int64)
    low = np.uint64(0xFFFFFFFF)
    arity = words[3 if data[2] < 0x80 else 4] & low
    # Slices that stay in the processor's cache.
    slices = []
    for start in range(0, size, _SLICE_BYTES):
        end = min(start + _SLICE_BYTES, size)
        matches = data[start:end] == data[0]
        matches &= (data[start + 1 : end + 1] & 0xFD) == 0
        slices.append(np.flatnonzero(matches) + start)
        if len(slices[-1]) > _MAX_CANDIDATES:
            raise _NotKnownError
    candidates = np.concatenate(slices)
    # The length of the partition takes one byte or two, then its row begins with the arity.
    is_entry = (words[np.where(data[candidates + 2] < 0x80, candidates + 3, candidates + 4)] & low) == arity
    found: Array = candidates[is_entry]
    if len(found) > _MAX_STARTS * count + _GROUP_RECORDS:
        raise _NotKnownError
    return found


_MAX_STARTS: Final = 4  # per entry
_SLICE_BYTES: Final = 1 << 16
_MAX_CANDIDATES: Final = _SLICE_BYTES // 4  # of the first test, which a few bytes of each entry pass


def _follow(starts: Array, cursor: Cursor, size: int) -> Array:
    """Return the indexes of the candidates that are entries: each begins where the one before it ends."""
    ends = cursor.positions
    if len(starts) and starts[0] == 0 and ends[-1] == size and np.array_equal(ends[:-1], starts[1:]):
        return np.arange(len(starts))
    index_of = {start: index for index, start in enumerate(starts.tolist())}
    end_of = ends.tolist()
    kept, position = [], 0
    while position < size:
        index = index_of.get(position)
        if index is None or end_of[index] <= position:
            raise _NotKnownError
        kept.append(index)
        position = end_of[index]
    return np.array(kept, np.int64)


def _check_blocks(starts: Array, places: Sequence[BlockPlace], payloads: Sequence[bytes]) -> None:
    """Check that each block has as many entries as it states; then none of them crosses its end."""
    counts = np.cumsum([place.record_count for place in places])
    ends = np.cumsum([len(payload) for payload in payloads])
    if not np.array_equal(np.searchsorted(starts, ends), counts):
        raise _NotKnownError
    firsts = np.concatenate([[0], counts[:-1]])[counts > np.concatenate([[0], counts[:-1]])]
    if not np.isin(starts[firsts], np.concatenate([[0], ends[:-1]])).all():
        raise _NotKnownError


def _codes_of(records: Records, starts: Array, sizes: Array, decode: Callable[[bytes], object], known: _Codes) -> Array:
    """Return a number for each of several texts; equal ones that follow each other are compared as bytes."""
    width = int(sizes.max())
    if width > _MAX_TEXT_BYTES:
        raise _NotKnownError
    rows = records.rows(starts, max(width, 1))
    is_new = np.ones(len(starts), bool)
    is_new[1:] = sizes[1:] != sizes[:-1]
    differing = rows[1:] != rows[:-1]
    if int(sizes.min()) < width:
        differing &= np.arange(rows.shape[1]) < sizes[1:, None]
    if differing.any():
        is_new[1:] |= differing.any(axis=1)
    firsts = np.flatnonzero(is_new)
    payload = records.payload
    codes: dict[bytes, int] = {}
    run_codes = []
    for start, size in zip(starts[firsts].tolist(), sizes[firsts].tolist(), strict=True):
        data = payload[start : start + size]
        code = codes.get(data)
        if code is None:
            code = codes[data] = known.code(decode(data))
        run_codes.append(code)
    of_texts: Array = np.array(run_codes, np.int64)[np.cumsum(is_new) - 1]
    return of_texts


def _read_texts(data: bytes) -> tuple[str, ...] | None:
    """Decode a nullable array of strings, as the reference does."""
    if data == b"\0":
        return None
    texts: list[str] = []
    try:
        count, position = read_item_count(data, 1)
        for _ in range(count):
            text, position = read_text(data, position)
            texts.append(text)
    except (ValueError, IndexError) as error:
        raise _NotKnownError from error
    return tuple(texts)


def _text_rows(records: Records, starts: Array, sizes: Array) -> Array:
    """Return texts as a matrix of bytes, whose width is a multiple of 8, with zeros after the end of each."""
    longest, shortest = int(sizes.max(initial=1)), int(sizes.min(initial=_MAX_TEXT_BYTES))
    rows = records.rows(starts, max(-(-longest // 8) * 8, 8))
    rows[:, longest:] = 0
    if shortest < longest:
        rows[np.arange(rows.shape[1]) >= sizes[:, None]] = 0
    return rows


def _hash_texts(rows: Array, sizes: Array) -> Array:
    """Return a hash of each text, which depends on its bytes only; ``rows`` as of ``_text_rows``."""
    words = rows.view("<u8")
    hashes: Array = sizes.astype(np.uint64) * _MIX
    shortest = int(sizes.min(initial=0))
    for place in range(words.shape[1]):
        mixed = (hashes ^ words[:, place]) * _MIX
        mixed ^= mixed >> _SHIFT
        hashes = mixed if shortest > 8 * place else np.where(sizes > 8 * place, mixed, hashes)
    return hashes


def _are_plain_names(rows: Array, sizes: Array) -> Array:
    """Whether texts are names of files for sure; others may be too. ``rows`` as of ``_text_rows``."""
    # Not a control character, nor of more than 7 bits, nor a slash of either kind; below 0x20, subtraction wraps.
    is_other = ((rows - np.uint8(0x20)) > 0x5E) | (rows == 0x2F) | (rows == 0x5C)
    if int(sizes.min(initial=0)) < rows.shape[1]:
        is_other &= np.arange(rows.shape[1]) < sizes[:, None]
    plain: Array = (sizes > 0) & (rows[:, 0] != 0x2E)
    return plain & ~is_other.any(axis=1) if is_other.any() else plain


def _name_rows(cursor: Cursor) -> tuple[Array, Array]:
    """Pass names of files; return them as of ``_text_rows``, and their sizes."""
    starts, sizes = cursor.spans()
    fits = sizes <= _MAX_NAME_BYTES
    sizes = np.where(fits, sizes, 0)
    rows = _text_rows(cursor.records, starts, sizes)
    cursor.is_good &= fits & _are_plain_names(rows, sizes)
    return rows, sizes


def _are_plain_texts(records: Records, starts: Array, sizes: Array) -> Array:
    """Whether texts are short and of ASCII only."""
    fits = sizes <= _MAX_TEXT_BYTES
    plain: Array = fits & (_text_rows(records, starts, np.where(fits, sizes, 0)) < 0x80).all(axis=1)
    return plain


def _read_version(reading: _Reading) -> None:
    reading.check(reading.cursor.ints() == 2)


def _read_kind(reading: _Reading) -> None:
    kinds = reading.cursor.ints()
    reading.check((kinds == FileKind.ADD) | (kinds == FileKind.DELETE))
    reading.columns["is_delete"] = kinds == FileKind.DELETE


def _read_partition(reading: _Reading) -> None:
    reading.columns["partition@"], reading.columns["partition#"] = reading.cursor.spans()


def _read_name(reading: _Reading) -> None:
    rows, sizes = _name_rows(reading.cursor)
    reading.columns["name_hash"] = _hash_texts(rows, sizes)
    reading.columns["is_orc"] = _end_with(rows, sizes, b".orc")


def _end_with(rows: Array, sizes: Array, suffix: bytes) -> Array:
    if int(sizes.min(initial=0)) == int(sizes.max(initial=0)) >= len(suffix):
        ends = rows[:, int(sizes[0]) - len(suffix) : int(sizes[0])]
    else:
        places = np.maximum(sizes[:, None] - len(suffix) + np.arange(len(suffix)), 0)
        ends = np.take_along_axis(rows, places, axis=1)
    has_suffix: Array = (sizes >= len(suffix)) & (ends == np.frombuffer(suffix, np.uint8)).all(axis=1)
    return has_suffix


def _read_long(column: str) -> Callable[[_Reading], None]:
    def read(reading: _Reading) -> None:
        reading.columns[column] = reading.cursor.longs()

    return read


def _read_int(column: str) -> Callable[[_Reading], None]:
    def read(reading: _Reading) -> None:
        reading.columns[column] = reading.cursor.ints()

    return read


def _read_statistics(reading: _Reading) -> None:
    cursor = reading.cursor
    reading.columns["stats_starts"] = cursor.positions
    cursor.spans()
    cursor.spans()
    cursor.alike(_PAST_NULL_COUNTS)


def _read_extra_files(reading: _Reading) -> None:
    reading.columns["extra_files"] = reading.cursor.items(lambda cursor: discard(_name_rows(cursor)))


def _read_index(reading: _Reading) -> None:
    present = reading.cursor.nullable(lambda cursor: discard(cursor.spans()))
    reading.columns["index"] = present.astype(np.int64)


def _read_creation(reading: _Reading) -> None:
    cursor = reading.cursor
    present = cursor.present()
    values = np.zeros(len(present), np.int64)
    if present.all():
        values = cursor.longs()
    elif present.any():
        part = cursor.some(present)
        values[present] = part.longs()
        cursor.rejoin(part, present)
    reading.columns["created_millis"] = values


def _read_source(reading: _Reading) -> None:
    def source(cursor: Cursor) -> None:
        sources = cursor.ints()
        cursor.is_good &= (sources == FileSource.APPEND) | (sources == FileSource.COMPACT)

    reading.cursor.nullable(source)


def _read_external_path(reading: _Reading) -> None:
    def path(cursor: Cursor) -> None:
        cursor.is_good &= _are_plain_texts(cursor.records, *cursor.spans())

    reading.columns["is_external"] = reading.cursor.nullable(path)


def _read_columns(column: str) -> Callable[[_Reading], None]:
    def read(reading: _Reading) -> None:
        starts = reading.cursor.positions
        _PAST_TEXTS(reading.cursor)
        reading.columns[f"{column}@"] = starts
        reading.columns[f"{column}#"] = reading.cursor.positions - starts

    return read


def _supported(avro_type: AvroType) -> Step:
    step = step_of(avro_type)
    if step is None:
        raise AssertionError(avro_type)
    return step


_PAST_NULL_COUNTS: Final = _supported(["null", {"type": "array", "items": ["null", "long"]}])
_PAST_TEXTS: Final = _supported(["null", {"type": "array", "items": "string"}])

_ENTRY_STEPS: Final[dict[str, ReadColumn]] = {
    "_VERSION": _read_version,
    "_KIND": _read_kind,
    "_PARTITION": _read_partition,
    "_BUCKET": _read_int("bucket"),
    "_TOTAL_BUCKETS": _read_int("total_buckets"),
}
_FILE_STEPS: Final[dict[str, ReadColumn]] = {
    "_FILE_NAME": _read_name,
    "_FILE_SIZE": _read_long("file_size"),
    "_ROW_COUNT": _read_long("row_count"),
    "_VALUE_STATS": _read_statistics,
    "_SCHEMA_ID": _read_long("schema_id"),
    "_LEVEL": _read_int("level"),
    "_EXTRA_FILES": _read_extra_files,
    "_CREATION_TIME": _read_creation,
    "_EMBEDDED_FILE_INDEX": _read_index,
    "_FILE_SOURCE": _read_source,
    "_VALUE_STATS_COLS": _read_columns("stats_cols"),
    "_EXTERNAL_PATH": _read_external_path,
    "_WRITE_COLS": _read_columns("write_cols"),
}
_FIRST_FIELDS: Final = ("_VERSION", "_KIND", "_PARTITION")  # by which entries are found
_VARYING: Final = (
    "_PARTITION",
    "_FILE_NAME",
    "_FILE_SIZE",
    "_ROW_COUNT",
    "_VALUE_STATS",
    "_MIN_SEQUENCE_NUMBER",
    "_MAX_SEQUENCE_NUMBER",
    "_CREATION_TIME",
    "_EMBEDDED_FILE_INDEX",
    "_FIRST_ROW_ID",
)
"""Fields that may differ in each entry; runs of others are compared at once."""


@lru_cache(maxsize=32)
def _steps_of(schema: str) -> tuple[ReadColumn, ...] | None:
    """Return the steps that read an entry; None if an entry of this schema is not known here."""
    try:
        fields = field_types(json.loads(schema))
        file_fields = field_types(fields["_FILE"])
        if tuple(fields)[:3] != _FIRST_FIELDS or not fields.keys() >= _ENTRY_STEPS.keys():
            return None
        if not file_fields.keys() >= REQUIRED_FILE_FIELDS:
            return None
        steps: list[tuple[str, ReadColumn | None]] = []
        for name, avro_type in fields.items():
            if name == "_FILE":
                steps += [(each, _step_of(each, file_fields[each], _FILE_TYPES, _FILE_STEPS)) for each in file_fields]
            else:
                steps.append((name, _step_of(name, avro_type, _ENTRY_TYPES, _ENTRY_STEPS)))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    known = [(name, step) for name, step in steps if step]
    if len(known) < len(steps):
        return None
    read: list[ReadColumn] = []
    for varies, run in groupby(known, lambda field: field[0] in _VARYING):
        run_steps = tuple(step for _, step in run)
        read += run_steps if varies else [partial(_read_alike, run_steps)]
    return tuple(read)


def _read_alike(steps: Sequence[ReadColumn], reading: _Reading) -> None:
    """Read fields that most entries share: the bytes of the first entry are compared with those of the others."""
    cursor, records = reading.cursor, reading.cursor.records
    count, items = len(cursor.positions), records.items
    first = _Reading(cursor.some(np.arange(count) < 1))
    for step in steps:
        step(first)
    items = records.items - items
    width = int(first.cursor.positions[0] - cursor.positions[0]) if count else 0
    if not 0 < width <= _MAX_TEXT_BYTES or not first.cursor.is_good[0]:
        for step in steps:
            step(reading)
        return
    rows = records.rows(cursor.positions, width)
    differing = rows != rows[0]
    differs = differing.any(axis=1) if differing.any() else None
    records.items += items * count
    starts = cursor.positions
    for name, column in first.columns.items():
        is_position = name.endswith("@")
        reading.columns[name] = column[0] + (starts - starts[0]) if is_position else np.repeat(column, count)
    if differs is None:
        cursor.skip(width)
        return
    cursor.skip(np.where(differs, 0, width))
    part = _Reading(Cursor(records, starts[differs]))
    for step in steps:
        step(part)
    cursor.rejoin(part.cursor, differs)
    for name, column in part.columns.items():
        reading.columns[name][differs] = column


def _step_of(
    name: str, avro_type: AvroType, types: Mapping[str, object], steps: Mapping[str, ReadColumn]
) -> ReadColumn | None:
    plain = _plain(avro_type)
    if types.get(name, plain) != plain:
        return None
    if name in steps:
        return steps[name]
    past = step_of(avro_type)
    return None if past is None else lambda reading: past(reading.cursor)


def _plain(avro_type: AvroType) -> object:
    """Return a type without the names of records and attributes that do not change the encoding."""
    match avro_type:
        case {"type": "record", "fields": [*_]}:
            return tuple((name, _plain(part)) for name, part in field_types(avro_type).items())
        case {"type": "array", "items": items}:
            return "array", _plain(items)
        case {"type": str(name)}:
            return name
        case list():
            return tuple(map(_plain, avro_type))
        case _:
            return avro_type


_ENTRY_TYPES: Final[Mapping[str, object]] = {
    name: _plain(part) for name, part in field_types(json.loads(MANIFEST_SCHEMA)).items()
}
_FILE_TYPES: Final[Mapping[str, object]] = {
    name: _plain(part) for name, part in field_types(field_types(json.loads(MANIFEST_SCHEMA))["_FILE"]).items()
}
