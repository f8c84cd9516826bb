"""Decode all records of an Avro file, as values or as dicts."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.format.avro.container import damaged, decode_container, too_large
from penstock.format.avro.reader import RecordMapping, dict_reader, record_reader
from penstock.format.avro.values import DEFAULT_LIMITS, RECORDS_KEY, AvroLimits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.avro.container import Container
    from penstock.format.avro.reader import RecordReader
    from penstock.format.avro.values import Read

    # The schema's text, the identity of the mapping (which the reader keeps alive), and the limit on records.
    _Key: TypeAlias = tuple[str, int, int]

_MOST_SCHEMA_CHARACTERS: Final = 20_000  # the schema of a manifest has 3,000
_MOST_SCHEMAS: Final = 32
_MOST_IDLE: Final = 8  # threads that read files of one schema at once

# Errors of reading bytes that do not match the schema, and of invalid schemas.
_DAMAGES: Final = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, struct.error)


def decode_values(data: bytes, path: str, shape: RecordMapping, limits: AvroLimits = DEFAULT_LIMITS) -> list[Any]:
    """Decode the records of an Avro file to values.

    Args:
        data: the whole file.
        path: for messages only.
        shape: mapping of records to values.

    Returns:
        Values of the shape's type, in file order.
    """
    container = decode_container(data, path, limits)
    key = container.schema, id(shape), limits.records
    try:
        reader = _READERS.take(key) or record_reader(json.loads(container.schema), shape, limits)
        reader.items.start_file()
        values = _read_all(container, path, reader.read, limits)
    except _DAMAGES as error:
        raise damaged(path, _reason(error)) from error
    _READERS.give_back(key, reader)
    return values


def decode_values_at(
    payload: bytes, positions: Iterable[int], schema: str, path: str, shape: RecordMapping, limits: AvroLimits
) -> list[Any]:
    """Decode some records of a block to values.

    Args:
        payload: the uncompressed block, or several.
        positions: where the records begin.
        schema: the writer's, as JSON text.
        path: for messages only.
        shape: mapping of records to values.
        limits: how much the file may hold.
    """
    key = schema, id(shape), limits.records
    try:
        reader = _READERS.take(key) or record_reader(json.loads(schema), shape, limits)
        reader.items.start_file()
        values = [reader.read(payload, position)[0] for position in positions]
    except _DAMAGES as error:
        raise damaged(path, _reason(error)) from error
    _READERS.give_back(key, reader)
    return values


def decode_records(data: bytes, path: str) -> list[dict[str, Any]]:
    """Decode the records of an Avro file to dicts; nested records are tuples."""
    container = decode_container(data, path, DEFAULT_LIMITS)
    try:
        return _read_all(container, path, dict_reader(json.loads(container.schema)), DEFAULT_LIMITS)
    except _DAMAGES as error:
        raise damaged(path, _reason(error)) from error


def _read_all(container: Container, path: str, read: Read, limits: AvroLimits) -> list[Any]:
    values: list[Any] = []
    for count, payload in container.blocks:
        # A record takes at least one byte: no metadata record consists of nulls only.
        if not 0 <= count <= len(payload):
            raise ValueError(f"a block of {len(payload)} bytes claims to have {count} records")
        if len(values) + count > limits.records:
            raise too_large(path, "it has more records than", RECORDS_KEY, limits.records)
        position = 0
        for _ in range(count):
            value, position = read(payload, position)
            values.append(value)
        if position != len(payload):
            raise ValueError("a block's records and its length do not agree")
    return values


class _Readers:
    """Idle readers by schema; making one takes three times as long as reading a small manifest with it."""

    def __init__(self) -> None:
        self._idle: dict[_Key, list[RecordReader]] = {}

    def take(self, key: _Key) -> RecordReader | None:
        """Return an idle reader, which the caller alone uses until it gives it back; None if there is none."""
        try:
            return self._idle[key].pop()
        except (KeyError, IndexError):
            return None

    def give_back(self, key: _Key, reader: RecordReader) -> None:
        """Keep a reader, unless its schema is larger than that of any manifest, or many are kept."""
        if len(key[0]) > _MOST_SCHEMA_CHARACTERS:
            return
        if len(self._idle) > _MOST_SCHEMAS:
            self._idle.clear()
        idle = self._idle.setdefault(key, [])
        if len(idle) < _MOST_IDLE:
            idle.append(reader)


_READERS: Final = _Readers()


def _reason(error: Exception) -> str:
    match error:
        case IndexError() | struct.error():
            return "it ends inside a record"
        case RecursionError():
            return "its Avro schema is nested too deeply"
        case KeyError():
            return f"it has {error} where that means nothing"
        case _:
            return str(error)
