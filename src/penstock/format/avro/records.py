"""Decode all records of an Avro file, as values or as dicts."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

from penstock.format.avro.container import damaged, decode_container, too_large
from penstock.format.avro.reader import RecordMapping, dict_reader, record_reader
from penstock.format.avro.values import DEFAULT_LIMITS, RECORDS_KEY, AvroLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.avro.schemas import AvroType
    from penstock.format.avro.values import Read

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

    Raises:
        FormatError: empty, truncated or damaged data, not an Avro file, other records, or limits exceeded.
        UnsupportedFeatureError: an unknown codec.
    """
    return _decode(data, path, lambda schema: record_reader(schema, shape, limits), limits)


def decode_records(data: bytes, path: str) -> list[dict[str, Any]]:
    """Decode the records of an Avro file to dicts; nested records are tuples. Errors as in ``decode_values``."""
    return _decode(data, path, dict_reader, DEFAULT_LIMITS)


def _decode(data: bytes, path: str, make_reader: Callable[[AvroType], Read], limits: AvroLimits) -> list[Any]:
    container = decode_container(data, path, limits)
    values: list[Any] = []
    try:
        read = make_reader(json.loads(container.schema))
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
    except _DAMAGES as error:
        raise damaged(path, _reason(error)) from error
    return values


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
