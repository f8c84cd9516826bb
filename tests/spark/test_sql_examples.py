"""The statements of Paimon's pages, with their text unchanged."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import EXAMPLES, Sql, example, new_session, wait_for

from penstock.dialect.parse.script import split_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXTS = {
    "01-scalable-table": "30fa3a03601bbc4ffcfa6bb94314ea40988bc7e994a41491dc9855a6b9b9dbd7",
    "02-queue": "a104d0de4a943bc47497cd4bf81f818680e2d9362b5230c0388a11175da407cf",
    "03-watermark": "b67790ca649612e902c5c0a56fabedafe5577244feaeb31aa007d885e38adac4",
    "04-kafka-bounded": "fcc98b9c4ab5fb5d3c8b4d2aa18f96bb0fd857d19b1e00e4d4f5ccc3079dd158",
}
ROWS = """
INSERT INTO T VALUES
  (1, 'x', TIMESTAMP '2026-03-08 02:01:00'), (2, 'x', TIMESTAMP '2026-03-08 02:09:59.999'),
  (NULL, 'x', TIMESTAMP '2026-03-08 02:10:00'), (3, 'x', TIMESTAMP '2026-03-08 02:19:00'),
  (4, 'y', TIMESTAMP '2026-03-08 02:30:04.999')
"""


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


def at(minute: int) -> datetime:
    # An hour that the session's zone has not: the clocks go forward.
    return datetime(2026, 3, 8, 2, minute)  # noqa: DTZ001 - a wall clock


def test_the_texts_are_those_that_were_given() -> None:
    found = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in EXAMPLES.glob("*.sql")}
    assert {name: found[name] for name in TEXTS} == TEXTS


@pytest.mark.parametrize(
    ("name", "table", "options"),
    [
        ("01-scalable-table", "MyTable", {"bucket": "-1"}),
        ("02-queue", "my_table", {"bucket": "8", "bucket-key": "product_id"}),
    ],
)
def test_tables_of_both_kinds_are_made(sql: Sql, name: str, table: str, options: dict[str, str]) -> None:
    sql(example(name))
    assert sql.catalog.list_tables("default") == (table,)
    made = sql.catalog.load_table(f"default.{table}")
    assert made.schema.field_names == ("product_id", "price", "sales")
    assert {key: made.options[key] for key in options} == options
    assert sql.rows(f"INSERT INTO {table} VALUES (1, 2.5, 3); SELECT * FROM {table}") == [(1, 2.5, 3)]  # noqa: S608 - of this file


def test_windows_over_a_table_count_its_rows(sql: Sql) -> None:
    create, select = (statement.text for statement in split_script(example("03-watermark")))
    assert sql.rows(f"{create}; {ROWS}; {select}") == [(at(0), at(10), 2), (at(10), at(20), 1), (at(30), at(40), 1)]


def test_windows_over_a_stream_are_told_when_the_tables_watermark_has_passed_them(sql: Sql, tmp_path: Path) -> None:
    create, select = (statement.text for statement in split_script(example("03-watermark")))
    sql(f"{create}; {ROWS}")
    # Half past, less a millisecond: as late as the table says, the second window may still get rows.
    assert sql.streamed(select) == [(at(0), at(10), 2), (at(10), at(20), 1)]

    bounded = select.replace("TABLE T,", "TABLE T /*+ OPTIONS('scan.bounded' = 'true') */,")
    assert bounded != select
    # As Flink prints them: the end of a bounded input closes the last window.
    assert sql.streamed(bounded) == [(at(0), at(10), 2), (at(10), at(20), 1), (at(30), at(40), 1)]

    sql("CREATE TABLE counts (window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)")
    sql(f"SET 'execution.checkpointing.dir' = '{tmp_path}'; SET 'execution.runtime-mode' = 'streaming'")
    query = sql(f"INSERT INTO counts {select}")
    try:
        sql("RESET 'execution.runtime-mode'")
        told = [(at(0), at(10), 2), (at(10), at(20), 1)]
        wait_for(lambda: sql.rows("SELECT * FROM counts"), told)
        sql("INSERT INTO T VALUES (5, 'late', TIMESTAMP '2026-03-08 02:11:00')")
        sql("INSERT INTO T VALUES (6, 'x', TIMESTAMP '2026-03-08 02:40:05')")
        wait_for(lambda: sql.rows("SELECT * FROM counts"), [*told, (at(30), at(40), 1)])
    finally:
        query.stop()
