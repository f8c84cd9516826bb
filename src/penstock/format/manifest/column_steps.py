"""How each field of many manifest entries is read at once, into columns; unknown types and fields are refused.

Source:
    As ``files``; design/0093.
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.errors import FormatError
from penstock.format.avro.columns import Cursor, Even, Records, discard, longs_at, step_of
from penstock.format.avro.reader import field_types
from penstock.format.avro.schemas import MANIFEST_SCHEMA
from penstock.format.avro.shapes import Shape, mark_of
from penstock.format.avro.values import DEFAULT_LIMITS
from penstock.format.manifest.entry import FileKind, FileSource, StatsLayout
from penstock.format.manifest.files import REQUIRED_FILE_FIELDS, decode_entries_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.format.avro.columns import Array, Places, Step
    from penstock.format.avro.schemas import AvroType
    from penstock.format.avro.shapes import Mark

    ReadColumn: TypeAlias = Callable[["EntryReading"], None]

MAX_TEXT_BYTES: Final = 1_024
_MAX_NAME_BYTES: Final = 255
_ORC: Final = b".orc"
_PARQUET: Final = b".parquet"
_FACTOR: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


class EntryReading:
    """A cursor over entries, and the columns that were read: of one value where all entries have the same.

    Attributes:
        starts: where the entries begin.
        shape: of all entries, if they are known to be of one.
    """

    __slots__ = ("columns", "cursor", "shape", "starts")

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.starts = cursor.positions
        self.shape: EntryShape | None = None
        self.columns: dict[str, Any] = {}

    def check(self, is_good: Array) -> None:
        """Mark the entries of which this is not true."""
        self.cursor.is_good &= is_good


def text_rows(records: Records, starts: Places, sizes: Array) -> Array:
    """Return texts as a matrix of bytes, whose width is a multiple of 8, with zeros after the end of each."""
    longest, shortest = int(sizes.max(initial=1)), int(sizes.min(initial=MAX_TEXT_BYTES))
    rows = records.rows(starts, max(-(-longest // 8) * 8, 8))
    if longest % 8:
        rows.view("<u8")[:, -1] &= np.uint64((1 << 8 * (longest % 8)) - 1)
    if shortest < longest:
        rows[np.arange(rows.shape[1]) >= sizes[:, None]] = 0
    return rows


def hash_texts(rows: Array, sizes: Array) -> Array:
    """Return a hash of each text, which depends on its bytes only; ``rows`` as of ``text_rows``."""
    words = rows.view("<u8")
    # Texts of which one word differs have different hashes, since all factors are odd.
    factor = _FACTOR
    hashes: Array = sizes.astype(np.uint64) * np.uint64(factor)
    for place in range(words.shape[1]):
        factor = factor * _FACTOR & _WORD
        hashes += words[:, place] * np.uint64(factor)
    return hashes


def _are_plain_names(rows: Array, sizes: Array) -> Array:
    """Whether texts are names of files for sure; others may be too. ``rows`` as of ``text_rows``."""
    plain: Array = (sizes > 0) & (rows[:, 0] != 0x2E)
    # Not a control character, nor of more than 7 bits, nor a slash of either kind; the zeros are after the ends.
    text = rows.tobytes()
    if (
        int(rows.max(initial=0)) >= 0x7F
        or b"/" in text
        or b"\\" in text
        or np.count_nonzero(rows < 0x20) != rows.size - int(sizes.sum())
    ):
        is_other = ((rows < 0x20) | (rows >= 0x7F) | (rows == 0x2F) | (rows == 0x5C)) & (
            np.arange(rows.shape[1]) < sizes[:, None]
        )
        plain &= ~is_other.any(axis=1)
    return plain


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
    steps = steps_of(schema)
    if steps is None:
        raise AssertionError("the manifest was read by columns")
    steps.read_before_name(EntryReading(cursor))
    texts = text_rows(cursor.records, *cursor.spans())
    return np.ascontiguousarray(texts).view(f"S{texts.shape[1]}")[:, 0]


def read_details(cursor: Cursor, schema: str) -> Mapping[str, Array]:
    """Return the columns of ``_DETAILS``, for a cursor at the statistics of entries; as ``read_names``."""
    steps = steps_of(schema)
    if steps is None:
        raise AssertionError("the manifest was read by columns")
    reading = EntryReading(cursor)
    steps.read_details(reading)
    return reading.columns


def _are_plain_texts(records: Records, starts: Places, sizes: Array) -> Array:
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
    reading.columns["is_orc"] = _end_with(rows, sizes, _ORC)
    reading.columns["is_parquet"] = _end_with(rows, sizes, _PARQUET)


def _end_with(rows: Array, sizes: Array, suffix: bytes) -> Array:
    if len(sizes) and int(sizes.min()) == int(sizes.max()) >= len(suffix):
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


def _read_nullable(column: str) -> ReadColumn:
    def read(reading: EntryReading) -> None:
        reading.columns[column], reading.columns[f"has_{column}"] = reading.cursor.nullable_longs()

    return read


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
        reading.columns[f"{column}#"] = reading.cursor.positions[:] - starts[:]

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
_DETAILS: Final[dict[str, ReadColumn]] = {
    "_MIN_SEQUENCE_NUMBER": _read_long("min_sequence_number"),
    "_MAX_SEQUENCE_NUMBER": _read_long("max_sequence_number"),
    "_CREATION_TIME": _read_nullable("creation_millis"),
    "_DELETE_ROW_COUNT": _read_nullable("delete_row_count"),
    "_FILE_SOURCE": _read_nullable("file_source"),
}
"""Fields after the statistics that few readers need; of those that can be null, also whether they are not."""
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
_FREE: Final = frozenset({*_VARYING, "_BUCKET"})
"""Fields of which the values differ in entries of one shape."""
_LONGS: Final = {"_BUCKET": "bucket", "_FILE_SIZE": "file_size", "_ROW_COUNT": "row_count"}
_POSITIONS: Final = frozenset({"partition@", "stats_starts", "stats_cols@", "write_cols@"})
# To read fewer entries by their shape takes longer than to read them with others.
_MIN_ALIKE: Final = 128
_MAX_SHAPES: Final = 64
_MAX_FAILURES: Final = 1
_SAMPLES: Final = 16
_MAX_ENTRY_BYTES: Final = 4096
_SURE_INT_BYTES: Final = 4


class _Field(NamedTuple):
    """How a field of an entry is read, and marked for shapes."""

    name: str
    read: ReadColumn
    mark: Mark


class EntrySteps:
    """Reads entries of one schema.

    Entries of frequent shapes are read at once; the shapes are kept for other manifests of this schema.
    """

    def __init__(self, fields: Sequence[_Field]) -> None:
        self._fields = fields
        self._runs: list[tuple[str, ReadColumn]] = []
        self._shapes: tuple[EntryShape, ...] = ()
        for varies, group in groupby(fields, lambda field: field.name in _VARYING):
            run = tuple(group)
            steps = tuple(field.read for field in run)
            self._runs += [(field.name, field.read) for field in run] if varies else [("", partial(_read_alike, steps))]

    def read(self, reading: EntryReading) -> None:
        """Read all columns; the cursor's positions are ascending, and are moved to the end of each entry."""
        cursor = reading.cursor
        starts, left = cursor.positions[:], np.ones(len(cursor.positions), bool)
        parts: list[tuple[Array, EntryReading]] = []
        for shape, chosen in self._by_shape(cursor.records, starts):
            part = EntryReading(cursor.some(chosen))
            shape.read(part)
            parts.append((chosen, part))
            left[chosen] = False
        if not parts or left.any():
            chosen = np.flatnonzero(left)
            part = EntryReading(cursor.some(chosen))
            self._read_any(part)
            parts.append((chosen, part))
        if len(parts) == 1:
            (_, part) = parts[0]
            cursor.positions, cursor.is_good, reading.columns = part.cursor.positions, part.cursor.is_good, part.columns
            reading.shape = part.shape
            return
        for chosen, part in parts:
            cursor.rejoin(part.cursor, chosen)
            for name, column in part.columns.items():
                reading.columns.setdefault(name, np.zeros(len(starts), column.dtype))[chosen] = column

    def read_alike(self, records: Records, sizes: Sequence[int], counts: Sequence[int]) -> EntryReading | None:
        """Read all columns if all entries are of one shape that was seen before; None if they are not.

        Args:
            sizes: bytes of each block.
            counts: entries of each block.
        """
        for shape in self._shapes:
            width = shape.width
            if sizes == [width * count for count in counts] and shape.are_all(records):
                reading = EntryReading(Cursor(records, Even(0, width, records.size // width)))
                shape.read(reading)
                return reading
        return None

    def read_before_name(self, reading: EntryReading) -> None:
        """Read the columns before the name of the file."""
        for name, read in self._runs:
            if name == "_FILE_NAME":
                return
            read(reading)

    def read_details(self, reading: EntryReading) -> None:
        """Read the columns of ``_DETAILS``, from the statistics on."""
        names = [field.name for field in self._fields]
        for field in self._fields[names.index("_VALUE_STATS") :]:
            (_DETAILS.get(field.name) or field.read)(reading)

    def _read_any(self, reading: EntryReading) -> None:
        for _, read in self._runs:
            read(reading)

    def _by_shape(self, records: Records, starts: Array) -> Iterator[tuple[EntryShape, Array]]:
        """Yield shapes, each with the indexes of the entries of this shape, if they are many."""
        sizes = np.diff(starts, append=records.size)
        widths = sizes[:1] if (sizes == sizes[:1]).all() else _frequent(sizes)
        failures = 0
        for width in widths.tolist():
            chosen = np.flatnonzero(sizes == width)
            # Without those of other tables that have as many bytes.
            some = starts[chosen[:: len(chosen) // _SAMPLES + 1]]
            known = [shape for shape in self._shapes if shape.width == width and shape.matching(records, some).any()]
            while len(chosen) >= _MIN_ALIKE and failures < _MAX_FAILURES:
                shape = known.pop(0) if known else self._new_shape(records, starts[chosen])
                matches = np.zeros(len(chosen), bool) if shape is None else shape.matching(records, starts[chosen])
                if shape is None or np.count_nonzero(matches) < _MIN_ALIKE:
                    failures += 1
                    continue
                self._shapes = (shape, *(each for each in self._shapes if each is not shape))[:_MAX_SHAPES]
                yield shape, chosen[matches]
                chosen = chosen[~matches]

    def _new_shape(self, records: Records, starts: Array) -> EntryShape | None:
        """Return the shape of the first entry, if it is of use for others."""
        shape = EntryShape.of_entry(self._fields, records, int(starts[0]))
        if shape is None or np.count_nonzero(shape.matching(records, starts)) < _MIN_ALIKE:
            return None
        first = EntryReading(Cursor(records, starts[:1]))
        items = records.items
        self._read_any(first)
        shape.items = records.items - items
        records.items = items
        if not first.cursor.is_good[0] or first.cursor.positions[0] != starts[0] + shape.width:
            return None
        shape.columns = {
            name: int(column[0]) - int(starts[0]) if name in _POSITIONS else column
            for name, column in first.columns.items()
        }
        return shape


def _frequent(sizes: Array) -> Array:
    """Return the values that occur often, the most frequent one first."""
    values, counts = np.unique(sizes, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    frequent: Array = values[order[counts[order] >= _MIN_ALIKE]]
    return frequent


class EntryShape:
    """Entries that differ only in the values of some fields, whose places are equal.

    Attributes:
        columns: of any such entry, for fields that are equal in all of them; of positions, from its start.
        items: of arrays in one entry.
        layout: of their statistics; None until it is known.
    """

    __slots__ = ("_longs", "_name_start", "_shape", "columns", "items", "layout")

    def __init__(self, shape: Shape, name_start: int, longs: Mapping[str, tuple[int, int]]) -> None:
        self._shape = shape
        self._name_start = name_start
        self._longs = longs
        self.columns: dict[str, Any] = {}
        self.items = 0
        self.layout: StatsLayout | None = None

    @classmethod
    def of_entry(cls, fields: Sequence[_Field], records: Records, start: int) -> EntryShape | None:
        """Return the shape of an entry, without ``columns``; None if it is not a sound one."""
        data = records.part(start, start + _MAX_ENTRY_BYTES)
        mask = bytearray(len(data))
        position = 0
        places: dict[str, tuple[int, int]] = {}
        try:
            for name, _, mark in fields:
                end = mark(data, position, mask)
                places[name] = position, end
                if name not in _FREE:
                    mask[position:end] = b"\xff" * (end - position)
                position = end
        except (ValueError, IndexError):
            return None
        longs = {column: places[name] for name, column in _LONGS.items()}
        created = places.get("_CREATION_TIME")
        if created is not None and data[created[0]]:
            longs["created_millis"] = created[0] + 1, created[1]
        if longs["bucket"][1] - longs["bucket"][0] > _SURE_INT_BYTES:
            return None
        name_start, name_end = places["_FILE_NAME"]
        mask[max(name_end - len(_ORC), name_start) : name_end] = b"\xff" * min(len(_ORC), name_end - name_start)
        return cls(Shape(data[:position], bytes(mask[:position])), name_start, longs)

    @property
    def width(self) -> int:
        """Number of bytes of an entry."""
        return self._shape.width

    def matching(self, records: Records, starts: Array) -> Array:
        """Return whether an entry of this shape is at each start."""
        return self._shape.matching(records, starts)

    def are_all(self, records: Records) -> bool:
        """Whether the bytes are entries of this shape, from the start to the end."""
        return self._shape.are_all(records)

    def read(self, reading: EntryReading) -> None:
        """Read all columns of entries of this shape."""
        cursor, records = reading.cursor, reading.cursor.records
        starts = cursor.positions
        reading.columns = {
            name: starts + value if name in _POSITIONS else value for name, value in self.columns.items()
        }
        for name, (start, end) in self._longs.items():
            reading.columns[name] = longs_at(records, starts + start, end - start)
        cursor.skip(self._name_start)
        reading.columns["name_hash"] = hash_texts(*_name_rows(cursor))
        records.items += self.items * len(starts)
        reading.shape = self
        cursor.positions = starts + self.width


@lru_cache(maxsize=32)
def steps_of(schema: str) -> EntrySteps | None:
    """Return the steps that read an entry; None if an entry of this schema is not known here."""
    try:
        decode_entries_at(b"", (), schema, "", DEFAULT_LIMITS)  # refuses each schema that the record decoder refuses
        fields = field_types(json.loads(schema))
        file_fields = field_types(fields["_FILE"])
        if tuple(fields)[:3] != _FIRST_FIELDS or not fields.keys() >= _ENTRY_STEPS.keys():
            return None
        if not file_fields.keys() >= REQUIRED_FILE_FIELDS:
            return None
        steps: list[_Field | None] = []
        for name, avro_type in fields.items():
            if name == "_FILE":
                steps += [_field_of(each, file_fields[each], _FILE_TYPES, _FILE_STEPS) for each in file_fields]
            else:
                steps.append(_field_of(name, avro_type, _ENTRY_TYPES, _ENTRY_STEPS))
    except (FormatError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    known = [step for step in steps if step]
    return EntrySteps(known) if len(known) == len(steps) else None


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


def _field_of(
    name: str, avro_type: AvroType, types: Mapping[str, object], steps: Mapping[str, ReadColumn]
) -> _Field | None:
    plain = _plain(avro_type)
    past, mark = step_of(avro_type), mark_of(avro_type)
    if types.get(name, plain) != plain or past is None or mark is None:
        return None
    return _Field(name, steps.get(name) or (lambda reading: past(reading.cursor)), mark)


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
