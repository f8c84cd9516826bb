"""The entries of a manifest as columns: one numpy array per field that planning needs, and no object per file.

A manifest is kept as its compressed bytes, with 30 to 60 bytes of columns per entry; entries are decoded on demand, by
the decoder of ``files``. That decoder is the reference: a manifest that the columns cannot represent, or that is
damaged, has no columns.

Source:
    As ``files``; design/0093.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from penstock.errors import FormatError
from penstock.format.avro.columns import BlockMemory, Cursor, Even, Records, repeated
from penstock.format.avro.container import (
    CODEC_ERRORS,
    AvroCodec,
    BlockPlace,
    find_blocks,
    uncompress,
)
from penstock.format.avro.values import DEFAULT_LIMITS, ITEMS_PER_RECORD, AvroLimits, read_item_count, read_text
from penstock.format.manifest.column_steps import (
    MAX_TEXT_BYTES,
    EntryReading,
    hash_texts,
    read_details,
    read_names,
    steps_of,
    text_rows,
)
from penstock.format.manifest.entry import FileKind, ManifestEntry, StatsLayout
from penstock.format.manifest.files import decode_entries_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.format.avro.columns import Array, Places
    from penstock.format.manifest.column_steps import EntrySteps

    Start: TypeAlias = Callable[[Callable[[], Any]], Callable[[], Any]]
    """(a function) to a function that returns its result; the first may be called by another thread meanwhile."""
    Visit: TypeAlias = Callable[["ManifestColumns", Cursor], "Visited"]
    """(some of the entries, a cursor at their ``_VALUE_STATS``) to what is kept of them."""

MIN_RECORDS: Final = 64
"""Manifests with fewer entries are decoded to entries in less time."""

# So that the columns of a group stay in the processor's cache.
_GROUP_RECORDS: Final = 8192
_GROUP_BYTES: Final = 8 << 20
# Writers end a block at 64 KB.
_MAX_BLOCK_BYTES: Final = 16 << 20
_MAX_SCHEMA_CHARACTERS: Final = 20_000
# Of what is kept of the statistics of an entry: the bounds of four numbers, or of two texts of 16 characters.
_MAX_VISITED_BYTES: Final = 72


class Visited(Protocol):
    """What was read from the statistics of a group of entries."""

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        ...


class GroupStatistics(NamedTuple):
    """The statistics of entries that are uncompressed together.

    Attributes:
        entries: numbers of the entries in the manifest.
        rows: those that were asked for, counted in the group.
        visited: what is kept of them; None if nothing is.
        cursor: returns a cursor at the ``_VALUE_STATS`` of all of them.
    """

    entries: slice
    rows: Array
    visited: Visited | None
    cursor: Callable[[], Cursor]


class GroupDetails(NamedTuple):
    """What entries that are uncompressed together have besides the columns.

    Attributes:
        rows: those that were asked for: numbers of the entries in the manifest.
        names: of their files, as bytes.
        columns: ``min_sequence_number``, ``max_sequence_number``, ``creation_millis``, ``delete_row_count`` and
            ``file_source``; with ``has_`` before the name, whether it is not null. Columns that a manifest of another
            release lacks are left out.
        statistics: a cursor at their ``_VALUE_STATS``.
    """

    rows: Array
    names: Array
    columns: Mapping[str, Array]
    statistics: Cursor


class _Group(NamedTuple):
    """Blocks that are uncompressed together."""

    first_row: int
    blocks: tuple[BlockPlace, ...]
    starts: Places
    """Of the entries, in the uncompressed bytes."""
    stats_starts: Places
    """Of their ``_VALUE_STATS``, likewise."""

    def starts_of(self, rows: Array) -> Places:
        """Return where some entries start; ``rows`` are their numbers in the group, ascending."""
        return self.starts if len(rows) == len(self.starts) else self.starts[rows]


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
        is_parquet: whether its name is that of a Parquet file.
        nbytes: about how much memory all of this takes, without ``decoded`` and ``visited``.
        encoded: the entries in encoded form, if they were read.
        decoded: all entries, if they were decoded.
        keep: called with the same entries when more is known of them.
        visited: what is kept of the statistics of each group of ``encoded``; empty if nothing is.
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
    is_parquet: Array
    level: Array
    nbytes: int
    encoded: EncodedEntries | None = None
    decoded: tuple[ManifestEntry, ...] | None = None
    keep: Callable[[ManifestColumns], None] | None = None
    visited: tuple[Visited | None, ...] = ()

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
                self.keep(replace(self, decoded=decoded))
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

    def statistics(self, rows: Array) -> Iterator[GroupStatistics]:
        """Yield the groups with some of the entries; nothing if they are not in encoded form.

        Args:
            rows: ascending.
        """
        encoded = self.encoded
        if encoded is None:
            return
        for number, group, part in encoded.by_group(rows):
            entries = slice(group.first_row, group.first_row + len(group.starts))
            visited = self.visited[number] if self.visited else None
            yield GroupStatistics(entries, part, visited, partial(encoded.statistics, group))

    def details(self, rows: Array) -> Iterator[GroupDetails]:
        """Yield what some entries have besides the columns; nothing if they are not in encoded form.

        Args:
            rows: ascending.
        """
        if self.encoded is not None:
            yield from self.encoded.details(rows)

    def keep_visited(self, visited: Sequence[Visited]) -> None:
        """Keep what was read from the statistics of each group, unless it is large."""
        if self.keep is not None and self.encoded is not None and len(visited) == len(self.encoded.groups):
            lengths = (len(group.starts) for group in self.encoded.groups)
            self.keep(replace(self, visited=tuple(map(_kept_visited, visited, lengths))))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedEntries:
    """The compressed bytes of a manifest, and where its entries are in them."""

    data: bytes
    path: str
    schema: str
    codec: AvroCodec
    limits: AvroLimits
    groups: tuple[_Group, ...]

    def entries(self, rows: Array) -> Iterator[ManifestEntry]:
        """Decode some entries; ``rows`` are ascending."""
        for _, group, part in self.by_group(rows):
            starts = group.starts_of(part)[:].tolist()
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

    def statistics(self, group: _Group) -> Cursor:
        """Return a cursor at the ``_VALUE_STATS`` of the entries of a group."""
        return Cursor(self._records(group, BlockMemory(_GROUP_BYTES)), _wide(group.stats_starts))

    def names(self, rows: Array) -> Iterator[Array]:
        """Yield the names of some files, as bytes."""
        memory = BlockMemory(_GROUP_BYTES)
        for _, group, part in self.by_group(rows):
            cursor = Cursor(self._records(group, memory), _wide(group.starts_of(part)))
            yield read_names(cursor, self.schema)

    def details(self, rows: Array) -> Iterator[GroupDetails]:
        """Yield what some entries have besides the columns; ``rows`` are ascending."""
        for _, group, part in self.by_group(rows):
            records = self._records(group, BlockMemory(_GROUP_BYTES))
            names = read_names(Cursor(records, _wide(group.starts_of(part))), self.schema)
            stats_starts = _wide(group.stats_starts)[part]
            columns = read_details(Cursor(records, stats_starts), self.schema)
            yield GroupDetails(part + group.first_row, names, columns, Cursor(records, stats_starts))

    def by_group(self, rows: Array) -> Iterator[tuple[int, _Group, Array]]:
        """Yield each group with some of the entries, its number, and the numbers of the entries in it."""
        ends = np.searchsorted(rows, [group.first_row + len(group.starts) for group in self.groups])
        for number, (first, end) in enumerate(pairwise([0, *ends.tolist()])):
            if end > first:
                group = self.groups[number]
                yield number, group, rows[first:end] - group.first_row

    def _records(self, group: _Group, memory: BlockMemory) -> Records:
        data = memoryview(self.data)
        for place in group.blocks:
            memory.add(self.codec, data[place.start : place.end], self.limits.block_bytes)
        records, _ = memory.take()
        return records

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
        name_hash=hash_texts(text_rows(Records.joined(names), np.cumsum(sizes) - sizes, sizes), sizes),
        layout=np.array([layouts.code(each) for each in layout_of], np.int32),
        layouts=tuple(layouts.values),
        may_have_index=np.array(
            [file.embedded_file_index is not None or bool(file.extra_files) for file in files], bool
        ),
        is_external=np.array([file.external_path is not None for file in files], bool),
        is_parquet=np.array([name.endswith(b".parquet") for name in names], bool),
        level=np.array([file.level for file in files], np.int64),
        nbytes=0,
        decoded=tuple(entries),
    )


def decode_manifest_columns(
    data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS, visit: Visit | None = None
) -> ManifestColumns | None:
    """Decode a manifest of any version to columns.

    Args:
        data: the whole file.
        path: for messages only.
        limits: how much the file may hold.
        visit: called with some entries at a time, while they are uncompressed; it takes nothing from their
            ``encoded`` and ``decoded``.

    Returns:
        None if the manifest is small, or has to be decoded by ``decode_manifest``, which may raise.
    """
    return begin_decoding(data, path, limits, visit, lambda compute: compute)()


def begin_decoding(
    data: bytes, path: str, limits: AvroLimits, visit: Visit | None, start: Start
) -> Callable[[], ManifestColumns | None]:
    """Begin with ``decode_manifest_columns``, and return a function that ends it.

    Args:
        start: of functions that uncompress the next blocks, mostly without the GIL.
    """
    try:
        schema, codec, blocks = find_blocks(data, path)
        count = sum(max(block.record_count, 0) for block in blocks)
        is_known = MIN_RECORDS <= count <= limits.records and len(schema) <= _MAX_SCHEMA_CHARACTERS
        steps = steps_of(schema) if is_known else None
    except (FormatError, RecursionError):
        steps = None
    if steps is None:
        return lambda: None
    decoder = _Decoder(data, path, schema, codec, limits, steps)
    groups = decoder.uncompressed(blocks)
    first = start(partial(next, groups, None))

    def end() -> ManifestColumns | None:
        upcoming = first
        try:
            while (group := upcoming()) is not None:
                upcoming = start(partial(next, groups, None))
                places, records, sizes = group
                decoder.add(places, records, sizes, visit)
            return decoder.columns()
        except (_NotKnownError, FormatError, RecursionError, *CODEC_ERRORS):
            return None

    return end


class _NotKnownError(Exception):
    """The columns cannot represent the manifest."""


class _Codes:
    """Numbers for distinct values, in order of first occurrence."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}

    def code(self, value: object) -> int:
        """Return the number of a value."""
        return self.values.setdefault(value, len(self.values))


class _Decoder:
    """Decodes one manifest, some blocks at a time."""

    def __init__(
        self, data: bytes, path: str, schema: str, codec: AvroCodec, limits: AvroLimits, steps: EntrySteps
    ) -> None:
        self._data = data
        self._path = path
        self._schema = schema
        self._codec = codec
        self._limits = limits
        self._steps = steps
        self._visited: list[Visited | None] = []
        self._partitions, self._stats_cols, self._write_cols, self._layouts = _Codes(), _Codes(), _Codes(), _Codes()
        self._parts: dict[str, list[Array]] = {}
        self._groups: list[_Group] = []
        self._rows = self._items = 0

    def uncompressed(
        self, blocks: Sequence[BlockPlace]
    ) -> Iterator[tuple[Sequence[BlockPlace], Records, Sequence[int]]]:
        """Yield the blocks of each group, their bytes, and the size of each; the bytes last until the one after next.

        Raises ``_NotKnownError``, ``FormatError``, or one of ``CODEC_ERRORS``.
        """
        places: list[BlockPlace] = []
        memory, other, data = BlockMemory(_GROUP_BYTES), None, memoryview(self._data)
        left, rows = self._limits.file_bytes, 0
        for place in blocks:
            if places and (rows + place.record_count > _GROUP_RECORDS or memory.is_full):
                yield places, *memory.take()
                memory, other = other or BlockMemory(_GROUP_BYTES), memory
                places, rows = [], 0
            limit = min(self._limits.block_bytes, left, _MAX_BLOCK_BYTES)
            size = memory.add(self._codec, data[place.start : place.end], limit)
            if not 0 <= place.record_count <= size:
                raise _NotKnownError
            left -= size
            places.append(place)
            rows += place.record_count
        yield places, *memory.take()

    def add(self, places: Sequence[BlockPlace], records: Records, sizes: Sequence[int], visit: Visit | None) -> None:
        """Decode the blocks of a group."""
        counts = [place.record_count for place in places]
        reading = self._steps.read_alike(records, sizes, counts)
        if reading is None:
            reading = EntryReading(Cursor(records, _find_candidates(records, sum(counts))))
            self._steps.read(reading)
            columns = _follow(reading, records.size)
            _check_blocks(columns["starts"], counts, sizes)
        else:
            columns = reading.columns | {"starts": reading.starts}
            if not reading.cursor.is_good.all():
                raise _NotKnownError
        # Arrays may have so many items per record in the reference.
        self._items += records.items
        if self._items > self._limits.records * ITEMS_PER_RECORD:
            raise _NotKnownError
        self._encode_texts(records, columns, reading)
        count = len(columns["starts"])
        kept_columns = {name: _converted(columns[name], dtype, count) for name, dtype in _KEPT.items()}
        for name, column in kept_columns.items():
            self._parts.setdefault(name, []).append(column)
        if visit is not None:
            cursor = Cursor(records, columns["stats_starts"])
            self._visited.append(_kept_visited(visit(self._entries(kept_columns), cursor), count))
        starts, stats_starts = (_kept_places(columns[name]) for name in ("starts", "stats_starts"))
        self._groups.append(_Group(self._rows, tuple(places), starts, stats_starts))
        self._rows += len(starts)

    def _encode_texts(self, records: Records, columns: dict[str, Any], reading: EntryReading) -> None:
        zeros = np.zeros(1, np.int64)
        partition = (columns["partition@"], columns["partition#"])
        columns["partition"] = _codes_of(records, *partition, lambda data: data, self._partitions)
        shape = reading.shape
        if shape is None:
            columns["layout"] = self._layouts_of(records, columns)
        else:
            if shape.layout is None:
                first = self._layouts_of(records, {name: column[:1] for name, column in columns.items()})
                shape.layout = list(self._layouts.values)[int(first[0])]
            columns["layout"] = np.array([self._layouts.code(shape.layout)])
        columns.setdefault("created_millis", zeros)
        columns.setdefault("is_external", zeros)
        columns["may_have_index"] = (columns.get("extra_files", zeros) > 0) | (columns.get("index", zeros) > 0)

    def _layouts_of(self, records: Records, columns: Mapping[str, Any]) -> Array:
        stats_cols, write_cols = (
            _codes_of(records, columns[f"{name}@"], columns[f"{name}#"], _read_texts, known)
            if f"{name}@" in columns
            else np.full(len(columns["starts"]), known.code(None))
            for name, known in (("stats_cols", self._stats_cols), ("write_cols", self._write_cols))
        )
        return self._layout_codes(columns["schema_id"], stats_cols, write_cols, columns["is_orc"])

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

    def _entries(self, columns: Mapping[str, Array], **others: Any) -> ManifestColumns:  # noqa: ANN401 - of any type
        return ManifestColumns(
            partitions=tuple(self._partitions.values),
            layouts=tuple(self._layouts.values),
            **{"nbytes": 0, **others, **columns},
        )

    def columns(self) -> ManifestColumns:
        """Return the columns of all groups."""
        groups = tuple(self._groups)
        arrays = {name: _joined(parts) for name, parts in self._parts.items()}
        blocks = sum(len(group.blocks) for group in groups)
        sizes = [_size_of(each) for each in arrays.values()]
        sizes += [each.nbytes for group in groups for each in group[2:] if not isinstance(each, Even)]
        partition_bytes = sum(map(len, self._partitions.values)) + 100 * len(self._partitions.values)
        encoded = EncodedEntries(
            data=self._data,
            path=self._path,
            schema=self._schema,
            codec=self._codec,
            limits=self._limits,
            groups=groups,
        )
        return self._entries(
            arrays,
            nbytes=len(self._data) + sum(sizes) + partition_bytes + 120 * blocks,
            encoded=encoded,
            visited=tuple(self._visited),
        )


_KEPT: Final[dict[str, type]] = {
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
    "is_parquet": np.bool_,
    "level": np.int32,
}


def _converted(column: Array, dtype: type, count: int) -> Array:
    if column.strides == (0,) or len(column) == 1:
        return repeated(column[:1].astype(dtype), count)
    converted: Array = column.astype(dtype, copy=False)
    return converted


def _kept_places(places: Places) -> Places:
    return places if isinstance(places, Even) else places.astype(np.uint32)


def _wide(places: Places) -> Places:
    return places if isinstance(places, Even) else places.astype(np.int64)


def _kept_visited(visited: Visited, count: int) -> Visited | None:
    return visited if visited.nbytes <= _MAX_VISITED_BYTES * count else None


def _joined(parts: Sequence[Array]) -> Array:
    """Return the parts of a column as one; one value only in memory if all are equal."""
    first, count = parts[0][:1], sum(map(len, parts))
    if len(parts) == 1 and parts[0].strides == (0,):
        return parts[0]
    if all(part.strides == (0,) and part[0] == first[0] for part in parts):
        return repeated(first, count)
    column: Array = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if count and column[0] == column[-1] and (column == column[0]).all():
        return repeated(column[:1].copy(), count)
    return column


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
        # Of tables without partitions: numbers have the zeros of an empty row, but not its length before them.
        found = found[data[found + 2] == data[2]]
    if len(found) > _MAX_STARTS * count + _GROUP_RECORDS:
        raise _NotKnownError
    return found


_MAX_STARTS: Final = 4  # per entry
_SLICE_BYTES: Final = 1 << 16
_MAX_CANDIDATES: Final = _SLICE_BYTES // 4  # of the first test, which a few bytes of each entry pass


def _follow(reading: EntryReading, size: int) -> dict[str, Array]:
    """Return the columns of those candidates that are entries: each begins where the one before it ends."""
    starts, ends, is_good = reading.starts[:], reading.cursor.positions[:], reading.cursor.is_good
    columns = reading.columns | {"starts": starts}
    if not len(starts) or starts[0] or ends[-1] != size or not np.array_equal(ends[:-1], starts[1:]):
        index_of = {start: index for index, start in enumerate(starts.tolist())}
        end_of = ends.tolist()
        kept, position = [], 0
        while position < size:
            index = index_of.get(position)
            if index is None or end_of[index] <= position:
                raise _NotKnownError
            kept.append(index)
            position = end_of[index]
        if position != size:
            raise _NotKnownError  # the last one is cut off
        rows = np.array(kept, np.int64)
        columns = {name: column if len(column) == 1 else column[rows] for name, column in columns.items()}
        is_good = is_good[rows]
    if not is_good.all():
        raise _NotKnownError
    return columns


def _check_blocks(starts: Array, block_counts: Sequence[int], block_sizes: Sequence[int]) -> None:
    """Check that each block has as many entries as it states; then none of them crosses its end."""
    counts = np.array(block_counts)
    sizes = np.array(block_sizes)
    ends = np.cumsum(sizes)
    has_entries = counts > 0
    # The last entry of a block may not end in one that states none.
    if (
        len(starts) != sum(block_counts)
        or not np.array_equal(has_entries, sizes > 0)
        or not np.array_equal(np.searchsorted(starts, ends), np.cumsum(counts))
    ):
        raise _NotKnownError
    firsts = (np.cumsum(counts) - counts)[has_entries]
    if not np.array_equal(starts[firsts], (ends - sizes)[has_entries]):
        raise _NotKnownError


def _codes_of(
    records: Records,
    starts: Places,
    sizes: Array,
    decode: Callable[[bytes], object],
    known: _Codes,
) -> Array:
    """Return a number for each of several texts; ``decode`` is called once for each distinct one."""
    count = len(starts)
    if int(sizes.max()) > MAX_TEXT_BYTES:
        raise _NotKnownError
    if sizes.strides == (0,) or len(sizes) == 1:
        starts = records.distinct(starts, int(sizes[0]))
        sizes = repeated(sizes[:1], len(starts))
    firsts, of_texts = _distinct(text_rows(records, starts, sizes), sizes)
    codes = [
        known.code(decode(records.part(start, start + size)))
        for start, size in zip(starts[firsts].tolist(), sizes[firsts].tolist(), strict=True)
    ]
    numbers = np.array(codes, np.int64)
    return repeated(numbers, count) if len(codes) == 1 else numbers[of_texts]


def _distinct(rows: Array, sizes: Array) -> tuple[Array, Array]:
    """Return the indexes of the first of equal texts, ascending, and for each text an index into them.

    Args:
        rows: as of ``text_rows``.
        sizes: of the texts.
    """
    words = rows.view("<u8")
    is_new = np.ones(len(rows), bool)
    is_new[1:] = sizes[1:] != sizes[:-1]
    differing = words[1:] != words[:-1]
    if differing.any():
        is_new[1:] |= differing.any(axis=1)
    elif not is_new[1:].any():
        return np.zeros(1, np.int64), np.zeros(len(rows), np.int64)
    runs = np.flatnonzero(is_new)
    of_texts = np.cumsum(is_new) - 1
    if len(runs) == 1:
        return runs, of_texts
    words, sizes = words[runs], sizes[runs]
    hashes = hash_texts(words.view(np.uint8), sizes)
    order = np.argsort(hashes, kind="stable")
    is_first = np.ones(len(order), bool)
    is_first[1:] = hashes[order[1:]] != hashes[order[:-1]]
    firsts = order[is_first]
    of_runs = np.empty(len(order), np.int64)
    of_runs[order] = np.cumsum(is_first) - 1
    if not (sizes == sizes[firsts][of_runs]).all() or not (words == words[firsts][of_runs]).all():
        raise _NotKnownError  # two texts with one hash
    ascending = np.argsort(firsts)
    rank = np.empty(len(firsts), np.int64)
    rank[ascending] = np.arange(len(firsts))
    return runs[firsts[ascending]], rank[of_runs][of_texts]


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
