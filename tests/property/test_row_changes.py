"""DELETE and UPDATE against the same changes of a plain list."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import MergeDelete, MergeInsert, MergeUpdate

NUMBERS = itertools.count()
OPTIONS = [{}, {"bucket": "1", "bucket-key": "k"}, {"bucket": "2", "bucket-key": "k"}]
ROWS = st.lists(
    st.fixed_dictionaries({"k": st.integers(0, 9), "p": st.sampled_from("ab"), "v": st.none() | st.integers(-3, 3)}),
    min_size=1,
    max_size=12,
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "delete", "update", "move", "merge", "compact"]), ROWS, st.integers(-3, 9)),
    min_size=1,
    max_size=7,
)


@settings(max_examples=25, deadline=None)
@given(options=st.sampled_from(OPTIONS), steps=STEPS)
def test_a_table_changes_as_a_list_does(options: dict[str, str], steps: list[tuple[str, list[Any], int]]) -> None:
    catalog = penstock.Catalog(f"memory://row-changes-model-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING, v INT", partition_by=["p"], options=options)
    model: list[dict[str, Any]] = []
    for what, rows, number in steps:
        if what == "append":
            table.append(rows)
            model += rows
        elif what == "delete":
            hit = [row for row in model if row["v"] is not None and row["v"] > number]
            assert table.delete(f"v > {number}").rows_deleted == len(hit)
            model = [row for row in model if row not in hit]
        elif what == "update":
            done = table.update({"v": pc.field("v") + 1}, f"k <= {number} AND p = 'a'").rows_updated
            hits = [row["k"] <= number and row["p"] == "a" for row in model]
            assert done == sum(hits)
            model = [
                {**row, "v": row["v"] + 1} if hit and row["v"] is not None else row
                for row, hit in zip(model, hits, strict=True)
            ]
        elif what == "move":
            table.update({"p": "b"}, f"k = {number}")
            moved = [row for row in model if row["k"] == number and row["p"] != "b"]
            stays = [row for row in model if not (row["k"] == number and row["p"] != "b")]
            model = [*stays, *({**row, "p": "b"} for row in moved)]
        elif what == "merge":
            model = merge(table, model, rows)
        else:
            table.compact()
        check(table, model, in_order=options.get("bucket") == "1")
    assert table.inspect.fsck(all_snapshots=True).findings == ()


def merge(table: penstock.Table, model: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the source without a value delete, the others set the value; new keys come last."""
    source = list({(row["k"], row["p"]): row for row in rows}.values())
    clauses = [MergeDelete(where=pc.field("source.v").is_null()), MergeUpdate(set={"v": pc.field("source.v")})]
    table.merge(source, ["k", "p"], matched=clauses, not_matched=MergeInsert())
    values = {(row["k"], row["p"]): row["v"] for row in source}
    after: list[dict[str, Any]] = []
    for row in model:
        key = (row["k"], row["p"])
        if key not in values:
            after.append(row)
        elif values[key] is not None:
            after.append({**row, "v": values[key]})
    keys = {(row["k"], row["p"]) for row in model}
    return [*after, *(row for row in source if (row["k"], row["p"]) not in keys)]


def check(table: penstock.Table, model: list[dict[str, Any]], *, in_order: bool) -> None:
    for p in "ab":
        found = table.to_arrow(filter=f"p = '{p}'").to_pylist()
        wanted = [row for row in model if row["p"] == p]
        if in_order:
            assert found == wanted
        else:
            assert sorted(map(text, found)) == sorted(map(text, wanted))


def text(row: dict[str, Any]) -> str:
    return f"{row['k']} {row['v']}"
