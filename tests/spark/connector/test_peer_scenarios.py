"""What the suites of Spark, Paimon and Flink try on a catalog, in our own words, on tables of the attached catalog.

A query must have the columns, the rows or the condition of error that it has in Spark over the same values in temporary
views. A change must leave the rows that are stated here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.errors import PySparkException
from tests.spark.needs import condition_of

import penstock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession

    from penstock import Catalog

# Tables by name: columns, what follows them in CREATE TABLE, and rows.
TABLES: Final = {
    "emp": (
        """
        id INT, name STRING, dept INT, pay DECIMAL(8, 2), hired DATE, score DOUBLE, ok BOOLEAN, seen TIMESTAMP,
        tags ARRAY<STRING>, info STRUCT<city: STRING, zip: INT>, props MAP<STRING, INT>
        """,
        "PARTITIONED BY (dept)",
        """
        (1, 'ann', 10, 100.50, DATE'2019-12-31', 1.5, true, TIMESTAMP'2024-03-10 01:30:00', array('x', 'y'),
            named_struct('city', 'rome', 'zip', 1), map('a', 1, 'b', 2)),
        (2, 'bob', 10, 200.00, DATE'2020-02-29', double('NaN'), false, TIMESTAMP'2024-11-03 09:30:00', array('y', NULL),
            named_struct('city', 'oslo', 'zip', NULL), map('a', NULL)),
        (3, 'cyd', 20, NULL, DATE'2021-01-01', -0.0D, NULL, TIMESTAMP'1969-12-31 23:59:59.999999', array(),
            NULL, map()),
        (4, NULL, 20, 300.25, NULL, double('Infinity'), true, NULL, NULL, named_struct('city', NULL, 'zip', 4), NULL),
        (5, 'eve', NULL, 400.75, DATE'1582-10-04', 0.0D, false, TIMESTAMP'1900-01-01 00:00:00', array('z'),
            named_struct('city', 'rome', 'zip', 5), map('c', 3)),
        (6, 'Ann', 30, 100.50, DATE'2020-12-31', NULL, NULL, TIMESTAMP'2024-03-10 10:30:00.5', array('x', 'x'),
            named_struct('city', 'Rome', 'zip', 6), map('a', 6)),
        (7, 'a_%b', NULL, 0.01, DATE'9999-12-31', -2.25, true, TIMESTAMP'2024-01-01 00:00:00', array(NULL),
            named_struct('city', '', 'zip', 0), map('', 0))
        """,
    ),
    "dept": (
        "id INT, title STRING, floor INT",
        "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'id')",
        "(10, 'ops', 1), (20, 'dev', 2), (30, 'law', NULL), (40, 'art', 2), (NULL, 'none', 3)",
    ),
    "num": (
        "a INT, b INT, c BIGINT, x DECIMAL(10, 2), y DOUBLE, g STRING",
        "",
        """
        (1, 1, 1, 1.10, 1.5, 'p'), (1, 2, 2, 2.20, 2.5, 'q'), (2, 1, NULL, 3.30, NULL, 'p'), (2, 2, 4, NULL, 4.5, 'q'),
        (3, NULL, 5, 5.55, -5.5, NULL), (NULL, NULL, 9223372036854775807, 99999999.99, 1e300, 'p'),
        (1, 1, 1, 1.10, 1.5, 'p')
        """,
    ),
}
ZONE: Final = "America/Los_Angeles"
ALWAYS: Final = 10

QUERIES: Final = [
    line for line in Path(__file__).with_name("peer_queries.sql").read_text("utf-8").splitlines() if line[:2] != "--"
]

# The tables of changes: ``t`` has these rows at the beginning of each, by id.
ROWS: Final[dict[int, tuple[Any, ...]]] = {
    1: ("a", 10, "x"),
    2: ("a", 20, None),
    3: ("b", None, "y"),
    4: ("b", 40, "z"),
    5: (None, 50, "x"),
    6: ("a", None, None),
}
SOURCE: Final = [(2, 200, "new"), (3, 300, None), (None, 999, "n"), (8, 800, "x")]
MERGE: Final = "MERGE INTO t USING s ON t.id = s.id "
NOTHING: Final[dict[int, Any]] = {}
Gone: Final = None

# Statements and what they change: rows by id, ``Gone`` for those that are deleted, or the condition of an error.
CHANGES: Final[list[tuple[str, dict[int, Any] | str]]] = [
    # DELETE
    ("DELETE FROM t WHERE id = 1", {1: Gone}),
    ("DELETE FROM t WHERE v > 15", {2: Gone, 4: Gone, 5: Gone}),
    ("DELETE FROM t WHERE v = NULL", NOTHING),
    ("DELETE FROM t WHERE NOT (v > 15)", {1: Gone}),
    ("DELETE FROM t WHERE v IS NULL AND s IS NULL", {6: Gone}),
    ("DELETE FROM t WHERE p = 'a'", {1: Gone, 2: Gone, 6: Gone}),
    ("DELETE FROM t WHERE p IS NULL", {5: Gone}),
    ("DELETE FROM t WHERE p = 'b' AND v = 40", {4: Gone}),
    ("DELETE FROM t WHERE p = 'a' OR s = 'z'", {1: Gone, 2: Gone, 4: Gone, 6: Gone}),
    ("DELETE FROM t", dict.fromkeys(ROWS, Gone)),
    ("DELETE FROM t WHERE false", NOTHING),
    ("DELETE FROM t WHERE id IN (1, NULL, 4)", {1: Gone, 4: Gone}),
    ("DELETE FROM t WHERE id NOT IN (1, NULL)", NOTHING),
    ("DELETE FROM t WHERE id IN (SELECT id FROM s)", {2: Gone, 3: Gone}),
    ("DELETE FROM t WHERE id NOT IN (SELECT id FROM s)", NOTHING),
    ("DELETE FROM t WHERE id NOT IN (SELECT id FROM s WHERE id IS NOT NULL)", {1: Gone, 4: Gone, 5: Gone, 6: Gone}),
    ("DELETE FROM t WHERE v NOT IN (SELECT v FROM s)", {1: Gone, 2: Gone, 4: Gone, 5: Gone}),
    ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.v > 250)", {3: Gone}),
    ("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = t.id)", {1: Gone, 4: Gone, 5: Gone, 6: Gone}),
    ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE v > 5000)", NOTHING),
    ("DELETE FROM t WHERE id = (SELECT min(id) FROM s)", {2: Gone}),
    ("DELETE FROM t WHERE v < (SELECT avg(v) FROM s WHERE s.id = t.id)", {2: Gone}),
    ("DELETE FROM t WHERE id = (SELECT id FROM s WHERE id > 100)", NOTHING),
    ("DELETE FROM t WHERE id IN (SELECT id FROM s) AND p = 'a'", {2: Gone}),
    ("DELETE FROM t WHERE id IN (SELECT id FROM s) OR v = 10", {1: Gone, 2: Gone, 3: Gone}),
    ("DELETE FROM t WHERE (id, s) IN (SELECT id, 'y' FROM s)", {3: Gone}),
    ("DELETE FROM t WHERE v = (SELECT max(v) FROM t)", {5: Gone}),
    ("DELETE FROM t WHERE id IN (SELECT id + 1 FROM t WHERE p = 'b')", {4: Gone, 5: Gone}),
    ("DELETE FROM t AS x WHERE x.id = 1", {1: Gone}),
    ("DELETE FROM t WHERE s LIKE 'x%' OR s RLIKE '^z'", {1: Gone, 4: Gone, 5: Gone}),
    ("DELETE FROM t WHERE nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    # UPDATE
    ("UPDATE t SET v = 0", {i: (p, 0, s) for i, (p, _, s) in ROWS.items()}),
    ("UPDATE t SET v = v + 1 WHERE id < 4", {1: ("a", 11, "x"), 2: ("a", 21, None)}),
    ("UPDATE t SET v = NULL WHERE s = 'x'", {1: ("a", None, "x"), 5: (None, None, "x")}),
    ("UPDATE t SET v = id, s = p WHERE v IS NULL", {3: ("b", 3, "b"), 6: ("a", 6, "a")}),
    ("UPDATE t SET s = concat(s, '!') WHERE p = 'b'", {3: ("b", None, "y!"), 4: ("b", 40, "z!")}),
    ("UPDATE t SET p = 'c' WHERE id = 4", {4: ("c", 40, "z")}),
    ("UPDATE t SET p = NULL WHERE p = 'b'", {3: (None, None, "y"), 4: (None, 40, "z")}),
    ("UPDATE t SET v = 1 WHERE v = NULL", NOTHING),
    (
        "UPDATE t SET v = CASE WHEN v > 30 THEN 1 ELSE 2 END WHERE p IS NOT NULL AND v > 5",
        {1: ("a", 2, "x"), 2: ("a", 2, None), 4: ("b", 1, "z")},
    ),
    ("UPDATE t SET v = -1 WHERE id IN (SELECT id FROM s)", {2: ("a", -1, None), 3: ("b", -1, "y")}),
    ("UPDATE t SET v = -1 WHERE id NOT IN (SELECT id FROM s)", NOTHING),
    ("UPDATE t SET v = -1 WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.s IS NULL)", {3: ("b", -1, "y")}),
    (
        "UPDATE t SET v = -1 WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = t.id) AND p = 'a'",
        {1: ("a", -1, "x"), 6: ("a", -1, None)},
    ),
    ("UPDATE t SET v = -1 WHERE v > (SELECT avg(v) FROM t)", {4: ("b", -1, "z"), 5: (None, -1, "x")}),
    ("UPDATE t AS x SET v = x.v * 2 WHERE x.v < 30", {1: ("a", 20, "x"), 2: ("a", 40, None)}),
    ("UPDATE t SET v = '7' WHERE id = 1", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"),
    ("UPDATE t SET v = CAST('7' AS INT) WHERE id = 1", {1: ("a", 7, "x")}),
    ("UPDATE t SET v = 1, v = 2", "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS"),
    ("UPDATE t SET v = 2147483648L WHERE id = 1", "ARITHMETIC_OVERFLOW|CAST_OVERFLOW|CAST_OVERFLOW_IN_TABLE_INSERT"),
    ("UPDATE t SET nothing = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("UPDATE t SET s = DEFAULT WHERE id = 1", {1: ("a", 10, None)}),
    # MERGE
    (MERGE + "WHEN MATCHED THEN UPDATE SET v = s.v", {2: ("a", 200, None), 3: ("b", 300, "y")}),
    (MERGE + "WHEN MATCHED THEN DELETE", {2: Gone, 3: Gone}),
    (
        MERGE + "WHEN NOT MATCHED THEN INSERT (id, p, v, s) VALUES (s.id, 'n', s.v, s.s)",
        {8: ("n", 800, "x"), 0: ("n", 999, "n")},
    ),
    (MERGE + "WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT (id, v) VALUES (s.id, s.v)", {8: (None, 800, None)}),
    (MERGE + "WHEN NOT MATCHED BY SOURCE THEN DELETE", {1: Gone, 4: Gone, 5: Gone, 6: Gone}),
    (
        MERGE + "WHEN NOT MATCHED BY SOURCE AND v > 30 THEN UPDATE SET s = 'old'",
        {4: ("b", 40, "old"), 5: (None, 50, "old")},
    ),
    (
        MERGE + "WHEN MATCHED AND s.v > 250 THEN DELETE WHEN MATCHED THEN UPDATE SET s = s.s",
        {2: ("a", 20, "new"), 3: Gone},
    ),
    (
        MERGE
        + (
            "WHEN MATCHED THEN UPDATE SET v = s.v, s = s.s WHEN NOT MATCHED THEN INSERT (id, v) VALUES "
            "(s.id, s.v) WHEN NOT MATCHED BY SOURCE AND t.p = 'a' THEN DELETE"
        ),
        {1: Gone, 2: ("a", 200, "new"), 3: ("b", 300, None), 6: Gone, 8: (None, 800, None), 0: (None, 999, None)},
    ),
    (
        MERGE
        + (
            "WHEN MATCHED AND t.v IS NULL THEN UPDATE SET v = 0 WHEN NOT MATCHED BY SOURCE AND p IS NULL "
            "THEN DELETE WHEN NOT MATCHED BY SOURCE AND v IS NULL THEN UPDATE SET v = -1"
        ),
        {3: ("b", 0, "y"), 5: Gone, 6: ("a", -1, None)},
    ),
    (
        MERGE + "WHEN MATCHED AND false THEN DELETE WHEN NOT MATCHED AND s.id > 100 THEN INSERT (id) VALUES (s.id)",
        NOTHING,
    ),
    ("MERGE INTO t USING s ON t.id = s.id AND t.p = 'a' WHEN MATCHED THEN UPDATE SET v = 1", {2: ("a", 1, None)}),
    (
        "MERGE INTO t USING s ON t.id <=> s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        {8: (None, None, None), 0: (None, None, None)},
    ),
    (
        "MERGE INTO t USING s ON false WHEN NOT MATCHED AND id = 8 THEN INSERT (id, v) VALUES (id, v)",
        {8: (None, 800, None)},
    ),
    (
        ("MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = 1"),
        "MERGE_CARDINALITY_VIOLATION",
    ),
    ("MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1) q ON t.id = q.id WHEN MATCHED THEN DELETE", {1: Gone}),
    (
        (
            "MERGE INTO t USING (SELECT id, p, v, s FROM t WHERE id = 1) q ON t.id = q.id WHEN MATCHED THEN "
            "UPDATE SET v = q.v + 5"
        ),
        {1: ("a", 15, "x")},
    ),
    (
        (
            "MERGE INTO t USING (SELECT 2 AS id, 'b' AS p, 7 AS v, 'm' AS s) q ON t.id = q.id WHEN MATCHED "
            "THEN UPDATE SET *"
        ),
        {2: ("b", 7, "m")},
    ),
    (
        (
            "MERGE INTO t USING (SELECT 9 AS id, 'b' AS p, 7 AS v, 'm' AS s) q ON t.id = q.id WHEN NOT "
            "MATCHED THEN INSERT *"
        ),
        {9: ("b", 7, "m")},
    ),
    (
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = 'q' WHEN NOT MATCHED BY "
            "SOURCE AND id = 1 THEN UPDATE SET p = 'r'"
        ),
        {1: ("r", 10, "x"), 2: ("q", 20, None), 3: ("q", None, "y")},
    ),
    (
        ("MERGE INTO t USING s ON t.id > s.id AND t.id IN (3, 4) WHEN MATCHED AND s.id = 2 THEN UPDATE SET v = s.v"),
        "MERGE_CARDINALITY_VIOLATION",
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    ),
    ("WITH q AS (SELECT 1 AS id) MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN DELETE", {1: Gone}),
    # INSERT
    ("INSERT INTO t VALUES (7, 'c', 70, 'w')", {7: ("c", 70, "w")}),
    ("INSERT INTO t (s, id, p) VALUES ('w', 7, 'c')", {7: ("c", None, "w")}),
    ("INSERT INTO t BY NAME SELECT 'w' AS s, 7 AS id, 'c' AS p, 1 AS v", {7: ("c", 1, "w")}),
    ("INSERT INTO t BY NAME SELECT 7 AS id, 'c' AS p", {7: ("c", None, None)}),
    ("INSERT INTO t PARTITION (p = 'c') VALUES (7, 70, 'w')", {7: ("c", 70, "w")}),
    ("INSERT INTO t PARTITION (p = 'c') (s, id) VALUES ('w', 7)", {7: ("c", None, "w")}),
    ("INSERT INTO t PARTITION (p) (id, v, s, p) SELECT 7, 70, 'w', 'c'", {7: ("c", 70, "w")}),
    ("INSERT INTO t SELECT id, 'c', v, s FROM s WHERE id = 8", {8: ("c", 800, "x")}),
    ("INSERT INTO t SELECT id + 10, p, v, s FROM t WHERE id = 1", {11: ("a", 10, "x")}),
    ("INSERT INTO t VALUES (7, 'c', DEFAULT, NULL)", {7: ("c", None, None)}),
    ("INSERT INTO t TABLE t LIMIT 0", NOTHING),
    ("FROM s INSERT INTO t SELECT id, 'c', v, s WHERE id = 8", {8: ("c", 800, "x")}),
    ("INSERT INTO t VALUES (7, 'c', 70)", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"),
    ("INSERT INTO t VALUES (7, 'c', 70, 'w', 1)", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS"),
    ("INSERT INTO t (id, id) VALUES (7, 8)", "COLUMN_ALREADY_EXISTS"),
    ("INSERT INTO t (id, nothing) VALUES (7, 8)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    (
        "INSERT INTO t BY NAME SELECT 7 AS id, 1 AS nothing",
        "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS|INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA",
    ),
    ("INSERT INTO t VALUES ('x', 'c', 70, 'w')", "CAST_INVALID_INPUT|INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"),
    ("INSERT OVERWRITE t VALUES (7, 'c', 70, 'w')", {**dict.fromkeys(ROWS, Gone), 7: ("c", 70, "w")}),
    ("INSERT OVERWRITE t PARTITION (p = 'a') VALUES (7, 70, 'w')", {1: Gone, 2: Gone, 6: Gone, 7: ("a", 70, "w")}),
    ("INSERT OVERWRITE t PARTITION (p = 'a') SELECT id, v, s FROM t WHERE p = 'a' AND v > 15", {1: Gone, 6: Gone}),
    (
        "SET spark.sql.sources.partitionOverwriteMode = dynamic; INSERT OVERWRITE t VALUES (7, 'b', 70, 'w')",
        {3: Gone, 4: Gone, 7: ("b", 70, "w")},
    ),
    (
        ("SET spark.sql.sources.partitionOverwriteMode = dynamic; INSERT OVERWRITE t SELECT * FROM t WHERE false"),
        NOTHING,
    ),
    ("INSERT INTO t REPLACE WHERE p = 'b' SELECT 7, 'b', 70, 'w'", {3: Gone, 4: Gone, 7: ("b", 70, "w")}),
    # ALTER, then read or write
    ("ALTER TABLE t ADD COLUMN n INT; UPDATE t SET v = coalesce(n, 0) WHERE id = 1", {1: ("a", 0, "x")}),
    (
        (
            "ALTER TABLE t ADD COLUMN n INT; ALTER TABLE t ALTER COLUMN n SET DEFAULT 5; INSERT INTO t (id, "
            "v) VALUES (7, 1); DELETE FROM t WHERE n = 5"
        ),
        NOTHING,
    ),
    (
        ("ALTER TABLE t RENAME COLUMN v TO w; UPDATE t SET w = 1 WHERE id = 1; ALTER TABLE t RENAME COLUMN w TO v"),
        {1: ("a", 1, "x")},
    ),
    (
        "ALTER TABLE t DROP COLUMN s; ALTER TABLE t ADD COLUMN s STRING",
        {i: (p, v, None) for i, (p, v, _) in ROWS.items()},
    ),
    (
        "ALTER TABLE t ALTER COLUMN v TYPE BIGINT; INSERT INTO t VALUES (7, 'c', 3000000000, 'w')",
        {7: ("c", 3_000_000_000, "w")},
    ),
    ("ALTER TABLE t ALTER COLUMN s FIRST; INSERT INTO t VALUES ('w', 7, 'c', 70)", {7: ("c", 70, "w")}),
    ("ALTER TABLE t ALTER COLUMN s AFTER id; DELETE FROM t WHERE s = 'x'", {1: Gone, 5: Gone}),
    ("ALTER TABLE t SET TBLPROPERTIES ('file.format' = 'orc'); UPDATE t SET v = 9 WHERE id = 1", {1: ("a", 9, "x")}),
    ("ALTER TABLE t SET TBLPROPERTIES ('file.format' = 'avro'); DELETE FROM t WHERE v IS NULL", {3: Gone, 6: Gone}),
    ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 3; INSERT INTO t (id) VALUES (7)", {7: (None, 3, None)}),
    (
        (
            "ALTER TABLE t ALTER COLUMN v SET DEFAULT 3; ALTER TABLE t ALTER COLUMN v DROP DEFAULT; INSERT "
            "INTO t (id) VALUES (7)"
        ),
        {7: (None, None, None)},
    ),
    ("ALTER TABLE t DROP PARTITION (p = 'a')", {1: Gone, 2: Gone, 6: Gone}),
    ("TRUNCATE TABLE t", dict.fromkeys(ROWS, Gone)),
    ("TRUNCATE TABLE t PARTITION (p = 'b')", {3: Gone, 4: Gone}),
    ("ALTER TABLE t RENAME TO t2; DELETE FROM t2 WHERE id = 1; ALTER TABLE t2 RENAME TO t", {1: Gone}),
    ("ALTER TABLE t ADD COLUMN v INT", "FIELD_ALREADY_EXISTS"),
    ("ALTER TABLE t DROP COLUMN nothing", "UNRESOLVED_COLUMN.WITH_SUGGESTION|FIELD_NOT_FOUND"),
    ("ALTER TABLE t ALTER COLUMN v TYPE BOOLEAN", "NOT_SUPPORTED_CHANGE_COLUMN"),
    ("CREATE TABLE t (id INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("CREATE TABLE IF NOT EXISTS t (id INT)", NOTHING),
    ("CREATE OR REPLACE TABLE t PARTITIONED BY (p) AS SELECT * FROM t WHERE id = 1", dict.fromkeys(range(2, 7), Gone)),
    (
        (
            "CREATE TABLE t3 AS SELECT * FROM t; DELETE FROM t WHERE id IN (SELECT id FROM t3 WHERE p = "
            "'b'); DROP TABLE t3"
        ),
        {3: Gone, 4: Gone},
    ),
]


def _in_part_slow(scenarios: Sequence[tuple[Any, ...]]) -> list[ParameterSet]:
    """Return scenarios by their text; each ``ALWAYS``th is always tried, the others are slow."""
    return [
        pytest.param(*each, id=each[0][:60], marks=() if at % ALWAYS == 0 else pytest.mark.slow)
        for at, each in enumerate(scenarios)
    ]


# Changes of nested values, and the rows of ``n`` after them.
NESTED: Final[list[tuple[str, list[Any]]]] = [
    ("UPDATE n SET r.a = 5 WHERE id = 1", [(1, (5, "x"), [1]), (2, None, None), (3, (None, "z"), [])]),
    ("UPDATE n SET r.b = NULL, l = array(7)", [(1, (1, None), [7]), (2, (None, None), [7]), (3, (None, None), [7])]),
    ("UPDATE n SET r = named_struct('a', 9, 'b', 'w') WHERE r IS NULL", [
        (1, (1, "x"), [1]), (2, (9, "w"), None), (3, (None, "z"), []),
    ]),
    ("UPDATE n SET r.a = id WHERE r.a IS NULL AND r IS NOT NULL", [
        (1, (1, "x"), [1]), (2, None, None), (3, (3, "z"), []),
    ]),
    ("DELETE FROM n WHERE r.b = 'x' OR size(l) = 0", [(2, None, None)]),
    ("MERGE INTO n USING s ON n.id = s.id WHEN MATCHED THEN UPDATE SET r.a = s.v", [
        (1, (1, "x"), [1]), (2, (200, None), None), (3, (300, "z"), []),
    ]),
    ("INSERT INTO n (id, r) VALUES (4, named_struct('a', 4, 'b', 'v'))", [
        (1, (1, "x"), [1]), (2, None, None), (3, (None, "z"), []), (4, (4, "v"), None),
    ]),
]  # fmt: skip


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    catalog = penstock.Catalog(tmp_path_factory.mktemp("peers"), {"penstock.durable": "false"})
    catalog.create_database("d")
    return catalog


@pytest.fixture(scope="module")
def ours(spark: SparkSession, peers: Catalog) -> SparkSession:
    """Return a session whose current database has the tables."""
    session = spark.newSession()
    penstock.attach(session, peers)
    _set_up(session)
    session.sql("USE penstock.d")
    for name, (columns, more, rows) in TABLES.items():
        session.sql(f"CREATE TABLE {name} ({columns}) {more}")
        session.sql(f"INSERT INTO {name} VALUES {rows}")
    source = peers.create_table("d.s", "id INT, v INT, s STRING")
    source.append([dict(zip(("id", "v", "s"), row, strict=True)) for row in SOURCE])
    return session


@pytest.fixture(scope="module")
def theirs(spark: SparkSession) -> SparkSession:
    """Return a session with temporary views of the same rows."""
    session = spark.newSession()
    _set_up(session)
    for name, (columns, _, rows) in TABLES.items():
        fields = spark.createDataFrame([], columns).schema.fields
        casts = [
            f"CAST(col{at} AS {field.dataType.simpleString()}) AS {field.name}" for at, field in enumerate(fields, 1)
        ]
        session.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT {', '.join(casts)} FROM VALUES {rows}")
    return session


def _set_up(session: SparkSession) -> None:
    session.conf.set("spark.sql.session.timeZone", ZONE)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")


def _answer(session: SparkSession, text: str) -> object:
    """Return the names and types of the columns, and the rows, or the condition of the error."""
    try:
        frame = session.sql(text)
        rows = [tuple(row) for row in frame.collect()]
    except PySparkException as error:
        return condition_of(error)
    return frame.schema.simpleString(), rows if "ORDER BY" in text else sorted(rows, key=repr)


@pytest.mark.parametrize("text", _in_part_slow([(text,) for text in QUERIES]))
def test_a_query_has_the_answer_that_it_has_over_plain_values(
    ours: SparkSession, theirs: SparkSession, text: str
) -> None:
    assert repr(_answer(ours, text)) == repr(_answer(theirs, text))


@pytest.mark.parametrize(("statements", "changed"), _in_part_slow(CHANGES))
def test_a_change_leaves_the_rows_that_it_should(
    ours: SparkSession, peers: Catalog, statements: str, changed: dict[int, Any] | str
) -> None:
    table = peers.create_table("d.t", "id INT, p STRING, v INT, s STRING", partition_by=["p"])
    for half in (range(1, 4), range(4, 7)):  # in two files of a partition
        table.append([dict(zip(("id", "p", "v", "s"), (i, *ROWS[i]), strict=True)) for i in half])
    try:
        expected = {**ROWS, **({} if isinstance(changed, str) else changed)}
        for text in statements.split(";"):
            if isinstance(changed, str):
                with pytest.raises(PySparkException) as caught:
                    ours.sql(text)
                assert condition_of(caught.value) in changed.split("|")
            else:
                ours.sql(text)
        found = peers.load_table("d.t").to_arrow(columns=["id", "p", "v", "s"]).to_pylist()
        rows = sorted(((row["id"] or 0, row["p"], row["v"], row["s"]) for row in found), key=repr)
        assert rows == sorted(((i, *row) for i, row in expected.items() if row is not Gone), key=repr)
    finally:
        ours.conf.unset("spark.sql.sources.partitionOverwriteMode")
        for name in ("d.t", "d.t2", "d.t3"):
            peers.drop_table(name, if_exists=True)


@pytest.mark.parametrize(("statement", "rows"), _in_part_slow(NESTED))
def test_a_change_of_nested_values_leaves_the_others(
    ours: SparkSession, peers: Catalog, statement: str, rows: list[Any]
) -> None:
    table = peers.create_table("d.n", "id INT, r ROW<a INT, b STRING>, l ARRAY<INT>")
    table.append(
        [
            {"id": 1, "r": {"a": 1, "b": "x"}, "l": [1]},
            {"id": 2, "r": None, "l": None},
            {"id": 3, "r": {"a": None, "b": "z"}, "l": []},
        ]
    )
    try:
        ours.sql(statement)
        found = peers.load_table("d.n").to_arrow().to_pylist()
        assert sorted((row["id"], row["r"] and tuple(row["r"].values()), row["l"]) for row in found) == rows
    finally:
        peers.drop_table("d.n")
