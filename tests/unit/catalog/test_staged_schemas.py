"""The schema of a table that is defined again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.staged_tables import build_replacement, why_not_in_place
from penstock.format.schema import TableSchema, iter_fields
from penstock.format.snapshot import CommitKind, Snapshot

Define = Callable[..., TableDefinition]
NewSchema = Callable[..., TableSchema]

SNAPSHOT = Snapshot(
    id=3,
    schema_id=0,
    base_manifest_list="a",
    delta_manifest_list="b",
    commit_user="u",
    commit_identifier=1,
    commit_kind=CommitKind.APPEND,
    time_millis=1,
    total_record_count=1,
    delta_record_count=1,
)


def replaced(base: TableSchema, definition: TableDefinition) -> TableSchema:
    return build_replacement(base, definition, defaults={}, table="d.t", time_millis=5_000)


def ids(schema: TableSchema) -> dict[str, int]:
    return {field.name: field.id for field in schema.fields}


def test_columns_of_the_same_name_and_type_keep_their_ids(new_schema: NewSchema, definition: Define) -> None:
    base = new_schema("a INT, b STRING, c ROW<x INT, y ARRAY<ROW<z INT>>>")
    schema = replaced(base, definition("d INT, c ROW<x INT, y ARRAY<ROW<z INT>>>, a INT COMMENT 'first'"))
    assert ids(schema) == {"d": base.highest_field_id + 1, "c": base.fields[2].id, "a": 0}
    assert schema.fields[1] == base.fields[2]
    assert schema.fields[2].description == "first"
    assert (schema.id, schema.highest_field_id) == (1, base.highest_field_id + 1)


@pytest.mark.parametrize("column", ["b BIGINT", "b STRING NOT NULL", "b ROW<x INT>", "b ARRAY<STRING NOT NULL>"])
def test_a_column_of_another_type_has_an_id_that_was_never_used(
    new_schema: NewSchema, definition: Define, column: str
) -> None:
    base = replace(new_schema("a INT, b STRING"), highest_field_id=7)
    schema = replaced(base, definition(f"a INT, {column}"))
    assert ids(schema) == {"a": 0, "b": 8}
    assert sorted(field.id for field in iter_fields(schema.fields))[1:] == list(range(8, schema.highest_field_id + 1))


def test_the_same_definition_keeps_the_schema(new_schema: NewSchema, definition: Define) -> None:
    given: dict[str, Any] = {"options": {"bucket": "2", "bucket-key": "a"}, "comment": "things", "partition_by": ["b"]}
    base = new_schema("a INT, b STRING", **given)
    assert replaced(base, definition("a INT, b STRING", **given)) is base
    in_another_order = {**given, "options": {"bucket-key": "a", "bucket": "2"}}
    assert replaced(base, definition("a INT, b STRING", **in_another_order)) is base
    for change in ({"options": {}}, {"comment": None}, {"partition_by": []}):
        assert replaced(base, definition("a INT, b STRING", **{**given, **change})).id == 1


@pytest.mark.parametrize(
    ("columns", "given", "reason"),
    [
        ("a INT, dt STRING, p INT", {"partition_by": ["p"]}, "its partition columns change"),
        ("a INT, dt INT, p INT", {"partition_by": ["dt"]}, "its partition columns change"),
        (
            "a INT, dt STRING, p INT",
            {"partition_by": ["dt"], "options": {"bucket": "-1"}},
            "'bucket-key' cannot change",
        ),
        (
            "a INT, dt STRING, p INT",
            {"partition_by": ["dt"], "options": {"bucket": "2", "bucket-key": "p"}},
            "'bucket-key' cannot change",
        ),
        ("a BIGINT, dt STRING", {"partition_by": ["dt"], "options": {"bucket": "4", "bucket-key": "a"}}, None),
    ],
)
def test_earlier_files_must_stay_readable(
    new_schema: NewSchema, definition: Define, columns: str, given: dict[str, Any], reason: str | None
) -> None:
    base = new_schema("a INT, dt STRING, p INT", partition_by=["dt"], options={"bucket": "2", "bucket-key": "a"})
    schema = replaced(base, definition(columns, **given))
    found = why_not_in_place(base, schema, SNAPSHOT, "d.t")
    assert (found is None) if reason is None else (found is not None and reason in found)
    assert why_not_in_place(base, schema, None, "d.t") is None


def test_index_files_do_not_outlive_their_files(new_schema: NewSchema) -> None:
    base = new_schema("a INT")
    found = why_not_in_place(base, base, replace(SNAPSHOT, index_manifest="index"), "d.t")
    assert found is not None
    assert "snapshot 3 has index files" in found
