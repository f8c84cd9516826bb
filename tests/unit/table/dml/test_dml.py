"""MERGE through the handle on a table: which rows match, which clause acts, and what others do meanwhile."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.support.garbage import needed_files, stored_files

import penstock
from penstock import MergeDelete, MergeInsert, MergeUpdate
from penstock.errors import (
    CommitConflictError,
    InvalidFilterError,
    InvalidOptionError,
    NotFoundError,
    SchemaMismatchError,
)
from penstock.format.snapshot import CommitKind
from penstock.table.commit.committer import TableCommitter
from penstock.table.dml import merge

NUMBERS = itertools.count()


@pytest.fixture
def table() -> penstock.Table:
    catalog = penstock.Catalog(f"memory://merge-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, name STRING, x DOUBLE")
    for first in (0, 5):
        table.append([{"k": k, "name": f"n{k}", "x": float(k)} for k in range(first, first + 5)])
    return table


def state(table: penstock.Table) -> dict[Any, Any]:
    return {row["k"]: row["name"] for row in table.to_arrow().to_pylist()}


def test_rows_match_by_columns_of_other_names_and_only_files_with_hits_are_replaced(table: penstock.Table) -> None:
    source = pa.table({"id": pa.array([7, 8], pa.int32()), "said": ["seven", "eight"]})
    before = {row["file_path"] for row in table.files().to_pylist()}
    result = table.merge(source, {"k": "id"}, matched=MergeUpdate(set={"name": pc.field("source.said")}))
    assert (result.rows_updated, len(result.files), result.files_added) == (2, 1, 1)
    assert len(before & {row["file_path"] for row in table.files().to_pylist()}) == 1
    assert state(table) == {**{k: f"n{k}" for k in range(10)}, 7: "seven", 8: "eight"}


def test_a_source_without_matches_is_a_plain_append(table: penstock.Table) -> None:
    result = table.merge([{"k": 70, "name": "new"}], "k", matched=MergeUpdate(), not_matched=MergeInsert())
    assert result.snapshot is not None
    assert result.snapshot.commit_kind is CommitKind.APPEND
    assert (result.rows_inserted, result.files) == (1, ())
    assert table.to_arrow(filter="k = 70").to_pylist() == [{"k": 70, "name": "new", "x": None}]
    assert table.merge([], "k", matched=MergeDelete()).snapshot is None


def test_the_first_clause_that_is_true_acts(table: penstock.Table) -> None:
    table.merge(
        [{"k": k, "name": "s"} for k in (1, 2, 3, 50, 60)],
        "k",
        matched=[MergeDelete(where=pc.field("k") == 1), MergeUpdate(set={"name": "two"}, where=pc.field("x") < 3)],
        not_matched=[
            MergeInsert(where=pc.field("source.k") == 60),
            MergeInsert(values={"k": pc.field("source.k") + 1, "name": "fifty"}),
        ],
    )
    found = state(table)
    assert (1 in found, found[2], found[3], found[60], found[51]) == (False, "two", "n3", "s", "fifty")


def test_conditions_are_text_or_filters_too(table: penstock.Table) -> None:
    source = pa.table({"k": pa.array([1, 2, 3, 50, 60], pa.int16()), "name": ["a", None, "c", "d", "e"]})
    table.merge(
        source,
        "k",
        matched=[
            MergeDelete(where="k = 1 AND source.name LIKE 'a%'"),
            MergeUpdate(set={"name": "two"}, where=penstock.col("source.name").is_null()),
        ],
        not_matched=MergeInsert(where="source.k > 50"),
        not_matched_by_source=MergeDelete(where="k >= 8"),
    )
    assert state(table) == {k: f"n{k}" for k in range(3, 8)} | {0: "n0", 2: "two", 60: "e"}
    with pytest.raises(InvalidFilterError, match=r"unknown column 'source\.prize'"):
        table.merge(source, "k", matched=MergeDelete(where="source.prize > 1"))
    with pytest.raises(InvalidFilterError, match="unknown column 'name'"):
        table.merge(source, "k", not_matched=MergeInsert(where="name = 'd'"))
    with pytest.raises(InvalidFilterError, match=r"expected text such as .*not a builtins\.int"):
        table.merge(source, "k", matched=MergeDelete(where=1))  # type: ignore[arg-type]


def test_rows_that_the_source_does_not_have(table: penstock.Table) -> None:
    result = table.merge(
        [{"k": 2}],
        "k",
        not_matched_by_source=[MergeDelete(where=pc.field("k") > 7), MergeUpdate(set={"name": "lone"})],
    )
    assert (result.rows_deleted, result.rows_updated) == (2, 7)
    assert state(table) == {**dict.fromkeys(range(8), "lone"), 2: "n2"}


def test_null_matches_nothing_and_zeros_are_equal() -> None:
    catalog = penstock.Catalog(f"memory://merge-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "a DOUBLE, b STRING, n INT")
    table.append([{"a": 0.0, "b": "x", "n": 1}, {"a": None, "b": "x", "n": 2}, {"a": 5.0, "b": None, "n": 3}])
    source = [{"a": -0.0, "b": "x", "n": 10}, {"a": None, "b": "x", "n": 20}, {"a": 5.0, "b": None, "n": 30}]
    result = table.merge(source, ["a", "b"], matched=MergeUpdate(set={"n": pc.field("source.n")}))
    assert result.rows_updated == 1
    assert sorted(table.to_arrow().column("n").to_pylist()) == [2, 3, 10]


def test_several_source_rows_for_one_row_are_refused(table: penstock.Table) -> None:
    stored = stored_files(table._ref)
    twins = [{"k": 1, "name": "a"}, {"k": 1, "name": "b"}]
    with pytest.raises(InvalidOptionError, match="several rows of the source"):
        table.merge(twins, "k", matched=MergeUpdate())
    assert stored_files(table._ref) == stored
    assert table.merge([{"k": 90}, {"k": 90}], "k", matched=MergeDelete(), not_matched=MergeInsert()).rows_inserted == 2


def test_many_keys(table: penstock.Table) -> None:
    source = pa.table({"k": pa.array(range(-5_000, 5_000), pa.int64())})
    assert table.merge(source, "k", matched=MergeDelete()).rows_deleted == 10
    assert table.to_arrow().num_rows == 0


def test_keys_of_many_columns_with_many_values() -> None:
    """A number for each combination of 600 values in 8 columns would have 74 bits."""
    catalog = penstock.Catalog(f"memory://merge-{next(NUMBERS)}")
    catalog.create_database("db")
    keys = [f"k{number}" for number in range(8)]
    table = catalog.create_table("db.t", f"{', '.join(f'{key} INT' for key in keys)}, v INT")
    others = [{**dict.fromkeys(keys, 2), "k0": 4, "v": -1}, {**dict.fromkeys(keys, 2), "k7": None, "v": -1}]
    table.append([{**dict.fromkeys(keys, n), "v": 0} for n in range(0, 700, 2)] + others)
    source = [{**dict.fromkeys(keys, n), "v": n} for n in range(600)]
    result = table.merge(source, keys, matched=MergeUpdate(), not_matched=MergeInsert())
    assert (result.rows_updated, result.rows_inserted) == (300, 300)
    found = table.to_arrow(["v"]).column("v").to_pylist()
    assert sorted(found) == [-1, -1, *[0] * 50, *range(600)]
    with pytest.raises(InvalidOptionError, match="several rows of the source"):
        table.merge([*source, source[-1]], keys, matched=MergeUpdate())


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.date32(), pa.timestamp("us"), pa.timestamp("ms", tz="UTC")])
def test_keys_of_many_values_match_as_others_do(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    stored: Any = pa.int32() if pa.types.is_date32(kind) else kind if pa.types.is_integer(kind) else pa.int64()
    source = pa.table(
        {"a": pa.array([5, None, -128, 0, 7, 7], stored).view(kind), "b": ["x", "x", "y", "x", "x", None]}
    )
    batch = pa.record_batch({"a": pa.array([0, -128, 6, None, 5, 7, 0], stored).view(kind), "b": [*"xyxxxxz"]})
    wanted = [3, 2, merge.NONE, merge.NONE, 0, 4, merge.NONE]
    assert merge.KeyMatcher(source, ["a", "b"], "t").rows_of(batch).tolist() == wanted
    monkeypatch.setattr(merge, "_MANY_VALUES", 1)
    assert merge.KeyMatcher(source, ["a", "b"], "t").rows_of(batch).tolist() == wanted


def test_the_values_of_a_large_source_are_not_hashed_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = merge.KeyMatcher(pa.table({"k": pa.array(range(200_000), pa.int64())}), ["k"], "t")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(merge.pc, "index_in", refuse)
    assert matcher.rows_of(pa.record_batch({"k": pa.array([199_999, 200_000, None], pa.int64())})).tolist() == [
        199_999,
        merge.NONE,
        merge.NONE,
    ]


def test_a_dry_run_counts_and_writes_nothing(table: penstock.Table) -> None:
    stored = stored_files(table._ref)
    source = [{"k": 1, "name": "a"}, {"k": 99, "name": "b"}]
    dry = table.merge(source, "k", matched=MergeUpdate(), not_matched=MergeInsert(), dry_run=True)
    assert (dry.snapshot, dry.rows_updated, dry.rows_inserted, len(dry.files)) == (None, 1, 1, 1)
    assert stored_files(table._ref) == stored


def test_a_key_that_is_appended_meanwhile_is_updated_and_not_inserted(
    table: penstock.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = penstock.Table.at(table.location)
    commit, waiting = TableCommitter.commit, [lambda: other.append([{"k": 99, "name": "theirs", "x": 0.0}])]

    def later(self: TableCommitter, request: Any) -> Any:
        if request.has_read and waiting:
            waiting.pop()()
        return commit(self, request)

    monkeypatch.setattr(TableCommitter, "commit", later)
    source = [{"k": 99, "name": "ours"}, {"k": 98, "name": "new"}]
    result = table.merge(source, "k", matched=MergeUpdate(), not_matched=MergeInsert())
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert table.to_arrow(["name"], "k >= 98").column("name").to_pylist().count("ours") == 1
    assert table.to_arrow(filter="k = 99").num_rows == 1
    assert stored_files(table._ref) == needed_files(table._ref)


@pytest.mark.parametrize("meanwhile", ["nothing", "commit", "alter"])
def test_a_change_is_evaluated_again_only_if_others_have_changed_the_table(
    table: penstock.Table, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    commit, requests = TableCommitter.commit, list[object]()

    def refused_once(self: TableCommitter, request: Any) -> Any:
        if not request.has_read:
            return commit(self, request)
        requests.append(request)
        if len(requests) > 1:
            assert meanwhile != "nothing"
            return commit(self, request)
        if meanwhile == "commit":
            penstock.Table.at(table.location).append([{"k": 99, "name": "theirs", "x": 0.0}])
        if meanwhile == "alter":
            penstock.Catalog(table.location.rpartition("/db.db")[0]).alter_table(
                "db.t", penstock.SetOption(key="write-only", value="true")
            )
        raise CommitConflictError("refused")

    monkeypatch.setattr(TableCommitter, "commit", refused_once)
    if meanwhile == "nothing":
        with pytest.raises(CommitConflictError, match="refused"):
            table.delete("k = 3")
        assert len(requests) == 1
    else:
        assert table.delete("k = 3").rows_deleted == 1
        assert len(requests) == 2
    assert (3 in state(table)) == (meanwhile == "nothing")
    assert stored_files(table._ref) == needed_files(table._ref)


def test_sources_of_a_merge_that_do_not_fit_are_refused(table: penstock.Table) -> None:
    with pytest.raises(NotFoundError, match="no column 'q' to match by"):
        table.merge([{"k": 1}], "q", matched=MergeDelete())
    with pytest.raises(NotFoundError, match="the source has no column 'k'"):
        table.merge([{"name": "x"}], "k", matched=MergeDelete())
    with pytest.raises(SchemaMismatchError, match="cannot be compared"):
        table.merge(pa.table({"k": ["one"]}), "k", matched=MergeDelete())
    with pytest.raises(SchemaMismatchError, match="'extra' of the source"):
        table.merge(pa.table({"k": [1], "extra": [1]}), "k", matched=MergeUpdate())
    with pytest.raises(InvalidOptionError, match="what to do"):
        table.merge([{"k": 1}], "k")
    with pytest.raises(InvalidOptionError, match="not true or false"):
        table.merge([{"k": 1}], "k", matched=MergeDelete(where=pc.field("source.k")))


def test_dicts_may_have_columns_that_the_table_does_not_have(table: penstock.Table) -> None:
    source = [{"id": 7, "text": "seven", "n": None}, {"id": 70, "text": "new", "n": 1}]
    table.merge(
        source,
        {"k": "id"},
        matched=MergeUpdate(set={"name": pc.field("source.text")}, where=pc.field("source.n").is_null()),
        not_matched=MergeInsert(values={"k": pc.field("source.id"), "name": pc.field("source.text")}),
    )
    assert state(table) == {**{k: f"n{k}" for k in range(10)}, 7: "seven", 70: "new"}
    with pytest.raises(SchemaMismatchError, match=r"column 'id', which the table does not have, .*values of int, str"):
        table.merge([{"id": 1}, {"id": "2"}], {"k": "id"}, matched=MergeDelete())


def test_keys_match_by_value_and_not_by_what_a_cast_makes_of_them() -> None:
    catalog = penstock.Catalog(f"memory://merge-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k DECIMAL(5, 2), t TIMESTAMP(3), f FLOAT")
    moment = dt.datetime.fromisoformat("2026-01-01T00:00:00.001")
    table.append([{"k": Decimal("1.00"), "t": moment, "f": 0.1}])
    for on, value in (
        ("k", Decimal("1.001")), ("t", moment.replace(microsecond=1500)), ("t", moment.replace(tzinfo=dt.UTC)),
        ("f", 0.10000000001),
    ):  # fmt: skip
        for source in ([{on: value}], pa.table({on: [value]})):
            with pytest.raises(SchemaMismatchError, match=f"'{on}'"):
                table.merge(source, on, matched=MergeDelete())
    assert table.merge(pa.table({"k": [1], "f": [0.1]}), ["k", "f"], matched=MergeDelete()).rows_deleted == 1


def test_an_update_clause_that_sets_nothing_is_refused(table: penstock.Table) -> None:
    before = table.latest_snapshot()
    with pytest.raises(InvalidOptionError, match="sets no column"):
        table.merge([{"k": 1}], ["k"], matched=MergeUpdate(set={}))
    assert table.latest_snapshot() == before


@pytest.mark.parametrize("way", ["update", "merge"])
def test_rows_that_move_keep_the_order_of_their_queue(way: str) -> None:
    """A file that was replaced comes last in the manifests."""
    catalog = penstock.Catalog(f"memory://merge-{next(NUMBERS)}")
    catalog.create_database("db")
    options = {"bucket": "1", "bucket-key": "k"}
    table = catalog.create_table("db.t", "k INT, p STRING, n INT", partition_by=["p"], options=options)
    for k in (1, 2, 3):
        table.append([{"k": k, "p": "a", "n": 0}])
    table.update({"n": 1}, "k = 1")
    if way == "update":
        table.update({"p": "b"}, "p = 'a'")
    else:
        table.merge(
            [{"k": k, "p": "b"} for k in (3, 2, 1)], ["k"], matched=MergeUpdate(set={"p": pc.field("source.p")})
        )
    assert [(row["k"], row["p"]) for row in table.to_arrow().to_pylist()] == [(1, "b"), (2, "b"), (3, "b")]
