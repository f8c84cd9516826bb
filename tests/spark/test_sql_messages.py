"""What Spark does not understand, in the place that it has for its author; see ``sql_messages.txt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import Sql, new_session
from tests.unit.dialect.parse.test_parse import told

from penstock import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    for sql in new_session(spark, tmp_path_factory.mktemp("messages")):
        sql("CREATE DATABASE shop; USE shop")
        sql("CREATE TABLE orders (id BIGINT, price DECIMAL(10, 2), at TIMESTAMP(3), dt STRING) PARTITIONED BY (dt)")
        yield sql


@pytest.mark.parametrize(("text", "message"), [*told(Path(__file__).with_name("sql_messages.txt"))])
def test_the_error_of_a_statement_says_what_is_wrong_and_what_works(sql: Sql, text: str, message: str) -> None:
    with pytest.raises(TableStoreError) as caught:
        sql(text)
    assert f"{type(caught.value).__name__}: {caught.value}" == message
