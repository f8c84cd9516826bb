import pytest

from penstock.errors import InvalidSchemaError
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    INT,
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
    decimal_type,
    time_type,
    timestamp_type,
    with_nullability,
)
from penstock.format.types.text import decode_type, encode_field, encode_type, format_sql_type, parse_sql_type

CANONICAL = {
    "CHAR(3)": AtomicType(root=TypeRoot.CHAR, length=3),
    "VARCHAR(20)": AtomicType(root=TypeRoot.VARCHAR, length=20),
    "STRING": AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH),
    "BINARY(4)": AtomicType(root=TypeRoot.BINARY, length=4),
    "VARBINARY(10)": AtomicType(root=TypeRoot.VARBINARY, length=10),
    "BYTES": AtomicType(root=TypeRoot.VARBINARY, length=MAX_LENGTH),
    "BOOLEAN": AtomicType(root=TypeRoot.BOOLEAN),
    "TINYINT": AtomicType(root=TypeRoot.TINYINT),
    "SMALLINT": AtomicType(root=TypeRoot.SMALLINT),
    "INT": AtomicType(root=TypeRoot.INT),
    "BIGINT": AtomicType(root=TypeRoot.BIGINT),
    "FLOAT": AtomicType(root=TypeRoot.FLOAT),
    "DOUBLE": AtomicType(root=TypeRoot.DOUBLE),
    "DATE": AtomicType(root=TypeRoot.DATE),
    "DECIMAL(10, 2)": decimal_type(10, 2),
    "TIME(3)": time_type(3),
    "TIMESTAMP(6)": timestamp_type(6),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": timestamp_type(9, local_zone=True),
    "VARIANT": AtomicType(root=TypeRoot.VARIANT),
    "BLOB": AtomicType(root=TypeRoot.BLOB),
    "GEOMETRY(OGC:CRS84)": AtomicType(root=TypeRoot.GEOMETRY, parameters="OGC:CRS84"),
    "GEOGRAPHY(OGC:CRS84, 'spherical')": AtomicType(root=TypeRoot.GEOGRAPHY, parameters="OGC:CRS84, 'spherical'"),
    "INT NOT NULL": AtomicType(root=TypeRoot.INT, nullable=False),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL": with_nullability(timestamp_type(3, local_zone=True), nullable=False),
}


@pytest.mark.parametrize(("text", "data_type"), CANONICAL.items())
def test_atomic_type_is_read_and_written_as_its_text(text: str, data_type: DataType) -> None:
    assert decode_type(text) == data_type
    assert encode_type(data_type) == text
    assert format_sql_type(data_type) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("integer", "INT"),
        ("double precision", "DOUBLE"),
        ("dec(5)", "DECIMAL(5, 0)"),
        ("numeric(5,2)", "DECIMAL(5, 2)"),
        ("Decimal", "DECIMAL(10, 0)"),
        ("char", "CHAR(1)"),
        ("varchar", "VARCHAR(1)"),
        ("binary", "BINARY(1)"),
        ("varbinary", "VARBINARY(1)"),
        ("varchar(2147483647)", "STRING"),
        ("varbinary(2147483647)", "BYTES"),
        ("time", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("timestamp", "TIMESTAMP(6)"),
        ("TIMESTAMP ( 3 )  without time zone", "TIMESTAMP(3)"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("timestamp_ltz not null", "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL"),
        ("TIMESTAMP_NTZ", "TIMESTAMP(6)"),
        ("long", "BIGINT"),
        ("short", "SMALLINT"),
        ("byte", "TINYINT"),
        ("real", "FLOAT"),
        ("int null", "INT"),
        ("\n int\tnot  NULL ", "INT NOT NULL"),
        ("int -- whole numbers\n not /* never */ null", "INT NOT NULL"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("INT NOT NULL ARRAY NOT NULL", "ARRAY<INT NOT NULL> NOT NULL"),
        ("string multiset", "MULTISET<STRING>"),
        ("map<string,array<int>>", "MAP<STRING, ARRAY<INT>>"),
        ("STRUCT<a: INT, b: STRING COMMENT 'it''s b'>", "ROW<a INT, b STRING COMMENT 'it''s b'>"),
        ("ROW<a INT 'first', `a b` INT NOT NULL>", "ROW<a INT COMMENT 'first', `a b` INT NOT NULL>"),
        ("row(a int)", "ROW<a INT>"),
        ("ROW<>", "ROW<>"),
        ("VECTOR<FLOAT, 768>", "VECTOR<FLOAT, 768>"),
        ("ROW<`a``b` INT>", "ROW<`a``b` INT>"),
    ],
)
def test_synonyms_and_free_spelling_lead_to_one_text(text: str, canonical: str) -> None:
    assert format_sql_type(parse_sql_type(text)) == canonical
    assert parse_sql_type(canonical) == parse_sql_type(text)


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, "expected a type"),
        ("BIGNT", 1, "did you mean BIGINT?"),
        ("ARRAY<STIRNG>", 7, "did you mean STRING?"),
        ("'INT'", 1, "expected a type"),
        ("DECIMAL(39)", 9, "from 1 to 38"),
        ("DECIMAL(0)", 9, "from 1 to 38"),
        ("DECIMAL(5, 6)", 12, "from 0 to 5"),
        ("DECIMAL(5, 2", 13, "expected ')'"),
        ("TIMESTAMP(10)", 11, "from 0 to 9"),
        ("TIME(x)", 6, "from 0 to 9"),
        ("CHAR(0)", 6, "from 1 to 2147483647"),
        ("CHAR(2147483648)", 6, "from 1 to 2147483647"),
        ("CHAR(" + "9" * 5_000 + ")", 6, "from 1 to 2147483647"),
        ("VARCHAR(1.5)", 9, "from 1 to 2147483647"),
        ("ARRAY", 6, "expected '<' after ARRAY"),
        ("ARRAY<INT", 10, "expected '>'"),
        ("MAP<INT>", 8, "expected ','"),
        ("ROW<a INT b INT>", 11, "expected ',' or '>'"),
        ("ROW<a INT,>", 11, "expected a field name"),
        ("ROW<`` INT>", 5, "expected a field name"),
        ("ROW<a>", 6, "expected a type"),
        ("INT NOT", 5, "expected NOT NULL or the end"),
        ("INT, INT", 4, "expected NOT NULL or the end"),
        ("TIMESTAMP(3) WITH TIME ZONE", 14, "WITH LOCAL TIME ZONE"),
        ("GEOMETRY(x", 11, "expected ')'"),
        ("VECTOR<FLOAT, 0>", 15, "from 1 to"),
        ("ROW<`a INT>", 5, "never closed"),
        ("ARRAY<" * 100 + "INT" + ">" * 100, 391, "64 deep"),
    ],
)
def test_broken_type_is_refused_with_position_and_expectation(text: str, position: int, expected: str) -> None:
    with pytest.raises(InvalidSchemaError, match=rf"position {position}\b") as caught:
        parse_sql_type(text)
    assert expected in str(caught.value)


def test_nested_types_are_objects_with_not_null_in_their_name() -> None:
    data_type = MapType(
        key=with_nullability(STRING, nullable=False),
        value=RowType(
            fields=(
                DataField(id=4, name="a", type=ArrayType(element=INT, nullable=False), description="d"),
                DataField(id=7, name="b", type=MultisetType(element=BYTES), default_value="x"),
                DataField(id=8, name="c", type=VectorType(element=INT, length=3)),
            ),
            nullable=False,
        ),
    )
    encoded = {
        "type": "MAP",
        "key": "STRING NOT NULL",
        "value": {
            "type": "ROW NOT NULL",
            "fields": [
                {"id": 4, "name": "a", "type": {"type": "ARRAY NOT NULL", "element": "INT"}, "description": "d"},
                {"id": 7, "name": "b", "type": {"type": "MULTISET", "element": "BYTES"}, "defaultValue": "x"},
                {"id": 8, "name": "c", "type": {"type": "VECTOR", "element": "INT", "length": 3}},
            ],
        },
    }
    assert encode_type(data_type) == encoded
    assert decode_type(encoded) == data_type


def test_only_the_beginning_of_a_nested_type_name_counts() -> None:
    assert decode_type({"type": "map<STRING, INT>", "key": "STRING", "value": "INT", "nullable": True}) == MapType(
        key=STRING, value=INT
    )
    assert decode_type({"type": "Array<INT> NOT NULL", "element": "INT"}) == ArrayType(element=INT, nullable=False)


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        {},
        {"type": 5},
        {"type": "INT"},
        {"type": "LIST", "element": "INT"},
        {"type": "ARRAY"},
        {"type": "ARRAY", "element": None},
        {"type": "MAP", "key": "INT"},
        {"type": "VECTOR", "element": "INT"},
        {"type": "VECTOR", "element": "INT", "length": 0},
        {"type": "VECTOR", "element": "INT", "length": 2**31},
        {"type": "VECTOR", "element": "FLOAT", "length": 2**40},
        {"type": "ROW"},
        {"type": "ROW", "fields": {}},
        {"type": "ROW", "fields": ["a"]},
        {"type": "ROW", "fields": [{"id": "0", "name": "a", "type": "INT"}]},
        {"type": "ROW", "fields": [{"id": True, "name": "a", "type": "INT"}]},
        {"type": "ROW", "fields": [{"id": 0, "type": "INT"}]},
        {"type": "ROW", "fields": [{"id": 0, "name": "a"}]},
        {"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "INT", "description": 1}]},
        {"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "INT", "defaultValue": 1}]},
    ],
)
def test_json_that_is_no_type_is_refused(value: object) -> None:
    with pytest.raises(InvalidSchemaError):
        decode_type(value)


def test_field_leaves_out_what_it_has_not() -> None:
    assert list(encode_field(DataField(id=1, name="a", type=BIGINT))) == ["id", "name", "type"]
