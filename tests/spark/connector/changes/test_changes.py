"""DELETE, UPDATE and MERGE in Spark SQL through the catalog, against the same change of Python rows."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from tests.spark.needs import needs

from penstock.spark.connector import staged_files
from penstock.spark.connector.changes import group_scan, replace_files
from penstock.spark.versions.facts import COUNTED_UPDATES, MERGES_TO_NOTHING, METADATA_COLUMNS, PYTHON_SCANS, ROW_DELTAS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

Row = tuple[int | None, str | None, int | None]


@pytest.fixture
def run(spark: SparkSession, catalog: Catalog) -> Callable[[str], list[Any]]:
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


def _rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)


def _files(table: Table) -> set[str]:
    return {row["file_path"] for row in table.files().to_pylist()}


def _make(run: Callable[[str], list[Any]], catalog: Catalog, name: str, properties: str = "") -> Table:
    run(f"CREATE TABLE penstock.d.{name} (k INT, p STRING, v INT) PARTITIONED BY (p) {properties}")
    table = catalog.load_table(f"d.{name}")
    table.append([{"k": n, "p": "ab"[n % 2], "v": 10 * n} for n in range(6)])
    table.append([{"k": n, "p": "a", "v": None if n == 7 else n} for n in range(6, 9)])
    return table


def test_rows_are_deleted_by_any_condition(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table = _make(run, catalog, "deleted")
    before = _files(table)
    run("DELETE FROM penstock.d.deleted WHERE k = 3 AND p = 'b'")
    assert [row[0] for row in _rows(table)] == [0, 1, 2, 4, 5, 6, 7, 8]
    assert len(before & _files(table)) == 2
    run("DELETE FROM penstock.d.deleted WHERE v < 10")
    assert [row[0] for row in _rows(table)] == [1, 2, 4, 5, 7]
    run("DELETE FROM penstock.d.deleted WHERE abs(k) % 5 = 2")
    assert [row[0] for row in _rows(table)] == [1, 4, 5]
    run("DELETE FROM penstock.d.deleted WHERE k IN (SELECT id FROM range(5))")
    assert [row[0] for row in _rows(table)] == [5]
    latest = table.latest_snapshot()
    run("DELETE FROM penstock.d.deleted WHERE k IN (SELECT id FROM range(5))")
    assert table.latest_snapshot() == latest
    run("DELETE FROM penstock.d.deleted")
    assert _rows(table) == []


@needs(METADATA_COLUMNS)
@pytest.mark.parametrize(
    "properties",
    [
        "",
        "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'k')",
        "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')",
    ],
    ids=["rows", "queue", "vectors"],
)
def test_a_change_may_say_where_rows_are(run: Callable[[str], list[Any]], catalog: Catalog, properties: str) -> None:
    name = f"penstock.d.placed_{len(properties)}"
    table = _make(run, catalog, name.rpartition(".")[2], properties)
    firsts = len(_files(table))
    run(f"UPDATE {name} SET v = -1 WHERE k IN (SELECT k FROM {name} WHERE __paimon_row_index = 0)")
    assert sum(row[2] == -1 for row in _rows(table)) == firsts
    # Spark finds these columns only where it names rows by them; elsewhere, or in a MERGE, an error changes nothing.
    merge = f"MERGE INTO {name} t USING (SELECT 0 AS i) s ON t.__paimon_row_index = s.i WHEN MATCHED THEN DELETE"
    for statement in (f"UPDATE {name} SET v = -2 WHERE __paimon_row_index = 0", merge):
        before = _rows(table)
        first = {k for (k,) in run(f"SELECT k FROM {name} WHERE __paimon_row_index = 0")}
        others = [row for row in before if row[0] not in first]
        changed = [(row[0], row[1], -2) for row in before if row[0] in first and statement != merge]
        with suppress(PySparkException, Py4JJavaError):
            run(statement)
            before = sorted([*others, *changed], key=repr)
        assert _rows(table) == before
        assert "deletion-vectors" not in properties or statement == merge or (0, "a", -2) in before


def test_rows_are_updated_and_other_files_stay(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table = _make(run, catalog, "updated")
    before = _files(table)
    run("UPDATE penstock.d.updated SET v = v + 1 WHERE p = 'b' AND k % 3 = 1")
    assert _rows(table)[:3] == [(0, "a", 0), (1, "b", 11), (2, "a", 20)]
    assert len(before & _files(table)) == 2
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.commit_kind == "OVERWRITE"
    run("UPDATE penstock.d.updated SET p = 'c', v = -1 WHERE k IN (SELECT id FROM range(2))")
    assert _rows(table)[:3] == [(0, "c", -1), (1, "c", -1), (2, "a", 20)]
    run("UPDATE penstock.d.updated SET p = NULL WHERE v IS NULL")
    assert (7, None, None) in _rows(table)
    latest = table.latest_snapshot()
    run("UPDATE penstock.d.updated SET v = 0 WHERE k % 100 = 99")
    assert (table.latest_snapshot() == latest) == COUNTED_UPDATES.is_here
    assert run("SELECT count(*), sum(v) FROM penstock.d.updated") == [(9, 152)]


def test_rows_are_merged(spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table = _make(run, catalog, "merged")
    source = [(1, "b", 100), (3, "b", -1), (20, "z", 5), (21, None, 6)]
    spark.createDataFrame(source, "k INT, p STRING, v INT").createOrReplaceTempView("changes")
    run(
        "MERGE INTO penstock.d.merged t USING changes s ON t.k = s.k WHEN MATCHED AND s.v < 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT *"
    )
    assert _rows(table) == sorted(
        [
            *[(0, "a", 0), (1, "b", 110), (2, "a", 20), (4, "a", 40), (5, "b", 50), (6, "a", 6), (7, "a", None)],
            *[(8, "a", 8), (20, "z", 5), (21, None, 6)],
        ],
        key=repr,
    )
    run(
        "MERGE INTO penstock.d.merged t USING changes s ON t.k = s.k WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert _rows(table) == sorted([(1, "b", 110), (3, "b", -1), (20, "z", 5), (21, None, 6)], key=repr)
    spark.createDataFrame([(1, 1), (1, 2)], "k INT, v INT").createOrReplaceTempView("twice")
    latest = table.latest_snapshot()
    with pytest.raises((PySparkException, Py4JJavaError), match="MERGE_CARDINALITY_VIOLATION"):
        run("MERGE INTO penstock.d.merged t USING twice s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v")
    assert table.latest_snapshot() == latest


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_rows_change_although_spark_needs_no_scan_to_find_them(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, adaptive: str
) -> None:
    spark.sql("SELECT * FROM VALUES (2), (4) AS t(key)").createOrReplaceTempView("folded")
    spark.range(9).selectExpr("CAST(id AS INT) AS key").where("key % 10 = 9").createOrReplaceTempView("no_rows")
    table = _make(run, catalog, f"unscanned_{adaptive}")
    rows, name = table.to_arrow(), f"penstock.d.unscanned_{adaptive}"
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    for condition, changed in {
        # Spark finds that the condition is always true before, and after, it has planned the scan; and while it runs.
        "NOT EXISTS (SELECT * FROM folded WHERE key > 7)": 9,
        "k >= 2 AND NOT EXISTS (SELECT * FROM folded WHERE key > 7)": 7,
        "k NOT IN (SELECT key FROM folded WHERE key > 7)": 9,
        "NOT EXISTS (SELECT * FROM no_rows WHERE key = k)": 9,
        # And that it is always false.
        "EXISTS (SELECT * FROM folded WHERE key > 7)": 0,
        "EXISTS (SELECT * FROM no_rows WHERE key = k)": 0,
    }.items():
        latest = table.latest_snapshot()
        run(f"UPDATE {name} SET v = -1 WHERE {condition}")
        assert [row[2] for row in _rows(table)].count(-1) == changed, condition
        if not COUNTED_UPDATES.is_here:
            latest = table.latest_snapshot()
        run(f"DELETE FROM {name} WHERE {condition}")
        assert len(_rows(table)) == 9 - changed, condition
        assert changed or table.latest_snapshot() == latest
        table.overwrite(rows)
    for source, action, left in (
        ("(SELECT * FROM folded WHERE key > 7)", "NOT MATCHED BY SOURCE THEN DELETE", 0),
        ("no_rows", "NOT MATCHED BY SOURCE THEN DELETE", 0),
        ("no_rows", "MATCHED THEN DELETE", 9),
        # Each row is deleted twice.
        ("(SELECT key FROM folded UNION ALL SELECT key FROM folded)", "MATCHED THEN DELETE", 7),
    ):
        text = f"MERGE INTO {name} USING {source} s ON k = s.key WHEN {action}"
        if (source, left) == ("no_rows", 0) and not MERGES_TO_NOTHING.is_here and adaptive == "true":
            with pytest.raises(PySparkException, match="9 are missing among those that Spark has read"):
                run(text)
            continue
        run(text)
        assert len(_rows(table)) == left, (source, action)
        table.overwrite(rows)
    spark.conf.unset("spark.sql.adaptive.enabled")


def test_a_change_in_which_rows_are_missing_is_refused(
    run: Callable[[str], list[Any]], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _make(run, catalog, "missing")
    latest = table.latest_snapshot()
    read_files = group_scan.GroupScan.read_files

    def more(scan: group_scan.GroupScan) -> Any:
        found = read_files(scan)
        return replace(found, splits=(*found.splits, *found.splits))

    monkeypatch.setattr(group_scan.GroupScan, "read_files", more)
    for statement in (
        "UPDATE penstock.d.missing SET v = 1 WHERE abs(k) = 1",
        "MERGE INTO penstock.d.missing USING (SELECT 1 AS i) ON k = i WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(PySparkException, match=r"rows in the files to replace, \d+ are missing.*use Table"):
            run(statement)
        assert table.latest_snapshot() == latest


@pytest.mark.parametrize("scan", ["was removed", "returned some rows"])
def test_a_merge_without_counts_whose_scan_has_not_returned_all_rows_is_refused(
    run: Callable[[str], list[Any]], catalog: Catalog, monkeypatch: pytest.MonkeyPatch, scan: str
) -> None:
    table = _make(run, catalog, f"uncounted_{scan[0]}")
    latest = table.latest_snapshot()
    monkeypatch.setattr(replace_files, "_KEPT", ())
    monkeypatch.setattr(replace_files, "_CHANGED", ())
    text = f"MERGE INTO penstock.d.uncounted_{scan[0]} USING (SELECT 1 AS i) ON k = i WHEN MATCHED THEN DELETE"
    if scan == "was removed":
        # No scan of Spark's plan has the text that is looked for.
        numbers = count()
        monkeypatch.setattr(group_scan.GroupScan, "toString", lambda _: f"scan {next(numbers)}")
    else:
        read_files = group_scan.GroupScan.read_files

        def more(scan: group_scan.GroupScan) -> Any:
            found = read_files(scan)
            return replace(found, splits=(*found.splits, *found.splits))

        monkeypatch.setattr(group_scan.GroupScan, "read_files", more)
    with pytest.raises(PySparkException, match=r"\d+ are missing among those that Spark has read.*use Table"):
        run(text)
    assert table.latest_snapshot() == latest
    monkeypatch.undo()
    run(text)
    assert [row[0] for row in _rows(table)] == [0, *range(2, 9)]


def test_a_table_that_spark_must_not_rewrite_is_refused_in_one_line(
    run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    catalog.create_table("d.nanos", "k INT, v INT, t TIMESTAMP(9)").append([{"k": 1, "v": 1, "t": None}])
    for statement, cure in {
        "UPDATE penstock.d.nanos SET v = 1 WHERE k = 1": "use Table.update",
        "DELETE FROM penstock.d.nanos WHERE k % 2 = 0": "use Table.delete",
        "DELETE FROM penstock.d.nanos WHERE k IN (SELECT id FROM range(5))": "use Table.delete",
        "MERGE INTO penstock.d.nanos USING (SELECT 1 AS i) ON k = i WHEN MATCHED THEN DELETE": "use Table.merge",
    }.items():
        # Where Python workers cannot scan, the scan of nanoseconds is refused before some of the statements are.
        refusal = cure if PYTHON_SCANS.is_here else f"{cure}|{re.escape(PYTHON_SCANS.refused())}"
        with pytest.raises(PySparkException, match=refusal) as caught:
            run(statement)
        assert "Traceback" not in str(caught.value)
    table = _make(run, catalog, "queue", "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'k')")
    run("DELETE FROM penstock.d.queue WHERE k >= 3 OR v = 0")  # by its metadata
    assert [row[0] for row in _rows(table)] == [1, 2]


def test_a_change_that_others_affect_meanwhile_fails_and_leaves_nothing(
    run: Callable[[str], list[Any]], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _make(run, catalog, "raced")
    commit = replace_files.commit_replacement

    def with_append_of(k: int, p: str) -> None:
        def appended(*args: Any) -> Any:
            table.append([{"k": k, "p": p, "v": 1}])
            return commit(*args)

        monkeypatch.setattr(replace_files, "commit_replacement", appended)

    with_append_of(11, "a")
    run("UPDATE penstock.d.raced SET v = -1 WHERE p = 'b' AND v % 2 = 0")
    assert [row for row in _rows(table) if row[1] == "b"] == [(1, "b", -1), (3, "b", -1), (5, "b", -1)]
    with_append_of(13, "b")
    before = _files(table)
    with pytest.raises(PySparkException, match="others committed after snapshot"):
        run("UPDATE penstock.d.raced SET v = -2 WHERE p = 'b' AND abs(v) % 2 = 1")
    monkeypatch.undo()
    assert len(_files(table) - before) == 1
    on_disk = {str(path) for path in _data_files(table)}
    assert len(on_disk) == len({row["file_path"] for row in table.files().to_pylist()}) + 1


def test_files_of_several_partitions_are_written_once(
    run: Callable[[str], list[Any]], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        pytest.fail("rows of the tasks' files were written once more")

    # A directory of partitions cannot show the first two apart; the others need escapes or more than ASCII.
    texts = [None, "", "é", "a/b", "a=b", " "]
    run("CREATE TABLE penstock.d.once (k INT, v INT, p STRING, n INT) PARTITIONED BY (p, n)")
    table = catalog.load_table("d.once")
    table.append([{"k": k, "v": 0, "p": texts[k % 6], "n": k % 2 or None} for k in range(24)])
    monkeypatch.setattr(staged_files, "write_dataframe", refused)
    before = _files(table)
    run(
        "MERGE INTO penstock.d.once t USING (SELECT explode(sequence(20, 30)) AS i) ON k = i "
        "WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (k, v, p, n) VALUES (i, 2, 'new', i)"
    )
    run("UPDATE penstock.d.once SET v = v + 10 WHERE k % 3 = 0")
    run("DELETE FROM penstock.d.once WHERE k IN (SELECT id FROM range(2))")
    expected = [(k, (k >= 20) + (k >= 24) + 10 * (k % 3 == 0)) for k in range(2, 31)]
    at = [(texts[k % 6], k % 2 or None) if k < 24 else ("new", k) for k in range(2, 31)]
    assert _rows(table) == sorted([(*row, *place) for row, place in zip(expected, at, strict=True)], key=repr)
    assert not before & _files(table)
    assert all(row["record_count"] <= 4 for row in table.files().to_pylist())


def test_a_name_is_no_pattern_where_rows_are_written_again(run: Callable[[str], list[Any]], catalog: Catalog) -> None:
    table = catalog.create_table("d.a{1}[b]*", "k INT, v INT", options={"file.format": "orc"})
    table.append([{"k": n, "v": n} for n in range(4)])
    run("UPDATE penstock.d.`a{1}[b]*` SET v = 9 WHERE abs(k) = 1")
    assert table.to_arrow()["v"].to_pylist() == [0, 9, 2, 3]


def test_an_update_of_one_partition_is_one_job(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    table = _make(run, catalog, "jobs")
    spark.sparkContext.setJobGroup("one partition", "")
    try:
        run("UPDATE penstock.d.jobs SET v = v + 1 WHERE p = 'a' AND k % 3 = 1")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("one partition")) == 1
    assert (4, "a", 41) in _rows(table)


def _data_files(table: Table) -> list[Path]:
    return list(Path(table.location).rglob("*.parquet"))


KINDS = (
    {"deletion-vectors.enabled": "true"},
    {},
    *([{"row-tracking.enabled": "true"}] if ROW_DELTAS.is_here else []),
)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed > 1 else []) for seed in range(12)]
)
def test_random_changes_agree_with_python(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - repeatable
    name = f"fuzz{seed}"
    options = {"file.format": dice.choice(["parquet", "orc"]), **KINDS[seed % len(KINDS)]}
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    run(f"CREATE TABLE penstock.d.{name} (k INT, p STRING, v INT) PARTITIONED BY (p) TBLPROPERTIES ({properties})")
    table = catalog.load_table(f"d.{name}")
    model: list[Row] = []
    for _ in range(6):
        for _ in range(dice.randrange(3)):
            new = [_random_row(dice) for _ in range(dice.randrange(1, 6))]
            table.append([dict(zip("kpv", row, strict=True)) for row in new])
            model += new
        model = _change(dice, spark, run, f"penstock.d.{name}", model)
        assert _rows(table) == sorted(model, key=repr)


def _random_row(dice: random.Random) -> Row:
    return (
        dice.choice([None, *range(8)]),
        dice.choice([None, "", "a", "b"]),
        dice.choice([None, *range(-3, 4)]),
    )


def _change(
    dice: random.Random, spark: SparkSession, run: Callable[[str], list[Any]], name: str, model: list[Row]
) -> list[Row]:
    text, holds = dice.choice(
        [
            ("p = 'a'", lambda row: row[1] == "a"),
            ("k >= 4 AND v < 1", lambda row: row[0] is not None and row[0] >= 4 and row[2] is not None and row[2] < 1),
            ("k % 3 = 1", lambda row: row[0] is not None and row[0] % 3 == 1),
            ("k IN (SELECT id FROM range(3))", lambda row: row[0] in {0, 1, 2}),
            ("p IS NULL OR v <> 2", lambda row: row[1] is None or row[2] not in {None, 2}),
            ("NOT (k < 3)", lambda row: row[0] is not None and row[0] >= 3),
            ("k NOT IN (1, 2, NULL)", lambda _: False),
        ]
    )
    match dice.randrange(3):
        case 0:
            run(f"DELETE FROM {name} WHERE {text}")
            return [row for row in model if not holds(row)]
        case 1:
            run(f"UPDATE {name} SET v = v + 1, p = coalesce(p, 'z') WHERE {text}")
            return [_updated(row) if holds(row) else row for row in model]
        case _:
            source = [_random_row(dice) for _ in range(6)]
            source = list({row[0]: row for row in source}.values())
            spark.createDataFrame(source, "k INT, p STRING, v INT").createOrReplaceTempView("source")
            run(
                f"MERGE INTO {name} t USING source s ON t.k = s.k WHEN MATCHED AND s.v < 0 THEN DELETE "
                "WHEN MATCHED AND s.v > 1 THEN UPDATE SET v = s.v + t.v "
                "WHEN NOT MATCHED AND s.v IS NOT NULL THEN INSERT *"
            )
            return _merged(model, source)


def _updated(row: Row) -> Row:
    k, p, v = row
    return k, "z" if p is None else p, _plus(v, 1)


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _merged(model: list[Row], source: list[Row]) -> list[Row]:
    known = {k: v for k, _, v in source if k is not None}
    after: list[Row] = []
    for k, p, v in model:
        given = known.get(k) if k is not None else None
        if given is not None and given < 0:
            continue
        after.append((k, p, _plus(v, given)) if given is not None and given > 1 else (k, p, v))
    there = {k for k, _, _ in model if k is not None}
    return after + [row for row in source if row[2] is not None and (row[0] is None or row[0] not in there)]
