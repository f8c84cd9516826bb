"""Tables of a session with the connectors filesystem, datagen, print and blackhole."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.spark.sql_runner import SECONDS, Sql, new_session, wait_for

from penstock.errors import InvalidOptionError, NotFoundError, SchemaMismatchError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), t TIMESTAMP(3), i TIMESTAMP_LTZ(3), is_new BOOLEAN, dt STRING"
FIRST = (
    1,
    'a, "x"',
    Decimal("2.50"),
    datetime(2026, 1, 1, 10, 0, 0, 123_000),  # noqa: DTZ001 - a wall clock
    datetime(2026, 1, 1, 10, tzinfo=UTC),
    True,
    "2026-01-01",
)
ROWS = """INSERT INTO files VALUES
    (1, 'a, "x"', 2.50, TIMESTAMP '2026-01-01 10:00:00.123', TIMESTAMP '2026-01-01 10:00:00Z', TRUE, '2026-01-01'),
    (2, NULL, NULL, NULL, NULL, NULL, '2026-01-02'), (3, '', 0, NULL, NULL, FALSE, NULL)"""


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


def files(path: Path, kind: str, columns: str = COLUMNS, more: str = "", partition: str = "") -> str:
    return (
        f"CREATE TEMPORARY TABLE files ({columns}) {partition} "
        f"WITH ('connector' = 'filesystem', 'path' = '{path.as_uri()}', 'format' = '{kind}'{more})"
    )


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "json"])
def test_files_give_back_the_rows_that_were_written(sql: Sql, tmp_path: Path, kind: str) -> None:
    sql(files(tmp_path / "out", kind, partition="PARTITIONED BY (dt)"))
    with pytest.raises(NotFoundError, match=r"table files: there is no directory .*write to the table first"):
        sql("SELECT * FROM files")
    sql(ROWS)
    found = [tuple(row) for row in sql("SELECT * FROM files ORDER BY id").collect()]
    first = found[0]
    assert first[:4] + first[5:] == FIRST[:4] + FIRST[5:]
    # PySpark shows instants in the zone of this process.
    assert first[4].astimezone(UTC) == FIRST[4]
    # As in Flink, a CSV line does not tell an empty text from none where no text means null.
    assert found[1] == (2, "" if kind == "csv" else None, None, None, None, None, "2026-01-02")
    assert found[2] == (3, "", Decimal("0.00"), None, None, False, None)
    assert {path.name for path in (tmp_path / "out").glob("dt=*")} >= {"dt=2026-01-01", "dt=2026-01-02"}

    sql("INSERT OVERWRITE files PARTITION (dt = '2026-01-01') SELECT id + 10, name, amount, t, i, is_new FROM files")
    assert sql.rows("SELECT id FROM files WHERE dt = '2026-01-01'") == [(11,), (12,), (13,)]
    assert sql.rows("SELECT id FROM files WHERE dt = '2026-01-02' OR dt IS NULL") == [(2,), (3,)]


def test_a_line_that_is_no_row_is_named_with_its_file(sql: Sql, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.csv").write_text("1;one\nx;two\n")
    sql(files(tmp_path / "in", "csv", "id BIGINT, name STRING", ", 'csv.field-delimiter' = ';'"))
    with pytest.raises(PySparkException, match=r"table files: a line of the file .*lines.csv is no line .*x;two"):
        sql.rows("SELECT * FROM files")
    ignoring = "SELECT name, id FROM files /*+ OPTIONS('csv.ignore-parse-errors' = 'true') */"
    assert sql.rows(ignoring) == [("one", 1), ("two", None)]


def test_a_table_of_the_catalog_is_filled_from_files_and_follows_new_ones(sql: Sql, tmp_path: Path) -> None:
    sql(files(tmp_path / "in", "json", "id BIGINT, name STRING", ", 'source.monitor-interval' = '1 s'"))
    sql("INSERT INTO files VALUES (1, 'one')")
    sql(f"CREATE TABLE t (id BIGINT, name STRING); SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints'")
    query = sql("INSERT INTO t SELECT * FROM files")
    try:
        wait_for(lambda: sql.rows("SELECT * FROM t"), [(1, "one")])
        sql("INSERT INTO files VALUES (2, 'two')")
        wait_for(lambda: sql.rows("SELECT * FROM t"), [(1, "one"), (2, "two")])
    finally:
        query.stop()


def test_generated_rows_keep_to_their_options(sql: Sql) -> None:
    sql("""CREATE TABLE g (id BIGINT, n INT, x DOUBLE, s STRING, code CHAR(4), d DECIMAL(5, 1),
        t TIMESTAMP(3), b BYTES, li BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '500',
        'fields.id.kind' = 'sequence', 'fields.id.start' = '5', 'fields.id.end' = '5000', 'fields.n.min' = '-3',
        'fields.n.max' = '3', 'fields.s.length' = '700', 'fields.b.length' = '5', 'fields.d.null-rate' = '0.5')""")
    (found,) = sql.rows(
        "SELECT count(*), min(id), max(id), min(n), max(n), count(DISTINCT n), min(length(s)), max(length(s)),"
        " count(DISTINCT s), max(length(code)), max(length(b)), count(d) BETWEEN 100 AND 400, count(DISTINCT li) FROM g"
    )
    assert found == (500, 5, 504, -3, 3, 7, 700, 700, 500, 4, 5, True, 500)
    with pytest.raises(UnsupportedFeatureError, match=r"table h, column 'a': values of type ARRAY<INT> are not gen"):
        sql("CREATE TABLE h (a ARRAY<INT>) WITH ('connector' = 'datagen'); SELECT * FROM h")


def test_an_endless_table_of_generated_rows_is_a_stream(sql: Sql, tmp_path: Path) -> None:
    sql("""CREATE TABLE g (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.k.min' = '1',
        'fields.k.max' = '9'); CREATE TABLE t (k INT)""")
    sql(f"SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints'")
    query = sql("INSERT INTO t SELECT * FROM g")
    try:
        wait_for(lambda: sql.rows("SELECT count(*) > 100, min(k), max(k) FROM t"), [(True, 1, 9)])
    finally:
        query.stop()


def test_rows_are_printed_as_flink_prints_them(sql: Sql, capsys: pytest.CaptureFixture[str]) -> None:
    sql("""CREATE TABLE p (id BIGINT, name STRING, t TIMESTAMP(3), m MAP<STRING, INT>)
        WITH ('connector' = 'print', 'print-identifier' = 'out')""")
    sql("INSERT INTO p SELECT 1, 'x', TIMESTAMP_NTZ '2026-01-01 10:00:00', map('a', 1); INSERT INTO p (id) VALUES (2)")
    assert capsys.readouterr().out == "out> +I[1, x, 2026-01-01T10:00:00, {a=1}]\nout> +I[2, null, null, null]\n"
    with pytest.raises(InvalidOptionError, match="table p: its connector, print, takes rows only"):
        sql("SELECT * FROM p")


def test_a_black_hole_takes_rows_of_batches_and_streams(sql: Sql) -> None:
    sql("CREATE TABLE hole (id BIGINT) WITH ('connector' = 'blackhole'); CREATE TABLE t (id BIGINT)")
    assert sql("INSERT INTO t VALUES (1); INSERT INTO hole SELECT * FROM t") is None
    query = sql("INSERT INTO hole SELECT * FROM t /*+ OPTIONS('scan.bounded' = 'true') */")
    assert query.awaitTermination(60)
    assert sum(progress.numInputRows for progress in query.recentProgress) == 1
    with pytest.raises(SchemaMismatchError, match="column 'id' is BIGINT, and the rows have STRING: write a CAST"):
        sql("INSERT INTO hole SELECT 'x'")
    with pytest.raises(InvalidOptionError, match="it cannot be overwritten"):
        sql("INSERT OVERWRITE hole SELECT * FROM t")


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_stream_fills_a_directory_of_files_each_row_once(sql: Sql, tmp_path: Path, kind: str) -> None:
    sql(files(tmp_path / "out", kind, "id BIGINT, dt STRING", partition="PARTITIONED BY (dt)"))
    sql("CREATE TABLE t (id BIGINT, dt STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql(f"SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints'")
    insert = "INSERT INTO files SELECT * FROM t /*+ OPTIONS('scan.bounded' = 'true') */"
    assert sql(insert).awaitTermination(SECONDS)
    assert sql.rows("SELECT * FROM files ORDER BY id") == [(1, "a"), (2, "b")]
    assert sql(insert).awaitTermination(SECONDS)
    assert sql.rows("SELECT count(*) FROM files") == [(2,)]
    # Spark reads such a directory by the log of its streams, which a batch does not write to.
    with pytest.raises(UnsupportedFeatureError, match=r"a stream has written .* insert from a stream"):
        sql("INSERT INTO files VALUES (3, 'a')")


def test_a_stream_prints_its_rows(sql: Sql, capsys: pytest.CaptureFixture[str]) -> None:
    sql("CREATE TABLE p (id BIGINT) WITH ('connector' = 'print'); CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (7)")
    query = sql("INSERT INTO p SELECT * FROM t /*+ OPTIONS('scan.bounded' = 'true') */")
    assert query.awaitTermination(SECONDS)
    assert capsys.readouterr().out == "+I[7]\n"
