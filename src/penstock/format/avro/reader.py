"""Decode Avro records directly to values, for any writer schema.

A writer's schema is compiled to a tree of small functions, which assign the decoded fields to the slots of the values.
Fields are found by name; unknown fields are skipped. For 100,000 manifest entries that takes 1.3 s; fastavro takes
1.0 s to make dicts, and converting them to values another 1.1 s (2 cores, Python 3.11).

The number of types in a writer's schema is limited.

Source:
    Avro 1.11 specification, "Binary Encoding"; Paimon ``format:avro/FieldReaderFactory.java``; docs/spec/format.md
    section 4; "Schema Declaration".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from penstock.format.avro.skip import ItemLimits, read_past, skipper
from penstock.format.avro.values import (
    DEFAULT_LIMITS,
    ITEMS_PER_RECORD,
    PRIMITIVES,
    read_item_count,
    read_long,
    read_text,
    takes_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.format.avro.schemas import AvroType
    from penstock.format.avro.values import AvroLimits, Read


MOST_TYPES: Final = 100_000
"""Maximum number of types in a schema, each counted per reference; a manifest has about 70."""


class NamedTypes:
    """The named types of a schema, to which other places of the schema refer by name.

    If each type refers to the next one twice, the expanded size grows exponentially with the number of types; so code
    that traverses a schema counts the types with ``count``.

    Args:
        schema: the whole schema, as parsed JSON.
        most_items: maximum number of items in all arrays of the file together.
        refuses_empty_items: see below.

    Attributes:
        items: limits of the items in arrays.
        refuses_empty_items: whether arrays of items without bytes are refused, whatever their number.
    """

    def __init__(self, schema: AvroType, most_items: int, *, refuses_empty_items: bool = False) -> None:
        self.items = ItemLimits(most_items)
        self.refuses_empty_items = refuses_empty_items
        self._types: dict[str, AvroType] = {}
        self._left = MOST_TYPES
        self._collect(schema)

    def find(self, name: str) -> AvroType:
        """Return a type by its name, with or without namespace. Raises ``KeyError``."""
        return self._types[_short(name)]

    def count(self) -> None:
        """Count one type."""
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"its Avro schema has more than {MOST_TYPES} types")

    def _collect(self, schema: AvroType) -> None:
        if isinstance(schema, dict):
            if schema.get("type") in ("record", "fixed", "enum"):
                self._types[_short(str(schema["name"]))] = schema
            for part in schema.values():
                self._collect(part)
        elif isinstance(schema, list):
            for part in schema:
                self._collect(part)


def field_types(schema: AvroType) -> dict[str, AvroType]:
    """Return the types of a record's fields, by name in file order."""
    fields = schema.get("fields") if isinstance(schema, dict) and schema.get("type") == "record" else None
    if not isinstance(fields, list):
        raise ValueError("its Avro schema is not that of a record")  # noqa: TRY004 - a damaged file is no type error
    types = {str(field["name"]): field["type"] for field in fields if isinstance(field, dict)}
    if len(types) < len(fields):
        raise ValueError("its Avro schema has a record with two fields of one name")
    return types


def _short(name: str) -> str:
    return name.rpartition(".")[2]


REQUIRED: Final = object()
_PRESENT: Final = 2  # branch 1 of a union


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMapping:
    """Mapping of a record's field to an attribute.

    Attributes:
        attribute: name of the attribute; None if ``adapt`` only checks the field.
        absent: the attribute's value if the writer's schema lacks the field.
        adapt: converts the Avro value to the attribute's value; None for no conversion.
        shape: mapping of a field that is itself a record.
        repeats: whether consecutive records often have equal values; then bytes are compared first and the value
            shared.
        run: fields with one number that follow each other are compared as one, as they mostly repeat together; 0 for
            none.
    """

    attribute: str | None
    absent: object = REQUIRED
    adapt: Callable[[Any], object] | None = None
    shape: RecordMapping | None = None
    repeats: bool = False
    run: int = 0


PAST: Final = FieldMapping(attribute=None)
"""For a field that is not needed; fields without a slot are treated alike."""

PAST_ALIKE: Final = FieldMapping(attribute=None, absent=None, repeats=True)
"""Like ``PAST``, for fields whose values often repeat; a run of such fields is compared as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMapping:
    """Mapping of a record to a value.

    Attributes:
        value_type: a slotted dataclass; ``slots`` set all its attributes.
        slots: by the name of the record's field.
        unknown: name of the attribute that is true if the writer's schema has other fields; None for no attribute.
    """

    value_type: type
    slots: Mapping[str, FieldMapping]
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Reads the records of files with one schema, one file after another; not for several threads.

    Attributes:
        read: reads one record; it caches the last values that it read.
        items: limits of one file; start them again for each file.
        shape: mapping to values.
    """

    read: Read
    items: ItemLimits
    shape: RecordMapping


def record_reader(schema: AvroType, shape: RecordMapping, limits: AvroLimits) -> RecordReader:
    """Return a reader of records.

    Args:
        schema: the writer's, as parsed JSON.
        shape: mapping to values.
        limits: how much the file may hold.
    """
    field_types(schema)
    named = NamedTypes(schema, limits.records * ITEMS_PER_RECORD)
    return RecordReader(_reader(schema, named, shape), named.items, shape)


def dict_reader(schema: AvroType) -> Read:
    """Return a function that reads a record into a dict, nested records into tuples."""
    names = tuple(field_types(schema))
    read_tuple = _reader(schema, NamedTypes(schema, DEFAULT_LIMITS.records * ITEMS_PER_RECORD))

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        values, position = read_tuple(data, position)
        return dict(zip(names, values, strict=True)), position

    return read


def check_schema(schema: AvroType) -> None:
    """Refuse a schema that would make a reader loop forever, or nearly so."""
    field_types(schema)
    _reader(schema, NamedTypes(schema, 0, refuses_empty_items=True))


def _reader(avro_type: AvroType, named: NamedTypes, shape: RecordMapping | None = None) -> Read:
    """Return a function that reads one value of any type; without a shape, records become tuples."""
    named.count()
    if isinstance(avro_type, str):
        return PRIMITIVES.get(avro_type) or _reader(named.find(avro_type), named, shape)
    if isinstance(avro_type, list):
        return _union_reader(avro_type, named, shape)
    if avro_type is None:
        raise ValueError("its Avro schema has a null where a type belongs")
    kind = avro_type["type"]
    make = _COMPLEX.get(kind) if isinstance(kind, str) else None
    return make(avro_type, named, shape) if make else _reader(kind, named, shape)


def _union_reader(branches: list[AvroType], named: NamedTypes, shape: RecordMapping | None) -> Read:
    reads = [_reader(branch, named, shape) for branch in branches]
    if len(branches) == 2 and branches[0] == "null":
        return _nullable(reads[1])

    def read(data: bytes, position: int) -> tuple[Any, int]:
        branch, position = read_long(data, position)
        if branch < 0:
            raise ValueError("the branch of a union is negative")
        return reads[branch](data, position)

    return read


def _record_reader(schema: dict[str, AvroType], named: NamedTypes, shape: RecordMapping | None) -> Read:
    types = field_types(schema)
    return _shaped(types, named, shape) if shape else _sequence([_reader(part, named) for part in types.values()])


def _shaped(types: Mapping[str, AvroType], named: NamedTypes, shape: RecordMapping) -> Read:
    value_type = shape.value_type
    for name, slot in shape.slots.items():
        if name not in types and slot.absent is REQUIRED:
            raise ValueError(f"its records have no field {name}, so they are something else")
    steps: list[tuple[Read, Callable[[Any, Any], None]]] = []
    fields = [(types[name], shape.slots.get(name, PAST)) for name in types]
    for past, run in groupby(fields, lambda field: field[1] if field[1] in (PAST, PAST_ALIKE) else field[1].run):
        if isinstance(past, int) and past:
            parts = list(run)
            reads = [_slot_reader(part, named, slot) for part, slot in parts]
            steps.append((_repeating(_sequence(reads)), _setter_of_all(value_type, [slot for _, slot in parts])))
        elif past == 0:
            steps += [(_slot_reader(part, named, slot), _setter(value_type, slot)) for part, slot in run]
        else:
            skip = read_past([skipper(part, lambda part: _reader(part, named), named.items) for part, _ in run])
            steps.append((_repeating(skip) if past.repeats else skip, _ignore))
    absent = [(_setter(value_type, slot), slot.absent) for name, slot in shape.slots.items() if name not in types]
    if shape.unknown:
        absent.append(
            (_setter(value_type, FieldMapping(attribute=shape.unknown)), not types.keys() <= shape.slots.keys())
        )
    new = object.__new__

    def read(data: bytes, position: int) -> tuple[Any, int]:
        # Set slot by slot: a frozen dataclass's own __init__ takes twice the time.
        value: object = new(value_type)
        for read_field, put in steps:
            field, position = read_field(data, position)
            put(value, field)
        for put, field in absent:
            put(value, field)
        return value, position

    return read


def _slot_reader(avro_type: AvroType, named: NamedTypes, slot: FieldMapping) -> Read:
    read = _reader(avro_type, named, slot.shape)
    if slot.adapt:
        read = _adapted(read, slot.adapt)
    return _repeating(read) if slot.repeats else read


def _setter(value_type: type, slot: FieldMapping) -> Callable[[Any, Any], None]:
    if slot.attribute is None:
        return _ignore
    setter: Callable[[Any, Any], None] = getattr(value_type, slot.attribute).__set__
    return setter


def _setter_of_all(value_type: type, slots: Sequence[FieldMapping]) -> Callable[[Any, Any], None]:
    places = [(place, _setter(value_type, slot)) for place, slot in enumerate(slots) if slot.attribute is not None]

    def put_all(value: object, fields: Sequence[object]) -> None:
        for place, put in places:
            put(value, fields[place])

    return put_all


def _ignore(_value: object, _field: object) -> None:
    """Assign nothing."""


def _adapted(read: Read, adapt: Callable[[Any], object]) -> Read:
    def read_adapted(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read(data, position)
        return adapt(value), position

    return read_adapted


def _repeating(read: Read) -> Read:
    """Return the last value again if the same bytes follow; safe, as no Avro encoding is a prefix of another."""
    raw, last = b"", None

    def read_repeating(data: bytes, position: int) -> tuple[Any, int]:
        nonlocal raw, last
        if raw and data.startswith(raw, position):
            return last, position + len(raw)
        last, end = read(data, position)
        raw = data[position:end]
        return last, end

    return read_repeating


def _fixed(size: int) -> Read:
    if size < 0:
        raise ValueError("its Avro schema has a fixed type of a negative size")
    return lambda data, position: (data[position : position + size], position + size)


def _nullable(read: Read) -> Read:
    def read_nullable(data: bytes, position: int) -> tuple[Any, int]:
        branch = data[position]
        if branch == _PRESENT:
            return read(data, position + 1)
        if branch:
            raise ValueError("a value is neither null nor present")
        return None, position + 1

    return read_nullable


def _array(read: Read, named: NamedTypes) -> Read:
    has_bytes = takes_bytes(read)
    if not has_bytes and named.refuses_empty_items:
        raise ValueError("its Avro schema has an array or a map of items that take no bytes")
    items = named.items

    def read_array(data: bytes, position: int) -> tuple[tuple[Any, ...], int]:
        values: list[Any] = []
        count, position = read_item_count(data, position)
        while count:
            items.check(count, len(data) - position, takes_bytes=has_bytes, is_kept=True)
            for _ in range(count):
                value, position = read(data, position)
                values.append(value)
            count, position = read_item_count(data, position)
        return tuple(values), position

    return read_array


def _sequence(reads: list[Read]) -> Read:
    def read(data: bytes, position: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for read_one in reads:
            value, position = read_one(data, position)
            values.append(value)
        return tuple(values), position

    return read


_COMPLEX: Final[dict[str, Callable[[dict[str, AvroType], NamedTypes, RecordMapping | None], Read]]] = {
    "record": _record_reader,
    "array": lambda schema, named, _shape: _array(_reader(schema["items"], named), named),
    "map": lambda schema, named, _shape: _array(_sequence([read_text, _reader(schema["values"], named)]), named),
    "fixed": lambda schema, _named, _shape: _fixed(int(str(schema["size"]))),
    "enum": lambda _schema, _named, _shape: read_long,
}
