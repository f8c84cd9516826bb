from collections.abc import Iterable

from penstock.format.schema import (
    SYSTEM_FIELD_IDS,
    assign_field_ids,
    highest_field_id,
    is_system_name,
    iter_fields,
    next_field,
)
from penstock.format.types.data_types import INT, DataField
from penstock.format.types.ddl import parse_columns
from penstock.format.types.text import parse_sql_type


def ids(fields: Iterable[DataField]) -> dict[str, int]:
    return {field.name: field.id for field in iter_fields(fields)}


def test_columns_come_before_their_row_fields_but_row_fields_after_theirs() -> None:
    fields, highest = assign_field_ids(parse_columns("f ROW<a INT, b ROW<c STRING>>, g INT"))
    assert ids(fields) == {"f": 0, "a": 1, "c": 2, "b": 3, "g": 4}
    assert highest == 4


def test_rows_inside_arrays_maps_multisets_and_vectors_are_numbered_and_elements_are_not() -> None:
    fields, highest = assign_field_ids(
        parse_columns("a ARRAY<ROW<x INT>>, m MAP<ROW<k INT>, ROW<v INT>>, s MULTISET<ROW<e INT>>, w VECTOR<FLOAT, 2>")
    )
    assert ids(fields) == {"a": 0, "x": 1, "m": 2, "k": 3, "v": 4, "s": 5, "e": 6, "w": 7}
    assert highest == 7


def test_numbering_keeps_everything_else_of_a_column() -> None:
    ((field,), highest) = assign_field_ids(parse_columns("a ROW<b INT NOT NULL 'x'> NOT NULL COMMENT 'y' DEFAULT 'z'"))
    assert (field.description, field.default_value, field.type.nullable) == ("y", "z", False)
    assert field.type.fields[0] == DataField(id=1, name="b", type=parse_sql_type("INT NOT NULL"), description="x")
    assert highest == 1


def test_no_columns_have_no_highest_id() -> None:
    assert assign_field_ids(()) == ((), -1)
    assert highest_field_id(()) == -1


def test_added_column_goes_on_from_the_highest_id_ever() -> None:
    field, highest = next_field("n", parse_sql_type("ROW<a INT, b INT>"), 17, description="new", default_value="d")
    assert (field.id, ids([field])) == (18, {"n": 18, "a": 19, "b": 20})
    assert (field.description, field.default_value, highest) == ("new", "d", 20)


def test_system_fields_do_not_count_for_the_highest_id() -> None:
    fields = (DataField(id=3, name="a", type=INT), DataField(id=SYSTEM_FIELD_IDS["_ROW_ID"], name="_ROW_ID", type=INT))
    assert highest_field_id(fields) == 3


def test_reserved_names_are_the_systems_and_those_with_the_key_prefix() -> None:
    assert all(is_system_name(name) for name in ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"))
    assert is_system_name("_KEY_id")
    assert not any(is_system_name(name) for name in ("id", "_key_id", "KEY_", "_sequence_number"))
