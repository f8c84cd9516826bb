"""UPDATE, MERGE and DELETE in Spark SQL where Spark names the rows that change, next to the methods of ``Table``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.errors.exceptions.base import PySparkException
from tests.deletion_vectors import delete_keys
from tests.spark.needs import needs

from penstock import MergeDelete, MergeInsert, MergeUpdate
from penstock.spark.connector.changes import row_deltas
from penstock.spark.versions.facts import ROW_DELTAS, VARIANT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

pytestmark = needs(ROW_DELTAS)

VECTORS: Final = {"deletion-vectors.enabled": "true"}
TRACKED: Final = {"row-tracking.enabled": "true"}
KINDS: Final = {
    "vectors": VECTORS,
    "tracked": TRACKED,
    "both": {**VECTORS, **TRACKED, "deletion-vectors.bitmap64": "true"},
    "orc": {**VECTORS, **TRACKED, "file.format": "orc"},
    "avro": {**TRACKED, "file.format": "avro"},
    "queue": {**VECTORS, "bucket": "2", "bucket-key": "k"},
}
CHANGES: Final = [
    {"k": 3, "p": "b", "v": -1},
    {"k": 4, "p": "b", "v": 100},
    {"k": 20, "p": "z", "v": 5},
    {"k": 21, "p": None, "v": 6},
]


def _make(catalog: Catalog, name: str, options: dict[str, str]) -> Table:
    table = catalog.create_table(f"d.{name}", "k INT, p STRING, v INT", partition_by=["p"], options=options)
    table.append([{"k": n, "p": "ab"[n % 2], "v": 10 * n} for n in range(6)])
    table.append([{"k": n, "p": "a" if n % 4 else None, "v": None if n == 7 else n} for n in range(6, 19)])
    return table


def _rows(table: Table) -> list[tuple[Any, ...]]:
    tracked = ["_ROW_ID", "_SEQUENCE_NUMBER"] if "row-tracking.enabled" in table.options else []
    rows = table.to_arrow(["k", "p", "v", *tracked]).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def _files(table: Table) -> set[str]:
    return set(table.files()["file_path"].to_pylist())


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in {"vectors", "avro"} else []) for kind in KINDS]
)
def test_a_statement_of_spark_does_what_the_method_does(spark: SparkSession, catalog: Catalog, kind: str) -> None:
    by_spark, by_method = (_make(catalog, f"{way}_{kind}", KINDS[kind]) for way in ("spark", "method"))
    name = f"penstock.d.spark_{kind}"
    spark.createDataFrame([tuple(row.values()) for row in CHANGES], "k INT, p STRING, v INT").createOrReplaceTempView(
        "changes"
    )
    merge = {
        "matched": [MergeDelete(where="source.v < 0"), MergeUpdate(set={"v": 7})],
        "not_matched": MergeInsert(),
    }
    text = (
        "MERGE INTO {} t USING changes s ON t.k = s.k WHEN MATCHED AND s.v < 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = 7 WHEN NOT MATCHED THEN INSERT *"
    )
    steps: list[tuple[str, Callable[[], object]]] = [
        ("UPDATE {} SET v = -5 WHERE k % 10 = 7", lambda: by_method.update({"v": -5}, "k IN (7, 17)")),
        ("DELETE FROM {} WHERE k IN (SELECT id + 1 FROM range(2))", lambda: by_method.delete("k IN (1, 2)")),
        ("UPDATE {} SET p = 'c', v = k WHERE k + 0 = 8", lambda: by_method.update({"p": "c", "v": 8}, "k = 8")),
        (text, lambda: by_method.merge(CHANGES, ["k"], **merge)),  # type: ignore[arg-type] # of several kinds
        ("DELETE FROM {} WHERE abs(v) >= 10 AND v < 15", lambda: by_method.delete("(v >= 10 OR v <= -10) AND v < 15")),
        ("UPDATE {} SET v = 0 WHERE k % 100 = 99", lambda: by_method.update({"v": 0}, "k = 99")),
        ("DELETE FROM {} WHERE abs(k) > 0", lambda: by_method.delete("k > 0")),
    ]
    for statement, method in steps:
        text = statement.format(name)
        (plan,) = spark.sql(f"EXPLAIN {text}").first() or ()
        assert "WriteDelta" in plan
        before = _files(by_spark)
        spark.sql(text)
        method()
        assert _rows(by_spark) == _rows(by_method), text
        first, second = by_spark.latest_snapshot(), by_method.latest_snapshot()
        assert first is not None
        assert second is not None
        assert (first.id, first.commit_kind) == (second.id, second.commit_kind), text
        if "deletion-vectors.enabled" in KINDS[kind] and "DELETE" not in text.split("WHERE")[0]:
            assert before <= _files(by_spark), text
    assert _rows(by_spark)[0][0] == 0


@pytest.mark.parametrize("kind", [kind for kind, options in KINDS.items() if "row-tracking.enabled" in options])
def test_rows_change_by_their_ids(spark: SparkSession, catalog: Catalog, kind: str) -> None:
    """The statements of Paimon's page on row tracking, and others in which Spark converts no type."""
    by_spark, by_method = (_make(catalog, f"{way}_id_{kind}", KINDS[kind]) for way in ("spark", "method"))
    ids = {k: row_id for k, _, _, row_id, _ in _rows(by_spark)}
    steps: list[tuple[str, Callable[[], object]]] = [
        (f"UPDATE {{}} SET v = -5 WHERE _ROW_ID = {ids[3]}", lambda: by_method.update({"v": -5}, "k = 3")),
        (
            f"UPDATE {{}} SET v = _ROW_ID, p = 'c' WHERE _ROW_ID = {ids[4]}L",
            lambda: by_method.update({"v": ids[4], "p": "c"}, "k = 4"),
        ),
        (
            "UPDATE {} SET v = 1 WHERE _SEQUENCE_NUMBER > 2 AND _ROW_ID IN (SELECT id FROM range(0, 100, 3))",
            lambda: by_method.update(
                {"v": 1}, " OR ".join(["k < 0", *(f"k = {k}" for k in (3, 4) if ids[k] % 3 == 0)])
            ),
        ),
        (f"DELETE FROM {{}} WHERE _ROW_ID = {ids[5]}L", lambda: by_method.delete("k = 5")),
        (
            f"DELETE FROM {{}} WHERE _ROW_ID IN ({ids[6]}, {ids[7]}, {ids[8]}) AND __paimon_partition.p IS NOT NULL",
            lambda: by_method.delete("k IN (6, 7)"),
        ),
    ]
    for statement, method in steps:
        spark.sql(statement.format(f"penstock.d.spark_id_{kind}"))
        method()
        assert _rows(by_spark) == _rows(by_method), statement


@pytest.mark.parametrize("kind", ["vectors", "tracked", "both"])
def test_rows_change_by_the_snapshots_of_their_files(spark: SparkSession, catalog: Catalog, kind: str) -> None:
    """In a table without partitions, and by their ids where it has them."""
    table = catalog.create_table(f"d.by_snapshot_{kind}", "k INT, v INT", options={**KINDS[kind], "write-only": "true"})
    for number in range(1, 7):
        table.append([{"k": number, "v": 0}])
    name = f"penstock.d.by_snapshot_{kind}"
    added = f"SELECT k, __paimon_snapshot_id AS added FROM {name}"
    for statement in (
        f"UPDATE {name} SET v = -1 WHERE __paimon_snapshot_id = 1",
        f"DELETE FROM {name} WHERE __paimon_snapshot_id = 2 AND __paimon_commit_time IS NOT NULL",
        f"UPDATE {name} SET v = -3 WHERE k IN (SELECT k FROM ({added}) WHERE added = 3)",
        f"MERGE INTO {name} t USING ({added}) s ON t.k = s.k AND s.added = 4 WHEN MATCHED THEN UPDATE SET v = -4",
        *([f"UPDATE {name} SET v = -5 WHERE _ROW_ID = 4"] if "row-tracking.enabled" in KINDS[kind] else []),
    ):
        spark.sql(statement)
    wanted = {1: -1, 3: -3, 4: -4, 5: -5 if "row-tracking.enabled" in KINDS[kind] else 0, 6: 0}
    assert {row["k"]: row["v"] for row in table.to_arrow().to_pylist()} == wanted


def test_rows_of_a_file_in_several_batches_and_tasks_change(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    runs = row_deltas.StagedDeltas._find_runs

    def cut(staged: row_deltas.StagedDeltas, part: str) -> Any:
        """Cut each run in pieces, as where Spark gives the rows of a file to several tasks."""
        for path, run in runs(staged, part):
            sizes.append(run.end - run.start)
            for start in range(run.start, run.end, 7_000):
                yield path, row_deltas._Run(part=run.part, start=start, end=min(start + 7_000, run.end))

    monkeypatch.setattr(row_deltas.StagedDeltas, "_find_runs", cut)
    for kind in ("vectors", "tracked"):
        table = catalog.create_table(f"d.large_{kind}", "k BIGINT, v BIGINT", options=KINDS[kind])
        table.append(pa.table({"k": pa.array(range(200_000)), "v": pa.array([0] * 200_000)}))
        delete_keys(table, "k", {5}) if kind == "vectors" else table.delete("k = 5")
        spark.sql(f"UPDATE penstock.d.large_{kind} SET v = k WHERE k % 3 = 0")
        spark.sql(f"DELETE FROM penstock.d.large_{kind} WHERE k % 4 = 0")
        found = dict(zip(*(table.to_arrow()[name].to_pylist() for name in ("k", "v")), strict=True))
        assert found == {k: 0 if k % 3 else k for k in range(200_000) if k % 4 and k != 5}
        if kind == "tracked":
            rows = table.to_arrow(["k", "_ROW_ID"])
            assert rows["k"] == rows["_ROW_ID"]
    assert max(sizes) > 65_536


@pytest.mark.parametrize("kind", ["vectors", "tracked"])
def test_what_others_change_meanwhile_is_not_lost(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    name = f"penstock.d.raced_{kind}"
    table = _make(catalog, f"raced_{kind}", KINDS[kind])
    commit = row_deltas.commit_deltas
    on_disk: list[set[Path]] = []

    def meanwhile(change: Callable[[], object]) -> None:
        def changed(*args: Any) -> Any:
            change()
            on_disk.append(set(Path(table.location).rglob("data-*.parquet")))
            return commit(*args)

        monkeypatch.setattr(row_deltas, "commit_deltas", changed)

    update = f"UPDATE {name} SET v = v + 1 WHERE p = 'b' AND v % 20 = 10"
    meanwhile(lambda: table.append([{"k": 30, "p": "a", "v": 10}]))
    spark.sql(update)
    assert [row[2] for row in _rows(table) if row[1] == "b"] == [11, 31, 51]
    for change in (
        lambda: table.append([{"k": 31, "p": "b", "v": 11}]),
        lambda: table.delete("k = 3"),
        lambda: table.update({"v": 1}, "k = 5"),
        lambda: table.compact(strategy="full", options={"compaction.force-rewrite-all-files": "true"}),
    ):
        meanwhile(change)
        with pytest.raises(PySparkException, match="others committed after snapshot"):
            spark.sql(f"UPDATE {name} SET v = v + 1 WHERE p = 'b' AND v + 0 = 11")
        assert set(Path(table.location).rglob("data-*.parquet")) == on_disk[-1]
    monkeypatch.undo()
    assert [row[:3] for row in _rows(table) if row[1] == "b"] == [(1, "b", 11), (31, "b", 11), (5, "b", 1)]


def test_a_row_that_breaks_a_rule_is_refused_and_one_that_did_before_stays(
    spark: SparkSession, catalog: Catalog
) -> None:
    table = catalog.create_table("d.ruled", "k INT, name VARCHAR(3), v INT", options=VECTORS)
    table.append([{"k": n, "name": "abc", "v": None} for n in range(4)])
    latest = table.latest_snapshot()
    with pytest.raises(PySparkException, match="length"):
        spark.sql("UPDATE penstock.d.ruled SET name = concat(name, 'd') WHERE abs(k) = 1")
    assert table.latest_snapshot() == latest
    assert len(_files(table)) == 1


def test_where_executors_load_no_class_files_are_rewritten_and_tracked_tables_are_refused(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_deltas, "executors_have_classes", lambda _: False)
    table = _make(catalog, "classless", VECTORS)
    before = _files(table)
    spark.sql("UPDATE penstock.d.classless SET v = -1 WHERE k % 10 = 1 AND p = 'b'")
    assert [row[2] for row in _rows(table) if row[0] == 1] == [-1]
    assert not before <= _files(table)
    _make(catalog, "classless_tracked", TRACKED)
    with pytest.raises(PySparkException, match=r"tracks its rows, and .* executors load no class"):
        spark.sql("UPDATE penstock.d.classless_tracked SET v = -1 WHERE k % 10 = 1")
    queue = _make(catalog, "classless_queue", {"bucket": "2", "bucket-key": "k"})
    rows = _rows(queue)
    for text in (
        "UPDATE penstock.d.classless_queue SET v = -1 WHERE k = 1",
        "DELETE FROM penstock.d.classless_queue WHERE k IN (SELECT k FROM penstock.d.classless)",
        "MERGE INTO penstock.d.classless_queue q USING penstock.d.classless s ON q.k = s.k WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(PySparkException, match=r"is a queue, and .* executors load no class .*: use Table\."):
            spark.sql(text)
    assert _rows(queue) == rows
    # Penstock evaluates such a condition itself.
    spark.sql("DELETE FROM penstock.d.classless_queue WHERE k = 1")
    assert _rows(queue) == [row for row in rows if row[0] != 1]


@needs(VARIANT)
def test_a_tracked_table_with_a_variant_is_refused(spark: SparkSession, catalog: Catalog) -> None:
    spark.sql("CREATE TABLE penstock.d.variant (k INT, v VARIANT) TBLPROPERTIES ('row-tracking.enabled' = 'true')")
    spark.sql("INSERT INTO penstock.d.variant SELECT 1, parse_json('{}')")
    with pytest.raises(PySparkException, match=r"UPDATE .* does not work .* VARIANT.* use Table\.update"):
        spark.sql("UPDATE penstock.d.variant SET k = 2 WHERE abs(k) = 1")
