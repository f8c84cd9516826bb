"""Rows of old schemas, read with new ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.datafile.arrays import batch_of, column, rows_of

from penstock.datafile.evolve import can_cast, plan_evolution
from penstock.datafile.types import to_arrow_schema
from penstock.errors import SchemaMismatchError, UnsupportedFeatureError
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    with_nullability,
)


def evolve(old: tuple[DataField, ...], new: tuple[DataField, ...], *rows: Any) -> list[Any]:
    evolution = plan_evolution(old, new)
    places = [old.index(field) for field in evolution.file_fields]
    batch = batch_of([tuple(row[place] for place in places) for row in rows], evolution.file_fields)
    if not evolution.file_fields:  # a batch cannot be made of rows without columns
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    result = evolution.apply(batch)
    assert result.schema.equals(to_arrow_schema(new), check_metadata=True)
    result.validate(full=True)
    return rows_of([result], new)


def test_columns_keep_their_values_through_renames_and_moves() -> None:
    old = (column("a", INT, 1), column("b", STRING, 2))
    new = (column("b", INT, 1), column("c", STRING, 2))

    assert evolve(old, new[::-1], (1, "x")) == [("x", 1)]


def test_a_column_dropped_and_added_again_is_another_column() -> None:
    assert evolve((column("a", INT, 1),), (column("a", INT, 2),), (7,)) == [(None,)]


def test_only_columns_that_are_read_are_asked_of_the_file() -> None:
    old = (column("a", INT, 1), column("b", INT, 2), column("c", INT, 3))

    evolution = plan_evolution(old, (column("z", INT, 3), column("new", INT, 4)))

    assert evolution.file_fields == (old[2],)
    assert evolution.places == (0, None)


def test_rows_of_the_same_schema_pass_as_they_are() -> None:
    fields = (column("a", INT, 1), column("r", RowType(fields=(column("x", INT, 3),)), 2))
    batch = batch_of([(1, (2,))], fields)

    assert plan_evolution(fields, fields).apply(batch) is batch


def test_fields_of_rows_are_matched_by_id_at_any_depth() -> None:
    def row(*fields: DataField) -> DataType:
        return RowType(fields=fields)

    inner = row(column("x", INT, 5), column("y", STRING, 6))
    newer = row(column("later", STRING, 9), column("why", STRING, 6), column("x", BIGINT, 5))
    old = (
        column("r", inner, 1),
        column("a", ArrayType(element=inner), 2),
        column("m", MapType(key=STRING, value=inner), 3),
    )
    new = (
        column("r", newer, 1),
        column("a", ArrayType(element=newer), 2),
        column("m", MapType(key=STRING, value=newer), 3),
    )

    read = evolve(old, new, ((1, "a"), [(2, "b"), None], [("k", (3, "c"))]), (None, None, None))

    assert read == [((None, "a", 1), [(None, "b", 2), None], [("k", (None, "c", 3))]), (None, None, None)]


def test_slices_evolve_like_whole_batches() -> None:
    old = (column("a", ArrayType(element=INT), 1), column("r", RowType(fields=(column("x", INT, 3),)), 2))
    new = (column("a", ArrayType(element=BIGINT), 1), column("r", RowType(fields=(column("x", STRING, 3),)), 2))
    rows = [([1, None], (1,)), (None, None), ([], (3,)), ([4], (None,))]
    batch = batch_of(rows, old)

    result = plan_evolution(old, new).apply(batch.slice(1, 3))

    assert rows_of([result], new) == [(None, None), ([], ("3",)), ([4], (None,))]


def test_elements_of_multisets_and_vectors_are_cast() -> None:
    old = (column("m", MultisetType(element=INT), 1), column("v", VectorType(element=INT, length=2), 2))
    new = (column("m", MultisetType(element=STRING), 1), column("v", VectorType(element=DOUBLE, length=2), 2))

    assert evolve(old, new, ([(5, 2)], [1, 2]), (None, None)) == [([("5", 2)], [1.0, 2.0]), (None, None)]


def test_a_change_of_nullability_changes_the_schema_and_not_the_values() -> None:
    strict = with_nullability(INT, nullable=False)

    assert evolve((column("a", strict, 1),), (column("a", INT, 1),), (1,)) == [(1,)]
    assert evolve((column("a", INT, 1),), (column("a", strict, 1),), (1,)) == [(1,)]


def test_a_value_that_cannot_be_cast_names_its_column() -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'n'.*STRING to INT.*'text'"):
        evolve((column("old", STRING, 1),), (column("n", INT, 1),), ("text",))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BYTES, INT),
        (ArrayType(element=INT), BYTES),
        (ArrayType(element=INT), MultisetType(element=INT)),
        (VectorType(element=INT, length=2), VectorType(element=INT, length=3)),
        (MapType(key=INT, value=INT), MultisetType(element=INT)),
    ],
)
def test_types_that_do_not_lead_to_one_another_are_refused(old: DataType, new: DataType) -> None:
    assert not can_cast(old, new)
    with pytest.raises(UnsupportedFeatureError, match="column 'c'"):
        evolve((column("c", old, 1),), (column("c", new, 1),), (None,))
