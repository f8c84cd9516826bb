"""Convert rows written with an older schema to the schema that is read.

Columns, and fields of a ROW, are matched by id; names, positions and types may have changed.

Source:
    Paimon ``core:schema/SchemaEvolutionUtil.java``, ``core:utils/FormatReaderMapping.java``;
    docs/spec/format.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.datafile.cast.convert import can_cast, cast_array
from penstock.datafile.conform import Array, make_batch, map_with_children, null_array, with_children
from penstock.datafile.types import ArrowAny, map_parts, to_arrow_schema, to_arrow_type
from penstock.errors import SchemaMismatchError, UnsupportedFeatureError
from penstock.format.types.data_types import (
    MAX_LENGTH,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Evolution", "can_cast", "plan_evolution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """Conversion of a file's rows to rows of the read schema.

    Attributes:
        file_fields: columns to read from the file, as in the schema of the file.
        read_fields: columns of the result.
        places: per read field its index in ``file_fields``; None for columns added after the file was written.
    """

    file_fields: tuple[DataField, ...]
    read_fields: tuple[DataField, ...]
    places: tuple[int | None, ...]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the canonical Arrow schema of ``read_fields``.

        Args:
            batch: has the canonical Arrow schema of ``file_fields``.
        """
        schema = to_arrow_schema(self.read_fields)
        if batch.schema.equals(schema) and self.is_identity:
            return batch
        arrays = [
            _nulls(batch.num_rows, read) if place is None else self._convert(batch, place, read)
            for read, place in zip(self.read_fields, self.places, strict=True)
        ]
        return make_batch(arrays, schema, batch.num_rows)

    @property
    def is_identity(self) -> bool:
        """Whether rows are unchanged, except perhaps the names of columns."""
        return tuple(range(len(self.read_fields))) == self.places and all(
            old.type == new.type for old, new in zip(self.file_fields, self.read_fields, strict=True)
        )

    def _convert(self, batch: pa.RecordBatch, place: int, read: DataField) -> Array:
        written = self.file_fields[place]
        try:
            return convert_array(batch.column(place), written.type, read.type)
        except (SchemaMismatchError, UnsupportedFeatureError) as error:
            raise type(error)(f"column '{read.name}': {error}") from error


def _nulls(rows: int, read: DataField) -> Array:
    try:
        return null_array(rows, to_arrow_type(read.type))
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"column '{read.name}': {error}") from error


def plan_evolution(file_fields: Sequence[DataField], read_fields: Sequence[DataField]) -> Evolution:
    """Match columns by id; columns of the file that are not read are left out.

    Args:
        file_fields: columns of the schema that the file was written with.
        read_fields: columns to read, in this order.
    """
    by_id = {field.id: field for field in file_fields}
    wanted = [by_id[field.id] for field in read_fields if field.id in by_id]
    place_of = {field.id: place for place, field in enumerate(wanted)}
    return Evolution(
        file_fields=tuple(wanted),
        read_fields=tuple(read_fields),
        places=tuple(place_of.get(field.id) for field in read_fields),
    )


def convert_array(array: Array, source: DataType, target: DataType) -> Array:
    """Convert canonical values from one version of a column's type to another."""
    if source == target:
        return array
    arrow_type: ArrowAny = to_arrow_type(target)
    match source, target:
        case AtomicType(), AtomicType():
            return _convert_atomic(array, source, target, arrow_type)
        case RowType(), RowType():
            return _convert_row(array, source, target, arrow_type)
        case ArrayType() | VectorType(), ArrayType() | VectorType() if _length(source) == _length(target):
            return with_children(array, arrow_type, [convert_array(array.values, source.element, target.element)])
        case MapType() | MultisetType(), MapType() | MultisetType() if type(source) is type(target):
            return _convert_map(array, map_parts(source), map_parts(target), arrow_type)
        case ArrayType() | MapType() | RowType(), AtomicType(root=TypeRoot.VARCHAR) if target.length == MAX_LENGTH:
            return pa.array(_texts(array, source), arrow_type)
        case _:
            raise UnsupportedFeatureError(
                f"values cannot be cast from {format_sql_type(source)} to {format_sql_type(target)}: "
                "add a column of the new type"
            )


def _length(data_type: ArrayType | VectorType) -> int | None:
    return data_type.length if isinstance(data_type, VectorType) else None


def _texts(array: Array, source: DataType) -> list[str | None]:
    """Return values as Java Paimon prints them: ``[1, null]``, ``{k -> v}``, and ``{1, a}`` for a ROW.

    Source:
        Paimon ``common:casting/ArrayToStringCastRule.java``, and those of MAP and ROW.
    """
    match source:
        case ArrayType():
            parts = _shown(array.values, source.element)
            return _joined(array, "[{}]", parts)
        case MapType():
            pairs = zip(_shown(array.keys, source.key), _shown(array.items, source.value), strict=True)
            parts = [f"{key} -> {value}" for key, value in pairs]
            return _joined(array, "{{{}}}", parts)
        case RowType():
            fields = [_shown(array.field(place), field.type) for place, field in enumerate(source.fields)]
            rows = zip(*fields, strict=True) if fields else [()] * len(array)
            valid = array.is_valid().to_pylist()
            return [f"{{{', '.join(row)}}}" if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]
        case _:
            texts: list[str | None] = convert_array(array, source, STRING).to_pylist()
            return texts


def _shown(array: Array, source: DataType) -> list[str]:
    return ["null" if text is None else text for text in _texts(array, source)]


def _joined(array: Array, form: str, parts: list[str]) -> list[str | None]:
    offsets = array.offsets.to_pylist()
    return [
        form.format(", ".join(parts[start:end])) if is_valid else None
        for start, end, is_valid in zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
    ]


def _convert_map(
    array: Array, source: tuple[DataType, DataType], target: tuple[DataType, DataType], arrow_type: ArrowAny
) -> Array:
    keys = convert_array(array.keys, source[0], target[0])
    items = convert_array(array.items, source[1], target[1])
    return map_with_children(array, arrow_type, keys, items)


def _convert_atomic(array: Array, source: AtomicType, target: AtomicType, arrow_type: ArrowAny) -> Array:
    same_root = source.root is target.root
    same_value = (source.length, source.precision, source.scale) == (target.length, target.precision, target.scale)
    # Only nullability differs; or the precision of a TIME, which is always stored as milliseconds.
    if same_root and array.type == arrow_type and (same_value or source.root is TypeRoot.TIME):
        return array
    return cast_array(array, source, target)


def _convert_row(array: Array, source: RowType, target: RowType, arrow_type: ArrowAny) -> Array:
    places = {field.id: place for place, field in enumerate(source.fields)}
    children = []
    for field, arrow_field in zip(target.fields, arrow_type, strict=True):
        place = places.get(field.id)
        if place is None:
            children.append(null_array(len(array), arrow_field.type))
        else:
            children.append(convert_array(array.field(place), source.fields[place].type, field.type))
    mask = array.is_null() if array.null_count else None
    if not children:
        return pa.Array.from_buffers(arrow_type, len(array), [None if mask is None else array.is_valid().buffers()[1]])
    return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=mask)
