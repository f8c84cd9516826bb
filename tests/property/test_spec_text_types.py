"""Types and column lists as text: what is written is read back, and nothing but our own error ever comes out."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tests.support import strategies

from penstock.errors import InvalidSchemaError
from penstock.format.schema import assign_field_ids, highest_field_id, iter_fields, next_field
from penstock.format.text.json import format_json, parse_json
from penstock.format.types.data_types import DataType
from penstock.format.types.ddl import ColumnSpec, parse_columns
from penstock.format.types.text import (
    decode_type,
    encode_type,
    format_name,
    format_sql_type,
    format_string,
    parse_sql_type,
)

FRAGMENTS = st.sampled_from(
    [
        "INT", "ARRAY", "MAP", "ROW", "STRUCT", "VECTOR", "MULTISET", "DECIMAL", "TIMESTAMP", "WITH", "LOCAL", "TIME",
        "ZONE", "NOT", "NULL", "COMMENT", "DEFAULT", "GEOMETRY", "<", ">", "(", ")", ",", ":", "`a`", "'x'", '"y"', "`",
        "'", "3", "1.5", "-", "a", "--", "/*", "*/", " ", "\n",
    ]
)  # fmt: skip
NEARLY_SQL = st.lists(FRAGMENTS, max_size=12).map(" ".join)


@given(strategies.data_types(max_leaves=12))
def test_type_survives_the_schema_file(data_type: DataType) -> None:
    assert decode_type(parse_json(format_json(encode_type(data_type)))) == data_type


@given(strategies.data_types(max_leaves=12))
def test_type_survives_sql_text(data_type: DataType) -> None:
    assert parse_sql_type(format_sql_type(data_type)) == data_type


@given(strategies.atomic_types(), st.functions(like=lambda character: character, returns=st.booleans(), pure=True))
def test_case_of_keywords_does_not_matter(data_type: DataType, is_lower: Callable[[str], bool]) -> None:
    text = format_sql_type(data_type)
    mixed = "".join(character.lower() if is_lower(character) else character for character in text)
    assert parse_sql_type(mixed) == data_type


def column_text(column: ColumnSpec) -> str:
    text = f"{format_name(column.name)} {format_sql_type(column.type)}"
    if column.description is not None:
        text += f" COMMENT {format_string(column.description)}"
    return text if column.default_value is None else f"{text} DEFAULT {format_string(column.default_value)}"


@given(strategies.columns())
def test_columns_survive_ddl_text(columns: list[ColumnSpec]) -> None:
    assert parse_columns(", ".join(column_text(column) for column in columns)) == tuple(columns)


@given(st.one_of(st.text(), NEARLY_SQL))
def test_any_text_is_a_type_or_refused_with_a_position(text: str) -> None:
    try:
        data_type = parse_sql_type(text)
    except InvalidSchemaError as error:
        assert "position" in str(error)  # noqa: PT017 - most texts are refused, some are not
    else:
        assert parse_sql_type(format_sql_type(data_type)) == data_type


@given(st.one_of(st.text(), NEARLY_SQL, NEARLY_SQL.map(lambda text: f"a {text}")))
def test_any_text_is_a_column_list_or_refused_with_a_position(text: str) -> None:
    try:
        columns = parse_columns(text)
    except InvalidSchemaError as error:
        assert "position" in str(error)  # noqa: PT017 - most texts are refused, some are not
    else:
        assert parse_columns(", ".join(column_text(column) for column in columns)) == columns


@given(strategies.columns())
def test_every_field_gets_an_id_of_its_own_without_gaps(columns: list[ColumnSpec]) -> None:
    fields, highest = assign_field_ids(columns)
    ids = [field.id for field in iter_fields(fields)]
    assert sorted(ids) == list(range(highest + 1))
    assert highest_field_id(fields) == highest
    assert [field.name for field in fields] == [column.name for column in columns]


@given(strategies.columns(), strategies.columns())
def test_added_columns_are_numbered_as_if_created_last(old: list[ColumnSpec], new: list[ColumnSpec]) -> None:
    fields, highest = assign_field_ids(old)
    for column in new:
        field, highest = next_field(
            column.name, column.type, highest, description=column.description, default_value=column.default_value
        )
        fields = (*fields, field)
    assert (fields, highest) == assign_field_ids([*old, *new])
    assert [format_sql_type(field.type) for field in fields] == [format_sql_type(c.type) for c in [*old, *new]]
