"""Convert record batches between the table's canonical schema and Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.datafile.conform import conform_timestamp, map_with_children, with_children
from penstock.datafile.types import has_leaf, map_parts
from penstock.format.types.data_types import ArrayType, AtomicType, MapType, MultisetType, RowType, TypeRoot
from penstock.spark.versions.python_api import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.types import StructType

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField, DataType

# Spark copies a whole batch to one Java array: larger batches only cost memory there.
MAX_BATCH_ROWS = 65_536


def to_spark_batches(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Cast batches to exactly the Arrow schema that Spark derives from ``schema``.

    Timestamps are rounded down to microseconds, the precision of Spark.
    """
    wanted = arrow_schema(schema)
    for batch in batches:
        columns = [_to_spark_array(column, field.type) for column, field in zip(batch.columns, wanted, strict=True)]
        whole = pa.RecordBatch.from_arrays(columns, schema=wanted)
        for start in range(0, whole.num_rows, MAX_BATCH_ROWS):
            yield whole.slice(start, MAX_BATCH_ROWS)


def _to_spark_array(array: ArrowAny, wanted: ArrowAny) -> ArrowAny:
    if array.type == wanted:
        return array
    if pa.types.is_timestamp(array.type):
        return conform_timestamp(array, wanted)
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if pa.types.is_list(array.type):
        return with_children(array, wanted, [_to_spark_array(array.values, wanted.value_type)])
    if pa.types.is_map(array.type):
        keys, items = _to_spark_array(array.keys, wanted.key_type), _to_spark_array(array.items, wanted.item_type)
        return map_with_children(array, wanted, keys, items)
    if pa.types.is_struct(array.type):
        children = [_to_spark_array(array.field(place), field.type) for place, field in enumerate(wanted)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    return array.cast(wanted, safe=False)


def from_spark_batch(batch: pa.RecordBatch, fields: Iterable[DataField]) -> pa.RecordBatch:
    """Return a batch from Spark with INT columns converted to TIME where the table has TIME.

    Args:
        fields: fields of the table; Spark may represent a TIME column as INT, in milliseconds of the day.
    """
    for field in fields:
        index = batch.schema.get_field_index(field.name)
        if index >= 0 and has_leaf(field.type, _is_time):
            batch = batch.set_column(index, field.name, _with_times(batch.column(index), field.type))
    return batch


def _is_time(data_type: AtomicType) -> bool:
    return data_type.root is TypeRoot.TIME


def _with_times(array: ArrowAny, data_type: DataType) -> ArrowAny:
    """Convert numbers to TIME where the type has TIME; return arrays of another shape unchanged, for a later check."""
    arrow_type = array.type
    match data_type:
        case AtomicType():
            return array.cast(pa.time32("ms")) if _is_time(data_type) and pa.types.is_int32(arrow_type) else array
        case ArrayType(element=element) if pa.types.is_list(arrow_type):
            values = _with_times(array.values, element)
            return with_children(array, pa.list_(arrow_type.value_field.with_type(values.type)), [values])
        case MapType() | MultisetType() if pa.types.is_map(arrow_type):
            key, item = map_parts(data_type)
            keys, items = _with_times(array.keys, key), _with_times(array.items, item)
            return map_with_children(
                array, pa.map_(keys.type, arrow_type.item_field.with_type(items.type)), keys, items
            )
        case RowType(fields=fields) if pa.types.is_struct(arrow_type):
            types = {field.name: field.type for field in fields}
            children = [
                _with_times(array.field(place), types[inner.name]) if inner.name in types else array.field(place)
                for place, inner in enumerate(arrow_type)
            ]
            inners = [inner.with_type(child.type) for inner, child in zip(arrow_type, children, strict=True)]
            return pa.StructArray.from_arrays(children, fields=inners, mask=array.is_null())
        case _:
            return array
