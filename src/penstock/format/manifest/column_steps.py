"""How each field of many manifest entries is read at once, into columns; unknown types and fields are refused.

Source:
    As ``files``; design/0093.
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from penstock.format.avro.columns import Cursor, Records, discard, step_of
from penstock.format.avro.reader import field_types
from penstock.format.avro.schemas import MANIFEST_SCHEMA
from penstock.format.manifest.entry import FileKind, FileSource
from penstock.format.manifest.files import REQUIRED_FILE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.format.avro.columns import Array, Step
    from penstock.format.avro.schemas import AvroType

    ReadColumn: TypeAlias = Callable[["EntryReading"], None]

MAX_TEXT_BYTES: Final = 1_024
_MAX_NAME_BYTES: Final = 255
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class EntryReading:
    """A cursor over entries, and the columns that were read."""

    __slots__ = ("columns", "cursor")

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.columns: dict[str, Array] = {}

    def check(self, is_good: Array) -> None:
        """Mark the entries of which this is not true."""
        self.cursor.is_good &= is_good


def text_rows(records: Records, starts: Array, sizes: Array) -> Array:
    """Return texts as a matrix of bytes, whose width is a multiple of 8, with zeros after the end of each."""
    longest, shortest = int(sizes.max(initial=1)), int(sizes.min(initial=MAX_TEXT_BYTES))
    rows = records.rows(starts, max(-(-longest // 8) * 8, 8))
    rows[:, longest:] = 0
    if shortest < longest:
        rows[np.arange(rows.shape[1]) >= sizes[:, None]] = 0
    return rows


def hash_texts(rows: Array, sizes: Array) -> Array:
    """Return a hash of each text, which depends on its bytes only; ``rows`` as of ``text_rows``."""
    words = rows.view("<u8")
    hashes: Array = sizes.astype(np.uint64) * _MIX
    shortest = int(sizes.min(initial=0))
    for place in range(words.shape[1]):
        mixed = (hashes ^ words[:, place]) * _MIX
        mixed ^= mixed >> _SHIFT
        hashes = mixed if shortest > 8 * place else np.where(sizes > 8 * place, mixed, hashes)
    return hashes


def _are_plain_names(rows: Array, sizes: Array) -> Array:
    """Whether texts are names of files for sure; others may be too. ``rows`` as of ``text_rows``."""
    # Not a control character, nor of more than 7 bits, nor a slash of either kind; below 0x20, subtraction wraps.
    is_other = ((rows - np.uint8(0x20)) > 0x5E) | (rows == 0x2F) | (rows == 0x5C)
    if int(sizes.min(initial=0)) < rows.shape[1]:
        is_other &= np.arange(rows.shape[1]) < sizes[:, None]
    plain: Array = (sizes > 0) & (rows[:, 0] != 0x2E)
    return plain & ~is_other.any(axis=1) if is_other.any() else plain


def _name_rows(cursor: Cursor) -> tuple[Array, Array]:
    """Pass names of files; return them as of ``text_rows``, and their sizes."""
    starts, sizes = cursor.spans()
    fits = sizes <= _MAX_NAME_BYTES
    sizes = np.where(fits, sizes, 0)
    rows = text_rows(cursor.records, starts, sizes)
    cursor.is_good &= fits & _are_plain_names(rows, sizes)
    return rows, sizes


def read_names(cursor: Cursor, schema: str) -> Array:
    """Return the names of files, as bytes, for a cursor at entries of a schema that ``steps_of`` knows."""
    for step in takewhile(lambda step: step is not _read_name, steps_of(schema) or ()):
        step(EntryReading(cursor))
    texts, _ = _name_rows(cursor)
    return np.ascontiguousarray(texts).view(f"S{texts.shape[1]}")[:, 0]


def _are_plain_texts(records: Records, starts: Array, sizes: Array) -> Array:
    """Whether texts are short and of ASCII only."""
    fits = sizes <= MAX_TEXT_BYTES
    plain: Array = fits & (text_rows(records, starts, np.where(fits, sizes, 0)) < 0x80).all(axis=1)
    return plain


def _read_version(reading: EntryReading) -> None:
    reading.check(reading.cursor.ints() == 2)


def _read_kind(reading: EntryReading) -> None:
    kinds = reading.cursor.ints()
    reading.check((kinds == FileKind.ADD) | (kinds == FileKind.DELETE))
    reading.columns["is_delete"] = kinds == FileKind.DELETE


def _read_partition(reading: EntryReading) -> None:
    reading.columns["partition@"], reading.columns["partition#"] = reading.cursor.spans()


def _read_name(reading: EntryReading) -> None:
    rows, sizes = _name_rows(reading.cursor)
    reading.columns["name_hash"] = hash_texts(rows, sizes)
    reading.columns["is_orc"] = _end_with(rows, sizes, b".orc")


def _end_with(rows: Array, sizes: Array, suffix: bytes) -> Array:
    if int(sizes.min(initial=0)) == int(sizes.max(initial=0)) >= len(suffix):
        ends = rows[:, int(sizes[0]) - len(suffix) : int(sizes[0])]
    else:
        places = np.maximum(sizes[:, None] - len(suffix) + np.arange(len(suffix)), 0)
        ends = np.take_along_axis(rows, places, axis=1)
    has_suffix: Array = (sizes >= len(suffix)) & (ends == np.frombuffer(suffix, np.uint8)).all(axis=1)
    return has_suffix


def _read_long(column: str) -> Callable[[EntryReading], None]:
    def read(reading: EntryReading) -> None:
        reading.columns[column] = reading.cursor.longs()

    return read


def _read_int(column: str) -> Callable[[EntryReading], None]:
    def read(reading: EntryReading) -> None:
        reading.columns[column] = reading.cursor.ints()

    return read


def _read_statistics(reading: EntryReading) -> None:
    cursor = reading.cursor
    reading.columns["stats_starts"] = cursor.positions
    cursor.spans()
    cursor.spans()
    cursor.alike(_PAST_NULL_COUNTS)


def _read_extra_files(reading: EntryReading) -> None:
    reading.columns["extra_files"] = reading.cursor.items(lambda cursor: discard(_name_rows(cursor)))


def _read_index(reading: EntryReading) -> None:
    present = reading.cursor.nullable(lambda cursor: discard(cursor.spans()))
    reading.columns["index"] = present.astype(np.int64)


def _read_creation(reading: EntryReading) -> None:
    reading.columns["created_millis"], _ = reading.cursor.nullable_longs()


def _read_source(reading: EntryReading) -> None:
    def source(cursor: Cursor) -> None:
        sources = cursor.ints()
        cursor.is_good &= (sources == FileSource.APPEND) | (sources == FileSource.COMPACT)

    reading.cursor.nullable(source)


def _read_external_path(reading: EntryReading) -> None:
    def path(cursor: Cursor) -> None:
        cursor.is_good &= _are_plain_texts(cursor.records, *cursor.spans())

    reading.columns["is_external"] = reading.cursor.nullable(path)


def _read_columns(column: str) -> Callable[[EntryReading], None]:
    def read(reading: EntryReading) -> None:
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
def steps_of(schema: str) -> tuple[ReadColumn, ...] | None:
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


def _read_alike(steps: Sequence[ReadColumn], reading: EntryReading) -> None:
    """Read fields that most entries share: the bytes of the first entry are compared with those of the others."""
    cursor, records = reading.cursor, reading.cursor.records
    count, items = len(cursor.positions), records.items
    first = EntryReading(cursor.some(np.arange(count) < 1))
    for step in steps:
        step(first)
    items = records.items - items
    width = int(first.cursor.positions[0] - cursor.positions[0]) if count else 0
    if not 0 < width <= MAX_TEXT_BYTES or not first.cursor.is_good[0]:
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
    part = EntryReading(Cursor(records, starts[differs]))
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
