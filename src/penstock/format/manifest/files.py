"""Encode and decode manifests and manifest lists (Avro).

Written files have the 20-field form of Java 1.3 to 2.0, which every version in use reads. Files of any version can be
read: fields are found by name, unknown fields are skipped, missing nullable fields are None.

Source:
    Paimon ``core:manifest/ManifestEntrySerializer.java``, ``core:io/DataFileMetaSerializer.java``,
    ``core:manifest/ManifestFileMetaSerializer.java``; docs/spec/format.md sections 4 and 5.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from penstock.format.avro.container import Block, encode_container, parse_codec, read_note
from penstock.format.avro.reader import PAST_ALIKE, REQUIRED, FieldMapping, RecordMapping
from penstock.format.avro.records import decode_values, decode_values_at
from penstock.format.avro.schemas import MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from penstock.format.avro.values import (
    DEFAULT_LIMITS,
    PRESENT,
    AvroLimits,
    encode_bytes,
    encode_long,
    encode_nullable_bytes,
    encode_nullable_long,
    encode_nullable_longs,
    encode_nullable_text,
    encode_nullable_texts,
    encode_text,
    encode_texts,
    read_bytes,
    read_long,
)
from penstock.format.manifest.entry import (
    BucketNumbers,
    DataFileMeta,
    EntryNumbers,
    FileKind,
    FileNumbers,
    FileSource,
    ManifestEntry,
    ManifestFileMeta,
    SimpleStats,
)
from penstock.format.text.names import check_file_name, check_file_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_VERSION: Final = 2
_KINDS: Final = {kind.value: kind for kind in FileKind}
_SOURCES: Final[dict[int | None, FileSource | None]] = {None: None} | {source.value: source for source in FileSource}

# Payload bytes per block, as in Avro's own writer; larger blocks hardly compress better.
_BLOCK_BYTES: Final = 64_000

_NUMBERS_KEY: Final = "penstock.sequence-numbers"
_NUMBERS: Final = BucketNumbers._fields[1:]
# In the header they take about 10 to 25 bytes a bucket. A manifest of more buckets than this is decoded.
_MAX_NUMBERED: Final = 1_024


def decode_manifest(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> list[ManifestEntry]:
    """Decode a manifest of any version.

    Consecutive entries share equal partitions, keys, column lists and counts, so 100,000 entries need little memory.

    Args:
        data: the whole file.
        path: for messages only.
        limits: how much the file may hold.

    Returns:
        The entries in file order.
    """
    return decode_values(data, path, _ENTRY, limits)


def decode_entries_at(
    payload: bytes, positions: Iterable[int], schema: str, path: str, limits: AvroLimits
) -> list[ManifestEntry]:
    """Decode some entries of a manifest; arguments as of ``decode_values_at``."""
    return decode_values_at(payload, positions, schema, path, _ENTRY, limits)


def decode_file_numbers(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> list[EntryNumbers]:
    """Decode only the fields needed for sequence numbers, in 0.6 of the time; otherwise like ``decode_manifest``."""
    return decode_values(data, path, _ENTRY_NUMBERS, limits)


def encode_manifest(
    entries: Sequence[ManifestEntry], *, codec: str = "zstd", level: int = 1, has_numbers: bool = False
) -> bytes:
    """Encode a manifest in the form of Java 1.4.2.

    Args:
        entries: written in this order.
        codec: value of ``manifest.compression``.
        level: value of ``file.compression.zstd-level``.
        has_numbers: the header also gets what ``decode_bucket_numbers`` returns, unless the entries have no buckets, or
            too many.
    """
    blocks = _pack_blocks(map(_encode_entry, entries))
    notes = _number_notes(entries) if has_numbers else {}
    return encode_container(MANIFEST_SCHEMA, blocks, codec=parse_codec(codec), level=level, notes=notes)


def decode_bucket_numbers(data: bytes, entry_count: int) -> tuple[BucketNumbers, ...] | None:
    """Decode the largest sequence numbers of a manifest's entries from its header, without decoding the entries.

    Args:
        data: the whole file.
        entry_count: number of entries, according to the manifest list.

    Returns:
        None if the header lacks them, as it does in manifests of other writers, or if the file is damaged.
    """
    note = read_note(data, _NUMBERS_KEY)
    if note is None:
        return None
    try:
        count, position = read_long(note, 0)
        found = []
        while position < len(note):
            partition, position = read_bytes(note, position)
            buckets, position = read_long(note, position)
            for _ in range(buckets):
                numbers = []
                for _ in _NUMBERS:
                    number, position = read_long(note, position)
                    numbers.append(number)
                found.append(BucketNumbers(partition, *numbers))
    except (ValueError, IndexError):
        return None
    return tuple(found) if count == entry_count and position == len(note) else None


def number_buckets(entries: Iterable[ManifestEntry | EntryNumbers]) -> tuple[BucketNumbers, ...]:
    """Return the largest sequence numbers of entries by partition, bucket and total buckets."""
    groups: dict[tuple[bytes, int, int], list[int]] = {}
    for entry in entries:
        key = (entry.partition, entry.bucket, entry.total_buckets)
        found = groups.get(key)
        if found is None:
            found = groups[key] = [0, 0, 0, 0]
        place = 0 if entry.kind is FileKind.ADD else 2
        number = entry.file.max_sequence_number
        if not found[place + 1] or number > found[place]:
            found[place], found[place + 1] = number, 1
        elif number == found[place]:
            found[place + 1] += 1
    return tuple(BucketNumbers(*key, *found) for key, found in groups.items())


def _number_notes(entries: Sequence[ManifestEntry]) -> dict[str, bytes]:
    if all(entry.total_buckets <= 0 for entry in entries):
        return {}
    numbers = number_buckets(entries)
    if len(numbers) > _MAX_NUMBERED:
        return {}
    partitions: dict[bytes, list[bytes]] = {}
    for partition, *others in numbers:
        partitions.setdefault(partition, []).append(b"".join(map(encode_long, others)))
    parts = [encode_long(len(entries))]
    for partition, buckets in partitions.items():
        parts += [encode_bytes(partition), encode_long(len(buckets)), *buckets]
    return {_NUMBERS_KEY: b"".join(parts)}


def decode_manifest_list(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> list[ManifestFileMeta]:
    """Decode a manifest list of any version; arguments as in ``decode_manifest``."""
    return decode_values(data, path, _MANIFEST_META, limits)


def encode_manifest_list(metas: Iterable[ManifestFileMeta], *, codec: str = "zstd", level: int = 1) -> bytes:
    """Encode a manifest list in the form of Java 1.4.2; without metas it is a valid file without records."""
    blocks = _pack_blocks(map(_encode_manifest_meta, metas))
    return encode_container(MANIFEST_LIST_SCHEMA, blocks, codec=parse_codec(codec), level=level)


def _pack_blocks(records: Iterable[bytes]) -> Iterator[Block]:
    parts: list[bytes] = []
    size = 0
    for record in records:
        parts.append(record)
        size += len(record)
        if size >= _BLOCK_BYTES:
            yield Block(len(parts), b"".join(parts))
            parts, size = [], 0
    yield Block(len(parts), b"".join(parts))


def _encode_entry(entry: ManifestEntry) -> bytes:
    file = entry.file
    return b"".join(
        (
            encode_long(_VERSION),
            encode_long(entry.kind),
            _encode_frequent_bytes(entry.partition),
            encode_long(entry.bucket),
            encode_long(entry.total_buckets),
            encode_text(file.file_name),
            encode_long(file.file_size),
            encode_long(file.row_count),
            _encode_frequent_bytes(file.min_key),
            _encode_frequent_bytes(file.max_key),
            _encode_stats(file.key_stats),
            _encode_stats(file.value_stats),
            encode_long(file.min_sequence_number),
            encode_long(file.max_sequence_number),
            encode_long(file.schema_id),
            encode_long(file.level),
            encode_texts(file.extra_files),
            encode_nullable_long(file.creation_millis),
            encode_nullable_long(file.delete_row_count),
            encode_nullable_bytes(file.embedded_file_index),
            encode_nullable_long(file.file_source),
            _encode_columns(file.value_stats_cols),
            encode_nullable_text(file.external_path),
            encode_nullable_long(file.first_row_id),
            encode_nullable_texts(file.write_cols),
        )
    )


def _encode_stats(stats: SimpleStats) -> bytes:
    # The union of the null counts is never null: an empty array means that no column is covered.
    return b"".join(
        (
            encode_bytes(stats.min_values),
            encode_bytes(stats.max_values),
            PRESENT,
            _encode_null_counts(stats.null_counts),
        )
    )


# Of these, files that are committed together have few different ones.
_encode_frequent_bytes: Final = lru_cache(maxsize=256)(encode_bytes)
_encode_null_counts: Final = lru_cache(maxsize=256)(encode_nullable_longs)
_encode_columns: Final = lru_cache(maxsize=256)(encode_nullable_texts)


def _encode_manifest_meta(meta: ManifestFileMeta) -> bytes:
    return b"".join(
        (
            encode_long(_VERSION),
            encode_text(meta.file_name),
            encode_long(meta.file_size),
            encode_long(meta.num_added_files),
            encode_long(meta.num_deleted_files),
            _encode_stats(meta.partition_stats),
            encode_long(meta.schema_id),
            encode_nullable_long(meta.min_bucket),
            encode_nullable_long(meta.max_bucket),
            encode_nullable_long(meta.min_level),
            encode_nullable_long(meta.max_level),
            encode_nullable_long(meta.min_row_id),
            encode_nullable_long(meta.max_row_id),
        )
    )


def _check_version(version: int) -> None:
    if version != _VERSION:
        raise ValueError(
            f"its records have version {version}, expected {_VERSION} (a table this old must be rewritten)"
        )


def _or_empty(values: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return values or ()


_STATS: Final = RecordMapping(
    value_type=SimpleStats,
    slots={
        "_MIN_VALUES": FieldMapping(attribute="min_values"),
        "_MAX_VALUES": FieldMapping(attribute="max_values"),
        "_NULL_COUNTS": FieldMapping(attribute="null_counts", absent=(), adapt=_or_empty, repeats=True),
    },
)

_FILE: Final = RecordMapping(
    value_type=DataFileMeta,
    slots={
        "_FILE_NAME": FieldMapping(attribute="file_name", adapt=check_file_name),
        "_FILE_SIZE": FieldMapping(attribute="file_size"),
        "_ROW_COUNT": FieldMapping(attribute="row_count"),
        "_MIN_KEY": FieldMapping(attribute="min_key", repeats=True, run=1),
        "_MAX_KEY": FieldMapping(attribute="max_key", repeats=True, run=1),
        "_KEY_STATS": FieldMapping(attribute="key_stats", shape=_STATS, repeats=True, run=1),
        "_VALUE_STATS": FieldMapping(attribute="value_stats", shape=_STATS),
        "_MIN_SEQUENCE_NUMBER": FieldMapping(attribute="min_sequence_number"),
        "_MAX_SEQUENCE_NUMBER": FieldMapping(attribute="max_sequence_number"),
        "_SCHEMA_ID": FieldMapping(attribute="schema_id", run=2),
        "_LEVEL": FieldMapping(attribute="level", run=2),
        "_EXTRA_FILES": FieldMapping(attribute="extra_files", absent=(), adapt=check_file_names, run=2),
        "_CREATION_TIME": FieldMapping(attribute="creation_millis", absent=None),
        "_DELETE_ROW_COUNT": FieldMapping(attribute="delete_row_count", absent=None, run=3),
        "_EMBEDDED_FILE_INDEX": FieldMapping(attribute="embedded_file_index", absent=None, run=3),
        "_FILE_SOURCE": FieldMapping(attribute="file_source", absent=None, adapt=_SOURCES.__getitem__, run=3),
        "_VALUE_STATS_COLS": FieldMapping(attribute="value_stats_cols", absent=None, repeats=True, run=3),
        "_EXTERNAL_PATH": FieldMapping(attribute="external_path", absent=None, run=3),
        "_FIRST_ROW_ID": FieldMapping(attribute="first_row_id", absent=None),
        "_WRITE_COLS": FieldMapping(attribute="write_cols", absent=None, repeats=True),
        # Of Paimon 2.1: the sequence number of each column, in tables with data evolution, which nothing here reads.
        "_WRITE_COLS_SEQUENCES": PAST_ALIKE,
    },
    unknown="is_of_newer_release",
)

REQUIRED_FILE_FIELDS: Final = frozenset(name for name, slot in _FILE.slots.items() if slot.absent is REQUIRED)
"""Fields of ``_FILE`` that every manifest has."""

_ENTRY: Final = RecordMapping(
    value_type=ManifestEntry,
    slots={
        "_VERSION": FieldMapping(attribute=None, adapt=_check_version, run=1),
        "_KIND": FieldMapping(attribute="kind", adapt=_KINDS.__getitem__, run=1),
        "_PARTITION": FieldMapping(attribute="partition", repeats=True, run=1),
        "_BUCKET": FieldMapping(attribute="bucket", run=2),
        "_TOTAL_BUCKETS": FieldMapping(attribute="total_buckets", run=2),
        "_FILE": FieldMapping(attribute="file", shape=_FILE),
    },
)

_ALIKE_FIELDS: Final = (
    "_MIN_KEY",
    "_MAX_KEY",
    "_KEY_STATS",
    "_SCHEMA_ID",
    "_LEVEL",
    "_EXTRA_FILES",
    "_DELETE_ROW_COUNT",
    "_EMBEDDED_FILE_INDEX",
    "_FILE_SOURCE",
    "_VALUE_STATS_COLS",
    "_EXTERNAL_PATH",
    "_FIRST_ROW_ID",
    "_WRITE_COLS",
)

_NUMBER_FIELDS: Final = ("_FILE_NAME", "_FILE_SIZE", "_ROW_COUNT", "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER")

_FILE_NUMBERS: Final = RecordMapping(
    value_type=FileNumbers,
    slots={
        **{name: _FILE.slots[name] for name in _NUMBER_FIELDS},
        **dict.fromkeys(_ALIKE_FIELDS, PAST_ALIKE),
    },
)

_ENTRY_NUMBERS: Final = RecordMapping(
    value_type=EntryNumbers, slots={**_ENTRY.slots, "_FILE": FieldMapping(attribute="file", shape=_FILE_NUMBERS)}
)

_MANIFEST_META: Final = RecordMapping(
    value_type=ManifestFileMeta,
    slots={
        "_VERSION": FieldMapping(attribute=None, adapt=_check_version),
        "_FILE_NAME": FieldMapping(attribute="file_name", adapt=check_file_name),
        "_FILE_SIZE": FieldMapping(attribute="file_size"),
        "_NUM_ADDED_FILES": FieldMapping(attribute="num_added_files"),
        "_NUM_DELETED_FILES": FieldMapping(attribute="num_deleted_files"),
        "_PARTITION_STATS": FieldMapping(attribute="partition_stats", shape=_STATS),
        "_SCHEMA_ID": FieldMapping(attribute="schema_id"),
        "_MIN_BUCKET": FieldMapping(attribute="min_bucket", absent=None),
        "_MAX_BUCKET": FieldMapping(attribute="max_bucket", absent=None),
        "_MIN_LEVEL": FieldMapping(attribute="min_level", absent=None),
        "_MAX_LEVEL": FieldMapping(attribute="max_level", absent=None),
        "_MIN_ROW_ID": FieldMapping(attribute="min_row_id", absent=None),
        "_MAX_ROW_ID": FieldMapping(attribute="max_row_id", absent=None),
    },
)
