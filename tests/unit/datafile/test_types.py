"""Column types to and from Arrow."""

import pyarrow as pa
import pytest

from penstock.datafile.types import from_arrow_schema, from_arrow_type, to_arrow_schema, to_arrow_type
from penstock.errors import InvalidSchemaError, UnsupportedFeatureError
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    INT,
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
    decimal_type,
    time_type,
    timestamp_type,
    with_nullability,
)
from penstock.format.types.ddl import ColumnSpec


@pytest.mark.parametrize(
    ("data_type", "arrow_type"),
    [
        (STRING, pa.string()),
        (AtomicType(root=TypeRoot.CHAR, length=3), pa.string()),
        (BYTES, pa.binary()),
        (AtomicType(root=TypeRoot.BINARY, length=3), pa.binary()),
        (decimal_type(38, 10), pa.decimal128(38, 10)),
        (time_type(0), pa.time32("ms")),
        (time_type(9), pa.time32("ms")),
        (timestamp_type(0), pa.timestamp("ms")),
        (timestamp_type(3), pa.timestamp("ms")),
        (timestamp_type(4), pa.timestamp("us")),
        (timestamp_type(6), pa.timestamp("us")),
        (timestamp_type(7), pa.timestamp("ns")),
        (timestamp_type(9, local_zone=True), pa.timestamp("ns", tz="UTC")),
        (VectorType(element=INT, length=4), pa.list_(pa.field("element", pa.int32()), 4)),
        (
            MultisetType(element=STRING),
            pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
        ),
        (
            AtomicType(root=TypeRoot.VARIANT),
            pa.struct(
                [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
            ),
        ),
    ],
)
def test_each_type_has_one_arrow_type(data_type: DataType, arrow_type: pa.DataType) -> None:
    assert to_arrow_type(data_type) == arrow_type


def test_nullability_of_every_level_follows_the_type() -> None:
    element = with_nullability(INT, nullable=False)
    fields = (
        DataField(id=0, name="id", type=with_nullability(BIGINT, nullable=False)),
        DataField(id=1, name="a", type=ArrayType(element=element)),
        DataField(id=2, name="m", type=MapType(key=STRING, value=element)),
        DataField(id=3, name="r", type=RowType(fields=(DataField(id=4, name="x", type=element),))),
    )

    schema = to_arrow_schema(fields)

    assert not schema.field("id").nullable
    assert schema.field("a").nullable
    assert schema.field("a").type.value_field == pa.field("element", pa.int32(), nullable=False)
    assert not schema.field("m").type.key_field.nullable
    assert not schema.field("m").type.item_field.nullable
    assert not schema.field("r").type.field("x").nullable


@pytest.mark.parametrize("root", [TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY])
def test_types_without_an_arrow_form_are_refused_by_name(root: TypeRoot) -> None:
    with pytest.raises(UnsupportedFeatureError, match=root.value):
        to_arrow_type(AtomicType(root=root))


def test_an_arrow_schema_becomes_columns_with_comments_and_nullability() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"comment": "key"}),
            pa.field("tags", pa.map_(pa.string(), pa.large_list(pa.timestamp("us", tz="Asia/Tokyo")))),
        ]
    )

    columns = from_arrow_schema(schema)

    assert columns == (
        ColumnSpec(name="id", type=with_nullability(BIGINT, nullable=False), description="key"),
        ColumnSpec(
            name="tags",
            type=MapType(
                key=with_nullability(STRING, nullable=False),
                value=ArrayType(element=timestamp_type(6, local_zone=True)),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("arrow_type", "data_type"),
    [
        (pa.large_string(), STRING),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.uint32(), BIGINT),
        (pa.uint64(), decimal_type(20, 0)),
        (pa.date64(), AtomicType(root=TypeRoot.DATE)),
        (pa.binary(5), AtomicType(root=TypeRoot.BINARY, length=5)),
        (pa.decimal256(38, 2), decimal_type(38, 2)),
        (pa.timestamp("s"), timestamp_type(0)),
        (pa.list_(pa.float32(), 3), VectorType(element=AtomicType(root=TypeRoot.FLOAT), length=3)),
        (pa.struct([("x", pa.int32())]), RowType(fields=(DataField(id=0, name="x", type=INT),))),
    ],
)
def test_foreign_arrow_types_take_the_type_that_holds_all_their_values(
    arrow_type: pa.DataType, data_type: DataType
) -> None:
    assert from_arrow_type(arrow_type, "c") == data_type


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.null(),
        pa.duration("s"),
        pa.decimal256(50, 2),
        pa.decimal128(5, -2),
        pa.time64("us"),
        pa.month_day_nano_interval(),
    ],
)
def test_arrow_types_without_a_counterpart_are_refused_with_the_columns_path(arrow_type: pa.DataType) -> None:
    schema = pa.schema([("outer", pa.struct([("inner", arrow_type)]))])

    with pytest.raises(InvalidSchemaError, match=r"outer\.inner"):
        from_arrow_schema(schema)
