"""What a user of ``format("penstock")`` reads when something is wrong."""

from __future__ import annotations

import traceback

import pytest
from pyspark.sql.types import IntegerType, StructType
from tests.unit.table.stream.queues import Queue

from penstock.errors import NotFoundError, SchemaMismatchError
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.data_source.tracebacks import without_frames
from penstock.spark.types import check_columns


def test_errors_of_ours_come_without_the_frames_of_their_cause() -> None:
    with pytest.raises(NotFoundError) as caught:
        PenstockDataSource({"path": "/no/such/table"}).schema()
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("File ") <= 2  # this test and the method
    assert "load_location" not in text
    assert text.splitlines()[-1].startswith("penstock.errors.NotFoundError: table /no/such/table does not exist")


def test_other_errors_keep_their_frames() -> None:
    @without_frames
    def outer() -> None:
        inner()

    def inner() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        outer()
    assert "inner()" in "".join(traceback.format_exception(caught.value))


def test_a_column_that_spark_alone_has_is_explained() -> None:
    with pytest.raises(SchemaMismatchError, match=r"no column 'z': .*Spark's own ALTER TABLE .* Catalog\.alter_table"):
        check_columns(Queue().ref, StructType().add("z", IntegerType()))
