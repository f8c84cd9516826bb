"""The same query in the driver, and through Spark Connect and the Thrift server of its JVM."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import penstock
from bench.child import Child
from bench.measure import Contender, race
from bench.result import Section
from bench.settings import ROOT
from penstock import Catalog
from penstock.spark.servers import CONNECT, THRIFT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bench.measure import Series
    from bench.spark_session import SparkJob

DRIVER: Final = "the driver"
BY_CONNECT: Final = "Spark Connect"
BY_THRIFT: Final = "the Thrift server"
KEY: Final = "one key of a sorted table"
SUM: Final = "sum of one partition of 100"
FILES: Final = 50
# PyHive needs older versions of other libraries.
PYHIVE: Final = os.environ.get("PENSTOCK_PYHIVE", str(ROOT / ".venv-dbt" / "bin" / "python"))
_Query: TypeAlias = "Callable[[str], list[list[object]]]"
_SERVERS: Final = {"connect": (BY_CONNECT, CONNECT, sys.executable), "thrift": (BY_THRIFT, THRIFT, PYHIVE)}


def find_ports() -> dict[str, str]:
    """Return the settings with which both servers start, on free ports of this machine."""
    settings: dict[str, str] = {}
    for _, server, _ in _SERVERS.values():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            settings |= {server.host_key: "127.0.0.1", server.port_key: str(probe.getsockname()[1])}
    return settings


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Fill a table, start the servers, and query in turns."""
    lake = f"{job.folder}/lake"
    catalog = Catalog(lake, {"penstock.durable": "false"})
    catalog.create_database("b")
    spark.conf.set("spark.sql.catalog.lake", "penstock.Catalog")
    spark.conf.set("spark.sql.catalog.lake.warehouse", lake)
    penstock.serve(spark)
    rows = job.settings.sort_rows
    source = spark.range(0, rows, 1, job.settings.cores).selectExpr(
        "id", "pmod(xxhash64(id), 10000) AS k", "CAST(id AS DOUBLE) / 7 AS v", "CAST(id % 100 AS INT) AS p"
    )
    source.repartitionByRange(FILES, "k").sortWithinPartitions("k").writeTo("lake.b.k").create()
    source.repartition(job.settings.cores, "p").writeTo("lake.b.p").partitionedBy("p").create()
    works = {
        KEY: "SELECT count(v), sum(k) FROM lake.b.k WHERE k = 4242",
        SUM: "SELECT count(v), sum(k) FROM lake.b.p WHERE p = 42",
    }
    with ExitStack() as stack:
        contenders, notes = _clients(spark, stack)
        contenders[DRIVER] = partial(_collect, spark)
        series: list[Series] = []
        for work, text in works.items():
            series += _race(job, work, text, contenders)
    return Section(name="servers", title="Queries through servers", series=tuple(series), notes=notes)


def _clients(spark: SparkSession, stack: ExitStack) -> tuple[dict[str, _Query], tuple[str, ...]]:
    """Start the servers, and return their clients; without the library of one, a line that says so."""
    found: dict[str, _Query] = {}
    notes = []
    for kind, (name, server, python) in _SERVERS.items():
        needed = "import pyhive.hive" if kind == "thrift" else "import grpc"
        if not Path(python).exists() or subprocess.run([python, "-c", needed], check=False).returncode:
            notes.append(f"{name} is left out: {python} cannot {needed}")
            continue
        stack.callback(server.start(spark))
        address = f"127.0.0.1:{spark.sparkContext.getConf().get(server.port_key)}"
        environment = {**os.environ, "BENCH_SERVER": kind, "BENCH_ADDRESS": address}
        child = stack.enter_context(Child(name, python, "bench.server_client", environment=environment))
        found[name] = partial(_ask, child)
    return found, tuple(notes)


def _race(job: SparkJob, work: str, text: str, contenders: dict[str, _Query]) -> tuple[Series, ...]:
    last: dict[str, object] = {}

    def contender(name: str, query: _Query) -> Contender:
        def run() -> None:
            last[name] = query(text)

        return Contender(name=name, run=run, verify=lambda: last[name])

    # Queries of a tenth of a second: more turns than others have.
    rounds, warm_ups = 12 * job.settings.rounds, 10 * job.settings.warm_ups
    turns = [contender(name, query) for name, query in contenders.items()]
    return race(work, turns, rounds=rounds, warm_ups=warm_ups, session=job.peer)


def _collect(spark: SparkSession, text: str) -> list[list[object]]:
    return [list(row) for row in spark.sql(text).collect()]


def _ask(child: Child, text: str) -> list[list[object]]:
    """Return the rows, which JSON has made lists; the time of the pipe is too short to matter."""
    rows: list[list[object]] = child.ask("query", text=text).value
    return rows
