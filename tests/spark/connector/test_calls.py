"""Calls between Python and the JVM: each is a round trip, so that no query may need one for each file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

_MEMORY = "m\n"
# Measured for these queries: at most 15 calls from the JVM and 45 to it, with those of PySpark's own methods.
_MAX_ANSWERS = 17
_MAX_CALLS = 47


class _Counter:
    def __init__(self) -> None:
        self.answers: list[str] = []
        self.calls: list[str] = []

    def of(self, run: Callable[[], object]) -> tuple[int, int]:
        """Return how often the JVM called Python and Python called the JVM."""
        self.answers.clear()
        self.calls.clear()
        run()
        return len(self.answers), len(self.calls)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> _Counter:
    counter = _Counter()
    send, answer = ClientServerConnection.send_command, ClientServerConnection._call_proxy

    def sending(self: Any, command: str) -> Any:
        # Py4J releases objects whenever it likes, on a thread of its own.
        if not command.startswith(_MEMORY):
            counter.calls.append(command)
        return send(self, command)

    def answering(self: Any, object_id: str, stream: Any) -> Any:
        counter.answers.append(object_id)
        return answer(self, object_id, stream)

    monkeypatch.setattr(ClientServerConnection, "send_command", sending)
    monkeypatch.setattr(ClientServerConnection, "_call_proxy", answering)
    return counter


def _table(catalog: Catalog, name: str, partitions: int, appends: int) -> Table:
    table = catalog.create_table(name, "p INT, k INT", partition_by=["p"], options={"write-only": "true"})
    for _ in range(appends):
        rows = [{"p": number, "k": number} for number in range(partitions)]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    return table


def _collect(make: Callable[[], DataFrame]) -> None:
    make().collect()


def _queries(spark: SparkSession, name: str) -> dict[str, Callable[[], DataFrame]]:
    return {
        "all": lambda: spark.table(name).selectExpr("sum(k)"),
        "selective": lambda: spark.table(name).where("p = 2 AND k >= 0").selectExpr("sum(k)", "count(p)"),
        "in": lambda: spark.table(name).where(f"p IN ({', '.join(map(str, range(40)))})").selectExpr("sum(k)"),
        "join": lambda: (
            spark.table(name)
            .join(spark.range(3).where("id > 1").withColumnRenamed("id", "p").hint("broadcast"), "p")
            .selectExpr("sum(k)")
        ),
    }


def test_calls_of_a_query_do_not_depend_on_the_number_of_files(
    spark: SparkSession, catalog: Catalog, counter: _Counter
) -> None:
    few, many = _table(catalog, "d.few", 3, 1), _table(catalog, "d.many", 50, 4)
    assert (few.files().num_rows, many.files().num_rows) == (3, 200)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for name in ("few", "many"):
        for work, make in _queries(spark, f"penstock.d.{name}").items():
            make().collect()
            found[work, name] = counter.of(partial(_collect, make))
    for work in _queries(spark, "none"):
        assert found[work, "many"] == found[work, "few"], work
        answers, calls = found[work, "many"]
        assert answers <= _MAX_ANSWERS, work
        assert calls <= _MAX_CALLS, work
