"""DELETE, UPDATE and MERGE in SQL, without Spark."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow.compute as pc
import pytest

import penstock
from penstock.errors import (
    InvalidOptionError,
    InvalidSqlError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)

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


MERGED: Any = [(1, "x!"), (2, "y!"), (3, "left X"), (9, "z")]


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


def test_columns_of_a_merge_need_no_prefix_where_one_table_has_them(catalog: penstock.Catalog) -> None:
    """As in Spark: in WHEN NOT MATCHED they are those of the source, in WHEN NOT MATCHED BY SOURCE of the table."""
    run(
        catalog,
        """
        MERGE INTO t USING (SELECT id AS key, name AS n, op FROM s) AS s ON id = key
        WHEN MATCHED AND op = 'd' AND qty IS NULL THEN DELETE
        WHEN MATCHED AND price > 0 THEN UPDATE SET name = n || '!'
        WHEN NOT MATCHED AND n <> 'q' THEN INSERT (id, name) VALUES (key, n)
        WHEN NOT MATCHED BY SOURCE AND id > 2 THEN UPDATE SET name = CONCAT('left ', UPPER('x'))
        """,
    )
    merged = rows(catalog)
    run(catalog, "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND name = 'left X' THEN DELETE")
    assert (merged, rows(catalog)) == (MERGED, [row for row in MERGED if row[1] != "left X"])


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
        ("UPDATE t SET cost = price + 1 WHERE id = 1", penstock.NotFoundError, "cost"),
        ("UPDATE t SET qty = nothing + 1 WHERE id = 1", InvalidOptionError, "nothing"),
        ("MERGE INTO t USING s ON t.id > s.id WHEN MATCHED THEN DELETE", UnsupportedFeatureError, "equal columns"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", SchemaMismatchError, "'op'"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND name = 'a' THEN DELETE",
            InvalidSqlError,
            r"column 'name' is in both tables: write t\.name or s\.name",
        ),
        (
            "MERGE INTO t USING s ON id = s.id WHEN MATCHED THEN DELETE",
            InvalidSqlError,
            r"column 'id' is in both tables: write t\.id or s\.id",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = nothing",
            penstock.NotFoundError,
            r"no column 'nothing' in t \(d, .*\) nor in s \(id, name, op\)",
        ),
        ("MERGE INTO t USING s ON t.id = price WHEN MATCHED THEN DELETE", UnsupportedFeatureError, "equal columns"),
    ],
)
def test_what_cannot_be_run_says_why(catalog: penstock.Catalog, text: str, error: type[Exception], says: str) -> None:
    before = rows(catalog)
    with pytest.raises(error, match=says):
        run(catalog, text)
    assert rows(catalog) == before


def test_rows_of_a_branch_are_changed_in_the_branch(catalog: penstock.Catalog) -> None:
    run(catalog, "CALL sys.create_branch('t', 'b'); INSERT INTO t$branch_b SELECT * FROM t")
    run(catalog, "DELETE FROM t$branch_b WHERE id = 1")
    run(catalog, "DELETE FROM `t$branch_b` AS x WHERE x.id = 2")
    run(catalog, "UPDATE t /*+ OPTIONS('branch' = 'b') */ SET name = 'in b' WHERE id = 3")
    run(catalog, "MERGE INTO t$branch_b AS x USING s ON x.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    of_branch = run(catalog, "SELECT id, name FROM t$branch_b").to_pylist()
    assert sorted(tuple(row.values()) for row in of_branch) == [(1, None), (2, None), (3, "in b"), (9, None)]
    assert rows(catalog) == [(1, "a"), (2, "b"), (3, None)]


@pytest.mark.parametrize(
    "source",
    [
        "s VERSION AS OF 1",
        "s VERSION AS OF 1 AS s",
        "s /*+ OPTIONS('scan.snapshot-id' = '1') */ AS s",
        "`default`.s /*+ OPTIONS('scan.snapshot-id' = '1') */",
        "(SELECT id, name FROM s VERSION AS OF 1) AS s",
        "(\n SELECT * FROM s /*+ OPTIONS('scan.snapshot-id' = '1') */ -- )\n) s",
    ],
)
def test_a_merge_takes_the_rows_that_are_named(catalog: penstock.Catalog, source: str) -> None:
    run(catalog, "INSERT OVERWRITE s VALUES (3, 'newer', 'u')")
    run(catalog, f"MERGE INTO t USING {source} ON T.id = S.id WHEN MATCHED THEN UPDATE SET t.name = S.name")
    assert rows(catalog) == [(1, "x"), (2, "y"), (3, None)]


@pytest.mark.parametrize(
    ("literal", "column", "kind"),
    [
        ("'it''s; \\n'", "name", "STRING"),
        ("'''' || 'b'", "name", "STRING"),
        ('"x""y"', "name", "STRING"),
        ("TIMESTAMP '2026-01-31 10:00:00.123456789'", "c", "TIMESTAMP(9)"),
        ("TIMESTAMP '2026-01-31 10:00:00.123+01:00'", "c", "TIMESTAMP_LTZ(3)"),
        ("TIME '10:00:00.123'", "c", "TIME(3)"),
        ("X'00ff'", "c", "BYTES"),
    ],
)
def test_a_literal_is_the_same_in_all_statements(literal: str, column: str, kind: str) -> None:
    catalog = penstock.Catalog(f"memory://sql-row-changes-{next(NUMBERS)}")
    run(catalog, f"CREATE TABLE t (id INT, {column} {kind}); INSERT INTO t (id) VALUES (1), (2)")  # noqa: S608
    run(catalog, f"UPDATE t SET {column} = {literal} WHERE id = 1")  # noqa: S608 - of this file
    if "||" not in literal:
        run(catalog, f"INSERT INTO t VALUES (3, {literal})")  # noqa: S608 - of this file
        assert run(catalog, f"DELETE FROM t WHERE {column} = {literal}").delta_record_count == -2  # noqa: S608
    else:
        assert run(catalog, "SELECT name FROM t WHERE id = 1").to_pylist() == [{"name": "'b"}]


TEXTS: Any = {
    r"'a\nb'": "a\nb",
    r"'\101\u0041\U0001F600\0\Z\q\400'": "AA\U0001f600\0\x1aq400",
    r"'\%\_\\'": "\\%\\_\\",
    "'it''s'": "it's",
    r"'it\'s'": "it's",
    r"""'\'a\\\'; "b'""": """'a\\'; "b""",
    r'''"say \"it's\""''': '''say "it's"''',
}
TEXTS_OF_EXPRESSIONS: Any = {r"r'C:\new'": r"C:\new", r"R'x\'": "x\\", r"'a' '\n'": "a\n", r"r'\n''\n'": "\\n\n"}


@pytest.mark.parametrize("literal", TEXTS)
def test_a_text_among_values_has_the_escapes_of_spark(catalog: penstock.Catalog, literal: str) -> None:
    run(catalog, "CREATE TABLE u (id INT, name STRING, p STRING) PARTITIONED BY (p)")
    run(catalog, f"INSERT INTO u VALUES (1, {literal}, 'x'); INSERT INTO u PARTITION (p = {literal}) VALUES (2, '')")  # noqa: S608 - of this file
    run(catalog, f"UPDATE u SET name = {literal} WHERE p = {literal}")  # noqa: S608 - of this file
    assert catalog.load_table("default.u").to_arrow().column("name").to_pylist() == [TEXTS[literal]] * 2
    assert run(catalog, f"SELECT id FROM u WHERE name = {literal} LIMIT 5").num_rows == 2  # noqa: S608 - as above
    run(catalog, f"DELETE FROM u WHERE name = {literal} AND id = 1; ALTER TABLE u DROP PARTITION (p = {literal})")  # noqa: S608
    assert run(catalog, "SELECT * FROM u").num_rows == 0


@pytest.mark.parametrize("literal", TEXTS_OF_EXPRESSIONS)
def test_raw_and_joined_texts_are_those_of_spark(catalog: penstock.Catalog, literal: str) -> None:
    run(catalog, f"UPDATE t SET name = {literal} WHERE id = 1")  # noqa: S608 - of this file
    assert rows(catalog)[0] == (1, TEXTS_OF_EXPRESSIONS[literal])


def test_a_backslash_in_options_and_comments_is_one(catalog: penstock.Catalog) -> None:
    run(catalog, r"CREATE TABLE u (id INT COMMENT 'a\nb') COMMENT 'c\d' WITH ('partition.timestamp-pattern' = '$dt\n')")
    schema = catalog.load_table("default.u").schema
    assert (schema.fields[0].description, schema.comment) == (r"a\nb", r"c\d")
    assert dict(schema.options)["partition.timestamp-pattern"] == r"$dt\n"
    run(catalog, r"CREATE TABLE v (id INT COMMENT 'C:\', b INT COMMENT 'D:\') COMMENT 'E:\'; DROP TABLE u")
    schema = catalog.load_table("default.v").schema
    assert [*(field.description for field in schema.fields), schema.comment] == ["C:\\", "D:\\", "E:\\"]
    with pytest.raises(InvalidSqlError):
        run(catalog, r"CREATE TABLE w (id INT) COMMENT 'it\'s'")


@pytest.mark.parametrize("text", ["'C:\\'", "'it\\'"])
def test_a_text_that_ends_elsewhere_for_spark_is_refused(catalog: penstock.Catalog, text: str) -> None:
    for statement in (
        "INSERT INTO t (name) VALUES ({})",
        "UPDATE t SET name = {} WHERE id = 1",
        "DELETE FROM t WHERE name = {}",
    ):
        with pytest.raises(InvalidSqlError):
            run(catalog, statement.format(text))
    assert len(rows(catalog)) == 3


def test_a_null_without_a_type_is_no_condition_of_a_case(catalog: penstock.Catalog) -> None:
    """Arrow ends the process when it evaluates one."""
    with pytest.raises(InvalidOptionError, match="cannot be evaluated"):
        run(catalog, "UPDATE t SET name = CASE WHEN NULL THEN 'x' WHEN qty = 1 THEN 'one' ELSE 'y' END WHERE id < 3")


def test_a_field_of_a_row_is_no_column(catalog: penstock.Catalog) -> None:
    run(catalog, "CREATE TABLE n (id INT, r ROW<id INT, x INT>)")
    catalog.load_table("default.n").append([{"id": 1, "r": {"id": 2, "x": 3}}, {"id": 2, "r": {"id": 1, "x": 3}}])
    for text in (
        "DELETE FROM n WHERE r.id = 1",
        "DELETE FROM n WHERE n.r.id = 1",
        "DELETE FROM n AS m WHERE n.id = 1",
        "UPDATE n SET id = 5 WHERE r.id = 1",
        "UPDATE n SET id = r.x WHERE id = 1",
    ):
        with pytest.raises(UnsupportedFeatureError, match="cannot be"):
            run(catalog, text)
    with pytest.raises(InvalidSqlError, match="a ROW is set as a whole"):
        run(catalog, "UPDATE n SET r.id = 5 WHERE id = 1")
    assert [row["id"] for row in run(catalog, "SELECT * FROM n").to_pylist()] == [1, 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DELETE FROM t WHERE id = 1 LIMIT 1", "without LIMIT"),
        ("DELETE FROM t WHERE id > 0 ORDER BY id", "without ORDER"),
        ("DELETE FROM t USING s WHERE t.id = s.id", "without USING"),
        ("DELETE FROM t VERSION AS OF 1 WHERE id = 1", "leave out the time travel"),
        ("DELETE FROM t /*+ OPTIONS('scan.version' = '1') */ WHERE id = 1", "leave out the time travel"),
        ("DELETE FROM t /*+ OPTIONS('scan.partitions' = 'x') */ WHERE id = 1", "or 'scan.partitions'"),
        ("DELETE FROM t$snapshots WHERE id = 1", "can only be read"),
        ("DELETE FROM t TABLESAMPLE (10 ROWS) WHERE id = 1", "without SAMPLE"),
        ("DELETE FROM t WHERE id /*+ OPTIONS('a' = 'b') */ = 1", "where no table is named"),
        ("UPDATE t SET name = 'x' FROM s WHERE t.id = s.id", "without FROM"),
        ("UPDATE t SET name = 'x', name = 'y' WHERE id = 1", "'name' is given twice"),
        ("UPDATE t SET s.name = 'x' WHERE id = 1", "expected a column of the table"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DO NOTHING", "UPDATE SET \\*, or DELETE"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE", "UPDATE SET \\*, or DELETE"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN INSERT *", "UPDATE SET \\*, or DELETE"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN DELETE", "THEN INSERT"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'x')", "INSERT \\(column"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, qty) VALUES (s.id)", "2 columns"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s.name = 'x'", "a column of the table"),
        ("MERGE INTO t USING t ON t.id = t.id WHEN MATCHED THEN DELETE", "are both called 't'"),
        ("MERGE INTO t USING s ON WHEN UPDATE", "a condition after ON"),
        ("MERGE INTO t USING s USING (id) WHEN MATCHED THEN DELETE", "without USING"),
        ("MERGE INTO t VERSION AS OF 1 USING s ON t.id = s.id WHEN MATCHED THEN DELETE", "leave out the time"),
    ],
)
def test_what_would_change_other_rows_is_refused(catalog: penstock.Catalog, text: str, says: str) -> None:
    before = rows(catalog)
    with pytest.raises(InvalidSqlError, match=says):
        run(catalog, text)
    assert rows(catalog) == before


def test_a_column_is_compared_with_one_column(catalog: penstock.Catalog) -> None:
    run(catalog, "CREATE TABLE k (id BIGINT, other BIGINT); INSERT INTO k VALUES (1, 2)")
    with pytest.raises(UnsupportedFeatureError, match="compared with two columns"):
        run(catalog, "MERGE INTO t USING k ON t.id = k.id AND t.id = k.other WHEN MATCHED THEN DELETE")
    run(catalog, "MERGE INTO t USING k ON t.id = k.id AND (k.id = t.id) WHEN MATCHED THEN DELETE")
    assert rows(catalog) == [(2, "b"), (3, None)]


def test_comments_are_no_part_of_a_condition(catalog: penstock.Catalog) -> None:
    run(catalog, "DELETE FROM t /* a */ WHERE id = 1 -- it's one\n OR /* LIMIT */ id = 2")
    assert rows(catalog) == [(3, None)]


def test_a_case_without_else_is_null(catalog: penstock.Catalog) -> None:
    run(catalog, "UPDATE t SET name = CASE WHEN qty = 1 THEN 'one' WHEN qty = 2 THEN name END WHERE id > 0")
    assert rows(catalog) == [(1, "one"), (2, "b"), (3, None)]
    run(catalog, "UPDATE t SET name = CASE WHEN qty = 1 THEN 'first' ELSE NULL END WHERE id > 0")
    assert rows(catalog) == [(1, "first"), (2, None), (3, None)]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("price = 1.234", r"DECIMAL\(8, 2\), which has no value Decimal\('1.234'\)"),
        ("price = 12345678.9", r"DECIMAL\(8, 2\), which has no value Decimal\('12345678.9'\)"),
        ("price = 12345678", r"DECIMAL\(8, 2\), which has no value 12345678"),
    ],
)
def test_a_decimal_that_does_not_fit_says_how_many_digits_do(catalog: penstock.Catalog, value: str, says: str) -> None:
    with pytest.raises(SchemaMismatchError, match=says):
        run(catalog, f"UPDATE t SET {value} WHERE id = 1")  # noqa: S608 - of this file
    run(catalog, "UPDATE t SET price = 123456.7000 WHERE id = 1; UPDATE t SET price = -0.00 WHERE id = 2")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("f FLOAT", "16777217"),
        ("f FLOAT", "1" + "0" * 60),
        ("x DOUBLE", "9007199254740993"),
        ("d DATE", "5"),
        ("t TIME(3)", "99999999"),
        ("t TIMESTAMP(3)", "0"),
        ("t TIMESTAMP(6)", "TIMESTAMP '2026-01-01 00:00:00Z'"),
        ("t TIMESTAMP_LTZ(6)", "TIMESTAMP '2026-01-01 00:00:00'"),
        ("t TIMESTAMP(3)", "TIMESTAMP '2026-01-01 00:00:00.0001'"),
        ("i INT", "5.5"),
        ("i BIGINT", "1" * 400),
        ("s STRING", "5"),
    ],
)
def test_literals_that_a_column_does_not_have_are_refused(catalog: penstock.Catalog, column: str, value: str) -> None:
    name = column.split(maxsplit=1)[0]
    run(catalog, f"CREATE TABLE w (id INT, {column}); INSERT INTO w VALUES (1, NULL)")  # noqa: S608
    for text in (f"INSERT INTO w VALUES (2, {value})", f"UPDATE w SET {name} = {value} WHERE id = 1"):  # noqa: S608
        with pytest.raises(SchemaMismatchError, match=rf"table \S*w: .*column '{name}'"):
            run(catalog, text)
    assert run(catalog, "SELECT * FROM w").to_pylist() == [{"id": 1, name: None}]


def test_numbers_beyond_all_types_are_refused_in_expressions(catalog: penstock.Catalog) -> None:
    for text in (
        "UPDATE t SET id = id * 1e1000000 WHERE id = 1",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id = 1e99999999 THEN DELETE",
    ):
        with pytest.raises(UnsupportedFeatureError, match="cannot be evaluated here"):
            run(catalog, text)


def test_computed_floats_are_rounded_and_never_infinite(catalog: penstock.Catalog) -> None:
    run(catalog, "CREATE TABLE w (id INT, f FLOAT, x DOUBLE); INSERT INTO w VALUES (1, 0.1, 0.1)")
    run(catalog, "UPDATE w SET f = f * 1.1, x = f * 1.1 WHERE id = 1")
    (row,) = run(catalog, "SELECT f, x FROM w").to_pylist()
    assert row["f"] == pytest.approx(0.11, rel=1e-6)
    table = catalog.load_table("default.w")
    with pytest.raises(SchemaMismatchError, match="column 'f'"):
        table.update({"f": pc.field("x") * 1e300}, "id = 1")
    with pytest.raises(SchemaMismatchError, match="column 'f'"):
        table.update({"f": pc.field("x")}, "id = 1")
