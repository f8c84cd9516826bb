"""DELETE, UPDATE and MERGE in SQL, without Spark."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import penstock
from penstock.errors import InvalidOptionError, InvalidSqlError, SchemaMismatchError, UnsupportedFeatureError

NUMBERS = itertools.count()


@pytest.fixture
def catalog() -> penstock.Catalog:
    catalog = penstock.Catalog(f"memory://sql-row-changes-{next(NUMBERS)}")
    penstock.sql(
        None,
        catalog,
        """
        CREATE TABLE t (id BIGINT, name STRING, price DECIMAL(8, 2), qty INT, d DATE);
        INSERT INTO t VALUES (1, 'a', 1.5, 1, DATE '2026-01-01'), (2, 'b', 2.5, 2, NULL), (3, NULL, 3.5, NULL, NULL);
        CREATE TABLE s (id BIGINT, name STRING, op STRING);
        INSERT INTO s VALUES (1, 'x', 'd'), (2, 'y', 'u'), (9, 'z', 'u')
        """,
    )
    return catalog


def run(catalog: penstock.Catalog, text: str) -> Any:
    return penstock.sql(None, catalog, text)


def rows(catalog: penstock.Catalog, columns: str = "id, name") -> list[tuple[Any, ...]]:
    found = penstock.sql(None, catalog, f"SELECT {columns} FROM t")  # noqa: S608
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str)


def test_delete(catalog: penstock.Catalog) -> None:
    snapshot = run(catalog, "DELETE FROM t WHERE id >= 2 AND (name IS NULL OR d = DATE '2026-01-01')")
    assert snapshot.delta_record_count == -1
    assert rows(catalog) == [(1, "a"), (2, "b")]
    assert run(catalog, "DELETE FROM `default`.t AS x WHERE x.id = 77") is None


@pytest.mark.parametrize(
    ("assignment", "column", "after"),
    [
        ("name = 'new'", "name", "new"),
        ("price = price * 2 + 0.25", "price", "5.25"),
        ("price = 7", "price", "7.00"),
        ("qty = qty + 1", "qty", "3"),
        ("qty = -5", "qty", "-5"),
        ("name = UPPER(name) || '!'", "name", "B!"),
        ("name = CASE WHEN qty > 1 THEN 'many' ELSE 'few' END", "name", "many"),
        ("d = DATE '2026-02-03'", "d", "2026-02-03"),
        ("name = COALESCE(name, 'none')", "name", "b"),
        ("name = NULL", "name", "None"),
    ],
)
def test_update(catalog: penstock.Catalog, assignment: str, column: str, after: str) -> None:
    assert run(catalog, f"UPDATE t SET {assignment} WHERE id = 2").commit_kind == "OVERWRITE"  # noqa: S608
    assert [str(row[1]) for row in rows(catalog, f"id, {column}") if row[0] == 2] == [after]


def test_merge_of_a_query(catalog: penstock.Catalog) -> None:
    run(
        catalog,
        """
        MERGE INTO t USING (SELECT id, name AS n, op FROM s) AS s ON t.id = s.id
        WHEN MATCHED AND s.op = 'd' THEN DELETE
        WHEN MATCHED THEN UPDATE SET name = s.n || t.name, price = 9
        WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.n)
        """,
    )
    assert [(*row[:2], str(row[2])) for row in rows(catalog, "id, name, price")] == [
        (2, "yb", "9.00"), (3, None, "3.50"), (9, "z", "None")
    ]  # fmt: skip


def test_merge_of_a_table_with_all_columns(catalog: penstock.Catalog) -> None:
    run(catalog, "CREATE TABLE u (id BIGINT, name STRING); INSERT INTO u VALUES (3, 'c'), (4, 'd')")
    run(
        catalog,
        "MERGE INTO t USING u ON u.id = t.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE",
    )
    assert rows(catalog) == [(2, "b"), (3, "c"), (4, "d")]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("DELETE FROM t", InvalidSqlError, "expected WHERE"),
        ("DELETE FROM t WHERE id IN (SELECT id FROM s)", UnsupportedFeatureError, "MERGE INTO"),
        ("UPDATE t SET price = price / 2 WHERE id = 1", UnsupportedFeatureError, "Table.update"),
        ("UPDATE t SET qty = 'two' WHERE id = 1", SchemaMismatchError, "qty"),
        ("UPDATE t SET price = price * 1000000 WHERE id = 1", SchemaMismatchError, "price"),
        ("UPDATE t SET cost = price + nothing WHERE id = 1", penstock.NotFoundError, "cost"),
        ("UPDATE t SET qty = nothing + 1 WHERE id = 1", InvalidOptionError, "nothing"),
        ("MERGE INTO t USING s ON t.id > s.id WHEN MATCHED THEN DELETE", UnsupportedFeatureError, "equal columns"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", SchemaMismatchError, "'op'"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = op",
            UnsupportedFeatureError,
            "before each column",
        ),
    ],
)
def test_what_cannot_be_run_says_why(catalog: penstock.Catalog, text: str, error: type[Exception], says: str) -> None:
    before = rows(catalog)
    with pytest.raises(error, match=says):
        run(catalog, text)
    assert rows(catalog) == before
