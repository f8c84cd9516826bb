"""UPDATE, MERGE and DELETE of queues in Spark SQL, against the same change by ``Table`` of a twin of the table."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from tests.spark.needs import needs

import penstock
from penstock.spark.versions.facts import ROW_DELTAS
from penstock.table.dml import by_position

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

pytestmark = needs(ROW_DELTAS)


@pytest.fixture
def run(spark: SparkSession) -> Callable[[str], list[Any]]:
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


def _make(catalog: Catalog, name: str, *, buckets: int = 3, **options: str) -> Table:
    """Return a queue with files of several appends, in two partitions."""
    table = catalog.create_table(
        f"d.{name}",
        "k INT, p STRING, v INT, t STRING",
        partition_by=["p"],
        options={"bucket": str(buckets), "bucket-key": "k", **options},
    )
    for first in range(0, 60, 20):
        table.append([_row(n) for n in range(first, first + 20)])
    return table


def _row(n: int) -> dict[str, Any]:
    return {"k": None if n % 10 == 9 else n % 7, "p": "ab"[n // 5 % 2], "v": n, "t": None if n % 4 == 3 else f"t{n}"}


def _queues(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return the rows with equal keys, in order."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def _queues_of(table: Table) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    return _queues(table.to_arrow().to_pylist(), "p", "k")


def _check_buckets(table: Table, scratch: Table) -> None:
    """Check that each row is in the bucket to which an append assigns it."""
    scratch.overwrite(table.to_arrow())
    counts = [
        sorted((each["partition"], each["bucket"], each["record_count"]) for each in _per_bucket(one))
        for one in (table, scratch)
    ]
    assert counts[0] == counts[1]


def _per_bucket(table: Table) -> list[dict[str, Any]]:
    files = table.files().select(["partition", "bucket", "record_count"])
    grouped = files.group_by(["partition", "bucket"]).aggregate([("record_count", "sum")])
    return [{**row, "record_count": row["record_count_sum"]} for row in grouped.to_pylist()]


def test_updated_rows_stay_at_their_positions(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table, twin = _make(catalog, "updated"), _make(catalog, "updated_twin")
    before = table.latest_snapshot()
    statement = "UPDATE penstock.d.updated SET v = -v WHERE v % 2 = 1 AND p = 'a'"
    assert "WriteDelta" in run(f"EXPLAIN {statement}")[0][0]
    run(statement)
    twin.update(
        {"v": pc.negate(pc.field("v"))}, penstock.col("v").isin(list(range(1, 60, 2))) & (penstock.col("p") == "a")
    )
    assert table.to_arrow() == twin.to_arrow()
    latest = table.latest_snapshot()
    assert before is not None
    assert latest is not None
    assert (latest.id, latest.commit_kind) == (before.id + 1, "OVERWRITE")
    run("UPDATE penstock.d.updated SET t = 'in', v = v + 1 WHERE v IN (SELECT id FROM range(10, 30))")
    twin.update({"t": "in", "v": pc.add(pc.field("v"), 1)}, "v >= 10 AND v < 30")
    assert table.to_arrow() == twin.to_arrow()


def test_rows_whose_bucket_or_partition_changes_are_appended_there(
    run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    table, scratch = _make(catalog, "moved"), _make(catalog, "moved_scratch")
    rows = [_row(n) for n in range(60)]
    run("UPDATE penstock.d.moved SET k = NULL WHERE v = 1")
    run("UPDATE penstock.d.moved SET k = 5 WHERE k IS NULL AND v > 30")
    run("UPDATE penstock.d.moved SET p = 'c' WHERE v IN (5, 25, 45)")
    for row in rows:
        row["k"] = None if row["v"] == 1 else 5 if row["k"] is None and row["v"] > 30 else row["k"]
        row["p"] = "c" if row["v"] in {5, 25, 45} else row["p"]
    assert sorted(table.to_arrow().to_pylist(), key=repr) == sorted(rows, key=repr)
    _check_buckets(table, scratch)
    for (partition, _), queue in _queues_of(table).items():
        stayed = [row["v"] for row in queue if row["v"] != 1 and not (row["k"] == 5 and row["v"] % 10 == 9)]
        assert stayed == sorted(stayed), partition
    # It is in another bucket than before, and behind the rows that were there.
    nulls = [row["v"] for row in table.to_arrow(filter="k IS NULL AND p = 'a'").to_pylist()]
    assert 1 in nulls


def test_rows_are_merged_in_order(spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table, twin = _make(catalog, "merged"), _make(catalog, "merged_twin")
    source = [{"v": v, "k": v % 7, "t": f"s{v}"} for v in (1, 22, 43, 59, 100, 101)]
    spark.createDataFrame([tuple(row.values()) for row in source], "v INT, k INT, t STRING").createOrReplaceTempView(
        "s"
    )
    run(
        "MERGE INTO penstock.d.merged t USING s ON t.v = s.v WHEN MATCHED AND s.v < 20 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t = s.t WHEN NOT MATCHED THEN INSERT (k, p, v, t) VALUES (s.k, 'b', s.v, s.t)"
    )
    twin.merge(
        [{**row, "p": "b"} for row in source],
        on=["v"],
        matched=[
            penstock.MergeDelete(where=pc.field("source.v") < 20),
            penstock.MergeUpdate(set={"t": pc.field("source.t")}),
        ],
        not_matched=penstock.MergeInsert(),
    )
    assert _queues_of(table) == _queues_of(twin)
    _check_buckets(table, _make(catalog, "merged_scratch"))
    kind = table.latest_snapshot()
    assert kind is not None
    assert kind.commit_kind == "OVERWRITE"
    run("MERGE INTO penstock.d.merged t USING s ON t.v = s.v WHEN NOT MATCHED BY SOURCE AND t.p = 'a' THEN DELETE")
    twin.delete("p = 'a'")
    assert [row["v"] for row in table.to_arrow(filter="p = 'b'").to_pylist()] == [
        row["v"] for row in twin.to_arrow().to_pylist()
    ]
    latest = table.latest_snapshot()
    spark.createDataFrame([(22, 1), (22, 2)], "v INT, n INT").createOrReplaceTempView("twice")
    with pytest.raises((PySparkException, Py4JJavaError), match="MERGE_CARDINALITY_VIOLATION"):
        run("MERGE INTO penstock.d.merged t USING twice s ON t.v = s.v WHEN MATCHED THEN UPDATE SET v = s.n")
    assert table.latest_snapshot() == latest
    _check_that_no_other_file_is_there(table)


def test_a_queue_without_rows_takes_those_of_a_merge(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    table = catalog.create_table("d.empty", "k INT, v INT", options={"bucket": "2", "bucket-key": "k"})
    spark.range(10).selectExpr("CAST(id AS INT) AS k", "CAST(id AS INT) AS v").createOrReplaceTempView("ten")
    text = (
        "MERGE INTO penstock.d.empty t USING ten s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = t.v + 10 "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    run(text)
    run(text)
    assert sorted(table.to_arrow(["v"]).column("v").to_pylist()) == list(range(10, 20))
    run("MERGE INTO penstock.d.empty t USING ten s ON t.k = s.k AND s.k < 0 WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert table.to_arrow().num_rows == 0


_MERGE = "MERGE INTO {} t USING some s ON t.v = s.v AND t.v BETWEEN 12 AND 14 AND t.p = 'a' WHEN MATCHED "
# Each with the same change of a twin, and what becomes of rows.
_SELECTIVE: dict[str, tuple[str, Callable[[Table], object], dict[int, dict[str, Any] | None]]] = {
    "update": (
        "UPDATE {} SET t = 'x', v = v + 100 WHERE v = 11",
        lambda twin: twin.update({"t": "x", "v": 111}, "v = 11"),
        {11: {"t": "x", "v": 111}},
    ),
    "moving update": (
        "UPDATE {} SET p = 'b' WHERE v = 11",
        lambda twin: twin.update({"p": "b"}, "v = 11"),
        {11: {"p": "b"}},
    ),
    "delete": (
        "DELETE FROM {} WHERE v BETWEEN 6 AND 8 AND abs(v) % 2 = 1",
        lambda twin: twin.delete("v = 7"),
        {7: None},
    ),
    "merge": (
        _MERGE + "AND s.v = 12 THEN DELETE WHEN MATCHED THEN UPDATE SET t = 'm'",
        lambda twin: (twin.delete("v = 12"), twin.update({"t": "m"}, "v = 13")),
        {12: None, 13: {"t": "m"}},
    ),
    "inserting merge": (
        _MERGE + "THEN UPDATE SET t = 'm' WHEN NOT MATCHED THEN INSERT (k, p, v, t) VALUES (1, 'a', s.v, 's')",
        lambda twin: (
            twin.update({"t": "m"}, "v IN (12, 13)"),
            twin.append([{"k": 1, "p": "a", "v": 90, "t": "s"}]),
        ),
        {12: {"t": "m"}, 13: {"t": "m"}, 90: {"k": 1, "p": "a", "v": 90, "t": "s"}},
    ),
}


@pytest.mark.parametrize("kind", _SELECTIVE)
def test_files_that_begin_with_one_number_change_together_though_the_condition_excludes_some(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, tmp_path: Path, kind: str
) -> None:
    statement, change, new = _SELECTIVE[kind]
    name = f"split_{kind.replace(' ', '_')}"
    table, twin = (_make(catalog, each, buckets=1) for each in (name, f"{name}_twin"))
    for each in (table, twin):
        each.with_options({"target-file-row-num": "3"}).delete("v IN (0, 5)")
        assert each.files()["min_sequence_number"].to_pylist().count(0) == 6
    rows = table.to_arrow().to_pylist()
    spark.createDataFrame([(12,), (13,), (90,)], "v INT").createOrReplaceTempView("some")
    before = {row["file_path"] for row in table.files().to_pylist()}
    run(statement.format(f"penstock.d.{name}"))
    # The file of the rows, and the two that begin with its number.
    assert len(before - {row["file_path"] for row in table.files().to_pylist()}) == 3
    change(twin)
    stay, last = list[dict[str, Any]](), list[dict[str, Any]]()
    for row in rows:
        after = new.get(row["v"], {})
        if after is not None:
            (last if "p" in after else stay).append(row | after)
    model = _queues([*stay, *last, *(row for v, row in new.items() if row and v == 90)], "p")
    for each in (table, twin):
        assert _queues(each.to_arrow().to_pylist(), "p") == model
    stream = spark.readStream.table(f"penstock.d.{name}").writeStream.format("memory").queryName("of_queue")
    stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert _queues([row.asDict() for row in spark.table("of_queue").collect()], "p") == model
    _check_that_no_other_file_is_there(table)


def test_rows_that_a_query_names_are_deleted(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table, twin = _make(catalog, "deleted"), _make(catalog, "deleted_twin")
    run("DELETE FROM penstock.d.deleted WHERE v IN (SELECT id FROM range(10, 50, 3))")
    twin.delete(penstock.col("v").isin(list(range(10, 50, 3))))
    assert table.to_arrow() == twin.to_arrow()
    run("DELETE FROM penstock.d.deleted WHERE abs(v) % 2 = 0")
    twin.delete(penstock.col("v").isin(list(range(0, 60, 2))))
    assert table.to_arrow() == twin.to_arrow()
    latest = table.latest_snapshot()
    run("DELETE FROM penstock.d.deleted WHERE v IN (SELECT id FROM range(100, 200))")
    assert table.latest_snapshot() == latest
    run("DELETE FROM penstock.d.deleted WHERE v IN (SELECT id FROM range(100))")
    assert table.to_arrow().num_rows == 0
    _check_that_no_other_file_is_there(table)


def test_a_queue_of_one_bucket_and_other_formats_are_changed(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    for file_format in ("parquet", "orc", "avro"):
        name = f"one_{file_format}"
        table, twin = (
            _make(catalog, each, buckets=1, **{"file.format": file_format}) for each in (name, f"{name}_twin")
        )
        run(f"UPDATE penstock.d.{name} SET k = k + 1, t = upper(t) WHERE v % 5 = 2")
        rows = [
            {**row, "k": row["k"] and row["k"] + 1, "t": row["t"] and row["t"].upper()} if row["v"] % 5 == 2 else row
            for row in twin.to_arrow().to_pylist()
        ]
        for row in rows:
            if row["v"] % 5 == 2 and row["k"] == 0:
                row["k"] = 1
        assert _queues(table.to_arrow().to_pylist(), "p") == _queues(rows, "p")


def test_appends_and_compactions_beside_a_change_conflict_only_where_it_read(
    run: Callable[[str], list[Any]], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _make(catalog, "raced")
    commit = by_position.commit_changes

    def with_append_of(v: int, p: str) -> None:
        def appended(*args: Any) -> Any:
            table.append([{"k": 1, "p": p, "v": v, "t": "new"}])
            return commit(*args)

        monkeypatch.setattr(by_position, "commit_changes", appended)

    with_append_of(100, "b")
    run("UPDATE penstock.d.raced SET v = v + 1000 WHERE p = 'a' AND v % 2 = 0")
    assert len(table.to_arrow(filter="v >= 1000").to_pylist()) == 18
    with_append_of(101, "a")
    before = {row["file_path"] for row in table.files().to_pylist()}
    with pytest.raises(PySparkException, match="others committed after snapshot"):
        run("UPDATE penstock.d.raced SET v = 0 WHERE p = 'a' AND v % 3 = 0")
    monkeypatch.undo()
    assert len({row["file_path"] for row in table.files().to_pylist()} - before) == 1
    queue = [row["v"] % 1000 for row in _queues_of(table)["a", 1]]
    assert queue == sorted(queue)
    _check_that_no_other_file_is_there(table)


def test_a_job_that_fails_leaves_nothing(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table = _make(catalog, "failed")
    latest, files = table.latest_snapshot(), _data_files(table)
    with pytest.raises((PySparkException, Py4JJavaError), match="no luck"):
        run("UPDATE penstock.d.failed SET t = raise_error('no luck') WHERE v % 60 = 59")
    assert table.latest_snapshot() == latest
    assert _data_files(table) == files
    assert not list(Path(table.location).glob(".penstock-*"))


def test_what_would_lose_order_or_buckets_is_refused(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    catalog.create_table("d.padded", "k CHAR(3), v INT", options={"bucket": "2", "bucket-key": "k"})
    with pytest.raises(PySparkException, match=r"Spark pads its bucket key.*use Table\.update"):
        run("UPDATE penstock.d.padded SET v = 1 WHERE abs(v) = 1")


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed > 0 else []) for seed in range(6)]
)
def test_random_changes_agree_with_those_of_the_table(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - repeatable
    name = f"fuzz{seed}"
    table, twin = _make(catalog, name), _make(catalog, f"{name}_twin")
    for _ in range(4):
        chosen = sorted({dice.randrange(70) for _ in range(dice.randrange(1, 15))})
        spark.createDataFrame([(each,) for each in chosen], "v INT").createOrReplaceTempView("chosen")
        match dice.randrange(3):
            case 0:
                run(f"UPDATE penstock.d.{name} SET t = 'x' WHERE v IN (SELECT v FROM chosen)")
                twin.update({"t": "x"}, penstock.col("v").isin(chosen))
            case 1:
                run(f"DELETE FROM penstock.d.{name} WHERE v IN (SELECT v FROM chosen)")
                twin.delete(penstock.col("v").isin(chosen))
            case _:
                run(
                    f"MERGE INTO penstock.d.{name} t USING chosen s ON t.v = s.v WHEN MATCHED AND s.v % 2 = 0 THEN "
                    "DELETE WHEN MATCHED THEN UPDATE SET t = 'm'"
                )
                twin.delete(penstock.col("v").isin([each for each in chosen if each % 2 == 0]))
                twin.update({"t": "m"}, penstock.col("v").isin([each for each in chosen if each % 2]))
        assert table.to_arrow() == twin.to_arrow()
        if dice.random() < 0.5:
            for each in (table, twin):
                each.append([_row(n) for n in range(60, 70)])


@pytest.mark.parametrize("kind", ["rescaled", "older schemas", "char"])
def test_changes_of_tables_with_a_history_agree_with_those_of_the_methods(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, kind: str
) -> None:
    names = [f"history_{kind.replace(' ', '_')}{suffix}" for suffix in ("", "_twin")]
    text = "CHAR(5)" if kind == "char" else "STRING"
    for name in names:
        table = catalog.create_table(
            f"d.{name}",
            f"k INT, p STRING, v INT, t {text}",
            partition_by=["p"],
            options={"bucket": "3", "bucket-key": "k"},
        )
        table.append([_row(n) for n in range(30)])
        if kind == "rescaled":
            table.append([_row(n) for n in range(30, 60)])
            with pytest.warns(penstock.OptionWarning, match="holds for new partitions"):
                catalog.alter_table(f"d.{name}", penstock.SetOption(key="bucket", value="2"))
            table = catalog.load_table(f"d.{name}")
            table.maintenance.rescale(partition={"p": "b"})
        if kind == "older schemas":
            catalog.alter_table(
                f"d.{name}",
                penstock.RenameColumn(column="t", new_name="u"),
                penstock.AddColumn(column="t", type="STRING"),
                penstock.UpdateColumnType(column="v", type="BIGINT"),
            )
        if kind != "rescaled":
            more = {"u": None} if kind == "older schemas" else {}
            catalog.load_table(f"d.{name}").append([_row(n) | more for n in range(30, 60)])
    table, twin = (catalog.load_table(f"d.{name}") for name in names)
    name = f"penstock.d.{names[0]}"
    run(f"UPDATE {name} SET t = 'x' WHERE v IN (SELECT id FROM range(5, 45, 4))")
    twin.update({"t": "x"}, penstock.col("v").isin(list(range(5, 45, 4))))
    assert _stripped(table.to_arrow().to_pylist()) == _stripped(twin.to_arrow().to_pylist())
    run(f"DELETE FROM {name} WHERE abs(v) % 7 = 3")
    twin.delete(penstock.col("v").isin(list(range(3, 60, 7))))
    assert _stripped(table.to_arrow().to_pylist()) == _stripped(twin.to_arrow().to_pylist())
    spark.createDataFrame([(2, "y"), (40, "z"), (90, "w")], "v INT, t STRING").createOrReplaceTempView("some")
    run(
        f"MERGE INTO {name} t USING some s ON t.v = s.v WHEN MATCHED THEN UPDATE SET t = s.t "
        "WHEN NOT MATCHED THEN INSERT (k, p, v, t) VALUES (1, 'b', s.v, s.t)"
    )
    twin.update({"t": "y"}, "v = 2")
    twin.update({"t": "z"}, "v = 40")
    more = {"u": None} if kind == "older schemas" else {}
    twin.append([{"k": 1, "p": "b", "v": 90, "t": "w"} | more])
    queues = [_queues_of(each) for each in (table, twin)]
    assert _stripped(queues[0]) == _stripped(queues[1])


def _stripped(rows: object) -> str:
    """Spark pads the CHAR that it writes, which the methods do not."""
    return re.sub(r"(\w) +'", r"\1'", repr(rows))


def _data_files(table: Table) -> list[Path]:
    return sorted(Path(table.location).rglob("*.*"))


def _check_that_no_other_file_is_there(table: Table) -> None:
    assert not list(Path(table.location).glob(".penstock-*"))
    assert table.remove_orphan_files(older_than=dt.datetime.now(dt.UTC), allow_recent=True, dry_run=True).orphans == ()
