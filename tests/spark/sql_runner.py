"""Scripts run in one session of SQL with Spark."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from penstock import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """Runs scripts in one session."""

    spark: SparkSession
    catalog: Catalog

    def __call__(self, text: str) -> Any:
        return penstock.sql(self.spark, self.catalog, text)

    def rows(self, text: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in self(text).collect())

    def streamed(self, text: str) -> list[tuple[object, ...]]:
        """Run a query as a stream over what is there."""
        frame = self(f"SET 'execution.runtime-mode' = 'streaming'; {text}")
        self("RESET 'execution.runtime-mode'")
        return collect(frame)


def new_session(spark: SparkSession, folder: Path) -> Iterator[Sql]:
    """Yield a session over a warehouse of its own, for a fixture."""
    # Not by the catalog: its lists need compiled queries.
    before = spark.sql("SHOW TABLES").collect()
    yield Sql(spark=spark, catalog=Catalog(str(folder / "warehouse")))
    assert spark.sql("SHOW TABLES").collect() == before, "a query left a view behind"


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.sql").read_text("utf-8")


def wait_for(found: Callable[[], object], expected: object) -> None:
    """Wait until a query that runs has brought about what is expected; an idle source looks a few times a second."""
    deadline = time.monotonic() + SECONDS
    while found() != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found() == expected


def collect(frame: DataFrame, mode: str = "append") -> list[tuple[object, ...]]:
    """Run a stream over what is there; return the rows of its result."""
    assert frame.isStreaming
    found: list[tuple[object, ...]] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        if mode == "complete":
            found.clear()
        found.extend(tuple(row) for row in batch.collect())

    query = frame.writeStream.outputMode(mode).foreachBatch(keep).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    return sorted(found)
