"""A new type of a container as changes of what is inside it."""

from __future__ import annotations

import pytest

from penstock import InvalidSchemaError
from penstock.catalog.changes import FIRST, AddColumn, DropColumn, UpdateColumnComment, UpdateColumnType, after
from penstock.catalog.schema_changes import inner_changes
from penstock.format.types.text import parse_sql_type


def changes(old: str, new: str) -> list[object]:
    change = UpdateColumnType(column="c", type=new, keep_nullability=False)
    return [*inner_changes(change, parse_sql_type(old), parse_sql_type(new), "d.t")]


def test_fields_are_added_dropped_and_widened_by_their_names() -> None:
    found = changes("ROW<a INT, b STRING, d INT>", "ROW<n STRING, a BIGINT, e DOUBLE, d INT 'days'>")
    kinds = [(type(each).__name__, each.column) for each in found]  # type: ignore[attr-defined]
    assert kinds == [
        ("DropColumn", ("c", "b")),
        ("AddColumn", ("c", "n")),
        ("UpdateColumnType", ("c", "a")),
        ("AddColumn", ("c", "e")),
        ("UpdateColumnComment", ("c", "d")),
    ]
    added = [each for each in found if isinstance(each, AddColumn)]
    assert [each.position for each in added] == [FIRST, after("a")]
    assert isinstance(found[0], DropColumn)
    assert isinstance(found[-1], UpdateColumnComment)


def test_paths_go_through_elements_and_values() -> None:
    old = "MAP<STRING, ARRAY<ROW<x INT>>>"
    (found,) = changes(old, "MAP<STRING, ARRAY<ROW<x BIGINT>>>")
    assert isinstance(found, UpdateColumnType)
    assert found.column == ("c", "value", "element", "x")
    assert changes(old, old) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("ROW<a INT, b INT>", "ROW<b INT, a INT>", "keep their order: a, b"),
        ("MAP<INT, INT>", "MAP<BIGINT, INT>", "the keys of a MAP keep their type"),
    ],
)
def test_what_cannot_change_is_named(old: str, new: str, says: str) -> None:
    with pytest.raises(InvalidSchemaError, match=says):
        changes(old, new)
