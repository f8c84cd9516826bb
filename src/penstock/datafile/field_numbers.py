"""Build Arrow schemas with a field id at every level, which file writers store in the file.

Source:
    Paimon ``api:table/SpecialFields.java``, ``format:parquet/ParquetSchemaConverter.java``,
    ``format:orc/OrcTypeUtil.java``; docs/spec/format.md sections 8.1 and 8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.datafile.types import ArrowAny, map_parts
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    with_nullability,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VARIANT_PARTS: Final = tuple(pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata"))
"""The fields of a VARIANT, in file order; their ids are their positions."""

_STRUCTURED_ID_BASE: Final = 536_870_911
_ID_STRIDE: Final = 1024


def to_numbered_schema(
    fields: Sequence[DataField], *, key: str, to_arrow: Callable[[AtomicType], pa.DataType]
) -> pa.Schema:
    """Return an Arrow schema whose fields have their ids under the metadata key ``key``.

    Args:
        to_arrow: returns the Arrow type in the file for an atomic type; not called for VARIANT.

    Raises:
        UnsupportedFeatureError: a ROW without fields.
    """
    return _Numbering(key, to_arrow).schema(fields)


@dataclass(frozen=True, slots=True)
class _Numbering:
    key: str
    to_arrow: Callable[[AtomicType], pa.DataType]

    def schema(self, fields: Sequence[DataField]) -> pa.Schema:
        return pa.schema([self._column(field) for field in fields])

    def _column(self, field: DataField) -> pa.Field[Any]:
        return self._field(field.name, field.type, field.id, self._type(field.type, field.id, 1))

    def _field(self, name: str, data_type: DataType, number: int, arrow_type: ArrowAny) -> pa.Field[Any]:
        return pa.field(name, arrow_type, nullable=data_type.nullable, metadata=self._metadata(number))

    def _metadata(self, number: int) -> dict[bytes | str, bytes | str]:
        return {self.key: str(number)}

    def _type(self, data_type: DataType, field_id: int, depth: int) -> ArrowAny:
        """Return the type of a field or of a level below it; ``depth`` is that of the next level, for its id."""
        # Elements and values are numbered upwards from the base, keys downwards.
        upper = _STRUCTURED_ID_BASE + _ID_STRIDE * field_id + depth
        lower = _STRUCTURED_ID_BASE - _ID_STRIDE * field_id - depth
        match data_type:
            case AtomicType(root=TypeRoot.VARIANT):
                return pa.struct([part.with_metadata(self._metadata(at)) for at, part in enumerate(VARIANT_PARTS)])
            case AtomicType():
                return self.to_arrow(data_type)
            case ArrayType():
                return pa.list_(self._below("element", data_type.element, upper, field_id, depth))
            case VectorType():
                element = self._below("element", data_type.element, upper, field_id, depth)
                return pa.list_(element, data_type.length)
            case MapType() | MultisetType():
                key_type, value_type = map_parts(data_type)
                key: ArrowAny = self._below("key", with_nullability(key_type, nullable=False), lower, field_id, depth)
                value: ArrowAny = self._below("value", value_type, upper, field_id, depth)
                return pa.map_(key, value)
            case RowType():
                if not data_type.fields:
                    raise UnsupportedFeatureError("a ROW without fields has no place in a Parquet or ORC file: drop it")
                return pa.struct([self._column(field) for field in data_type.fields])

    def _below(self, name: str, data_type: DataType, number: int, field_id: int, depth: int) -> pa.Field[Any]:
        return self._field(name, data_type, number, self._type(data_type, field_id, depth + 1))
