"""What the listing of a file says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock import Table
from penstock.errors import FormatError
from penstock.spark.read.native_listing import list_native
from penstock.spark.read.native_reading import NativeReading, plan_reading
from penstock.table.read.split import plan_splits

DELETED = Path(__file__).parents[3] / "golden" / "data" / "deleted" / "java142.db" / "t"


def test_a_vector_that_is_longer_than_one_of_its_file_can_be_is_refused() -> None:
    table = Table.at(str(DELETED))
    query = table._handle.plan(None, None, {}, with_vectors=True)
    (split, *_) = plan_splits(query.ref, query.plan)
    reading = plan_reading(query.ref, table._store, (split,), table.schema.fields, has_class=lambda: True)
    assert isinstance(reading, NativeReading)
    listed = list_native(query.ref, (split,), reading)
    assert sorted(len(line.split("\t")) for line in listed.split("\n")) == [1, 4, 8]
    vectors = tuple((name, replace(place, length=2**31 - 1)) for name, place in split.vectors)
    with pytest.raises(FormatError, match="is longer than one of its rows can be"):
        list_native(query.ref, (replace(split, vectors=vectors),), reading)
