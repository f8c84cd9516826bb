"""Paimon's Spark connector as a peer: there is none for Spark 4.2, so it runs in a separate process with Spark 3.5.

Spark's own Parquet runs in that process too, to show the effect of the Spark version.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.interop.engines import install_environment

from bench.child import Answer, Child
from bench.jars import fetch_peer
from bench.measure import Contender
from bench.result import PAIMON, PARQUET_35
from bench.settings import DATA
from bench.spark_session import common_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.spark_session import SparkJob

KINDS: Final = frozenset({"append", "scan", "select"})
"""The jobs that it takes part in."""
_HERE: Final = Path(__file__).parent
_REQUIREMENTS: Final = _HERE / "paimon-spark-requirements.txt"
_BUILD: Final = _HERE / "paimon-spark-build.txt"
_TABLES: Final = {"paimon": PAIMON, "parquet": PARQUET_35}


def install() -> tuple[str, str]:
    """Return the interpreter with Spark 3.5 and the connector's JAR; fetches both if they are missing.

    Raises:
        OSError: the JAR is not available.
        UnavailableError: the environment is not available.
    """
    (jar,) = fetch_peer("paimon")
    folder = install_environment("Spark 3.5", _REQUIREMENTS, DATA, "--require-hashes", build=_BUILD)
    return str(folder / "bin" / "python"), str(jar)


def spark_version() -> str:
    """Return the version of PySpark pinned for it."""
    found = re.search(r"^pyspark==(\S+)", _REQUIREMENTS.read_text(), re.MULTILINE)
    assert found
    return found[1]


class OtherTable:
    """A table in the other process, and its tasks in a race; times are those of that process."""

    def __init__(self, child: Child, table: str) -> None:
        self.name = _TABLES[table]
        self._child = child
        self._table = table

    def fill(self, source: str, partition: Sequence[str] = ()) -> None:
        """Create the table from the rows of a folder."""
        for op in ("create", "append"):
            self._child.ask(op, table=self._table, source=source, partition=partition)

    def appends(self, source: str) -> Contender:
        """Append the rows of a folder to a new table."""
        request = {"table": self._table, "source": source, "partition": ()}
        return Contender(
            name=self.name,
            before=lambda: self._child.ask("create", **request),
            run=lambda: self._child.ask("append", **request),
            seconds_of=_seconds_of,
            verify=lambda: self._query(("count(*)",)).value[0],
            after=lambda: self._child.ask("drop", table=self._table),
        )

    def sums(self, columns: Sequence[str], condition: str = "true") -> Contender:
        """Request aggregates of the rows that match a condition."""
        last: list[Any] = []

        def verify() -> tuple[Any, ...]:
            # Rows come in another order, so the sum of doubles differs in its last digits.
            return tuple(round(each, 2) if isinstance(each, float) else each for each in last)

        def run() -> Answer:
            answer = self._query(columns, condition)
            last[:] = answer.value
            return answer

        return Contender(name=self.name, run=run, seconds_of=_seconds_of, verify=verify)

    def _query(self, columns: Sequence[str], condition: str = "true") -> Answer:
        return self._child.ask("query", table=self._table, columns=columns, condition=condition)


@contextmanager
def open_other_spark(job: SparkJob) -> Iterator[tuple[OtherTable, ...]]:
    """Start the other process, with the settings of the main session; a job without one gets no tables."""
    if not job.other:
        yield ()
        return
    python, jar = job.other
    settings = {
        **common_settings(job),
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": f"file://{job.folder}/paimon",
        "spark.sql.warehouse.dir": f"{job.folder}/other-warehouse",
        "spark.local.dir": f"{job.folder}/other-local",
    }
    # Settings of the main session for its own Python and JVM.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_HOME", "PYSPARK_"))}
    environment["PYSPARK_PYTHON"] = python
    with Child(PAIMON, python, "bench.paimon_spark_worker", environment=environment) as child:
        child.ask("open", folder=job.folder, settings=settings)
        yield tuple(OtherTable(child, table) for table in _TABLES)


def _seconds_of(answer: object) -> float:
    assert isinstance(answer, Answer)
    return answer.seconds
