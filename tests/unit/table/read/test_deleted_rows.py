"""Tables with live deletion vectors: read by our own reader, refused by everything else."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.deletion_vectors import delete_by_vectors

import penstock
from penstock.errors import FormatError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = itertools.count()


@pytest.fixture
def table() -> penstock.Table:
    catalog = penstock.Catalog(f"memory://deleted-rows-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"])
    for first in (0, 10):
        table.append([{"k": k, "p": "ab"[k % 2]} for k in range(first, first + 10)])
    names = [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]
    delete_by_vectors(table, {names[0]: [0, 3], names[2]: [4]})
    return penstock.Table.at(table.location)


def test_deleted_rows_are_left_out(table: penstock.Table) -> None:
    keys = sorted(table.to_arrow().column("k").to_pylist())
    assert len(keys) == 17
    gone = sorted(set(range(20)) - set(keys))
    assert sorted(row["k"] for row in table.to_batches().read_all().to_pylist()) == keys
    assert table.to_arrow(filter=f"k = {gone[0]}").num_rows == 0
    assert table.to_arrow(filter="k >= 0").num_rows == 17
    assert table.to_arrow(["p"]).num_rows == 17
    assert table.to_arrow([]).num_rows == 17
    assert table.to_arrow(limit=16).num_rows == 16
    assert (
        penstock.sql(None, penstock.Catalog(table.location.rpartition("/db.db")[0]), "SELECT k FROM db.t").num_rows
        == 17
    )


CHANGES: dict[str, Callable[[penstock.Table], Any]] = {
    "delete": lambda table: table.delete("k = 1"),
    "update": lambda table: table.update({"k": 2}, "k = 1"),
    "merge": lambda table: table.merge([{"k": 1}], "k", matched=penstock.MergeDelete()),
    "overwrite": lambda table: table.overwrite([{"k": 1, "p": "a"}]),
    "truncate": lambda table: table.truncate(),
    "compact": lambda table: table.compact(),
    "explain": lambda table: table.explain(),
    "follow": lambda table: list(table.follow(once=True)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_apply_vectors_is_refused(table: penstock.Table, name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"deletion vectors|index files"):
        CHANGES[name](table)
    assert table.to_arrow().num_rows == 17


def test_a_damaged_vector_is_told(table: penstock.Table) -> None:
    file_io = table._ref.file_io
    for status in file_io.list(f"{table.location}/index"):
        data = file_io.read(status.path)
        file_io.write(status.path, data[:-1] + bytes([data[-1] ^ 255]))
    with pytest.raises(FormatError, match="checksum"):
        table.to_arrow()
