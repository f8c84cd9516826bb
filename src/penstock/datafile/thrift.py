"""Thrift's compact protocol as plain values: enough to read a Parquet footer, change it, and write it.

Integers are kept in zigzag form, since no code here does arithmetic with them.

Source:
    Apache Thrift compact protocol specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

from penstock.errors import FormatError


class Kind(IntEnum):
    """Wire types."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    STRUCT = 12


@dataclass(slots=True)
class ThriftList:
    """A list of elements of one kind."""

    kind: Kind
    items: list[Any]


@dataclass(slots=True)
class ThriftStruct:
    """A struct: by field id the wire type and the value."""

    fields: dict[int, tuple[Kind, ThriftValue]] = field(default_factory=dict)

    def get(self, field_id: int) -> Any:  # noqa: ANN401 - as many kinds as Thrift has
        """Return the value of a field, None if it is absent."""
        found = self.fields.get(field_id)
        return None if found is None else found[1]


ThriftValue: TypeAlias = bool | int | bytes | ThriftList | ThriftStruct


def zigzag(number: int) -> int:
    """Return the zigzag form of a signed number, as in decoded values."""
    return (number << 1) ^ (number >> 63)


def decode_struct(data: bytes) -> ThriftStruct:
    """Decode one struct; bytes after it are ignored."""
    try:
        return _Reader(data).read_struct()
    except (IndexError, ValueError) as error:
        raise FormatError(f"a Thrift struct of {len(data)} bytes cannot be decoded: {error}") from error


def encode_struct(value: ThriftStruct) -> bytes:
    """Encode a struct; the inverse of ``decode_struct``."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


class _Reader:
    """A decoder with a position in the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read_struct(self) -> ThriftStruct:
        result = ThriftStruct()
        field_id = 0
        while header := self._byte():
            delta = header >> 4
            field_id = field_id + delta if delta else unzigzag(self._varint())
            kind = Kind(header & 0x0F)
            result.fields[field_id] = (kind, self._read(kind))
        return result

    def _read(self, kind: Kind) -> ThriftValue:  # noqa: PLR0911 - one per wire type
        match kind:
            case Kind.TRUE | Kind.FALSE:
                return kind is Kind.TRUE
            case Kind.BYTE:
                return self._byte()
            case Kind.I16 | Kind.I32 | Kind.I64:
                return self._varint()
            case Kind.DOUBLE:
                return self._bytes(8)
            case Kind.BINARY:
                return self._bytes(self._varint())
            case Kind.LIST | Kind.SET:
                return self._read_list()
            case Kind.STRUCT:
                return self.read_struct()

    def _read_list(self) -> ThriftList:
        header = self._byte()
        size = header >> 4
        if size == 0x0F:
            size = self._varint()
        kind = Kind(header & 0x0F)
        if kind in (Kind.TRUE, Kind.FALSE):  # in a list each boolean has a byte of its own
            kind = Kind.BYTE
        return ThriftList(kind, [self._read(kind) for _ in range(size)])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise IndexError("cut short")
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        result = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
        raise ValueError("a number has more than 64 bits")


def unzigzag(number: int) -> int:
    """Return the signed number of a zigzag form."""
    return (number >> 1) ^ -(number & 1)


def _write_struct(out: bytearray, value: ThriftStruct) -> None:
    last = 0
    for field_id, (kind, content) in sorted(value.fields.items()):
        wire = (Kind.TRUE if content else Kind.FALSE) if kind in (Kind.TRUE, Kind.FALSE) else kind
        delta = field_id - last
        if 0 < delta <= 0x0F:
            out.append(delta << 4 | wire)
        else:
            out.append(wire)
            _write_varint(out, zigzag(field_id))
        last = field_id
        _write(out, kind, content)
    out.append(0)


def _write(out: bytearray, kind: Kind, content: Any) -> None:  # noqa: ANN401 - as many kinds as Thrift has
    match kind:
        case Kind.TRUE | Kind.FALSE:
            pass
        case Kind.BYTE:
            out.append(content)
        case Kind.I16 | Kind.I32 | Kind.I64:
            _write_varint(out, content)
        case Kind.DOUBLE:
            out += content
        case Kind.BINARY:
            _write_varint(out, len(content))
            out += content
        case Kind.LIST | Kind.SET:
            _write_list(out, content)
        case Kind.STRUCT:
            _write_struct(out, content)


def _write_list(out: bytearray, content: ThriftList) -> None:
    size = len(content.items)
    if size < 0x0F:
        out.append(size << 4 | content.kind)
    else:
        out.append(0xF0 | content.kind)
        _write_varint(out, size)
    for item in content.items:
        _write(out, content.kind, item)


def _write_varint(out: bytearray, number: int) -> None:
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
