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
from bench.result import BY_CONNECT, BY_THRIFT, IN_DRIVER, OURS, PARQUET, Section
from bench.settings import ROOT
from penstock.spark.servers import CONNECT, THRIFT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bench.measure import Series
    from bench.spark_session import SparkJob

KEY: Final = "one key of a sorted table"
SUM: Final = "sum of one partition of 100"
FILES: Final = 50
# The same rows, laid out alike: what a server takes for those of Parquet is Spark's own.
_CATALOGS: Final = {OURS: "lake", PARQUET: "spark_catalog"}
_QUERIES: Final = {
    KEY: "SELECT count(v), sum(k) FROM {catalog}.b.k WHERE k = 4242",
    SUM: "SELECT count(v), sum(k) FROM {catalog}.b.p WHERE p = 42",
}
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
    """Fill the tables, start the servers, and query in turns."""
    spark.conf.set("spark.sql.catalog.lake", "penstock.Catalog")
    spark.conf.set("spark.sql.catalog.lake.warehouse", f"{job.folder}/lake")
    penstock.serve(spark)
    rows = job.settings.sort_rows
    source = spark.range(0, rows, 1, job.settings.cores).selectExpr(
        "id", "pmod(xxhash64(id), 10000) AS k", "CAST(id AS DOUBLE) / 7 AS v", "CAST(id % 100 AS INT) AS p"
    )
    for catalog in _CATALOGS.values():
        spark.sql(f"CREATE DATABASE {catalog}.b")
        source.repartitionByRange(FILES, "k").sortWithinPartitions("k").writeTo(f"{catalog}.b.k").create()
        source.repartition(job.settings.cores, "p").writeTo(f"{catalog}.b.p").partitionedBy("p").create()
    with ExitStack() as stack:
        clients, notes = _clients(spark, stack)
        clients[IN_DRIVER] = partial(_collect, spark)
        series = [each for work in _QUERIES for each in _race(job, work, clients)]
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


def _race(job: SparkJob, work: str, clients: dict[str, _Query]) -> tuple[Series, ...]:
    last: dict[str, object] = {}

    def contender(name: str, query: _Query, catalog: str) -> Contender:
        text = _QUERIES[work].format(catalog=catalog)

        def run() -> None:
            last[name] = query(text)

        return Contender(name=name, run=run, verify=lambda: last[name])

    # Queries of a tenth of a second: more turns than others have.
    rounds, warm_ups = 12 * job.settings.rounds, 10 * job.settings.warm_ups
    turns = [
        contender(f"{software} {way}", query, catalog)
        for software, catalog in _CATALOGS.items()
        for way, query in clients.items()
    ]
    return race(work, turns, rounds=rounds, warm_ups=warm_ups, session=job.peer)


def _collect(spark: SparkSession, text: str) -> list[list[object]]:
    return [list(row) for row in spark.sql(text).collect()]


def _ask(child: Child, text: str) -> list[list[object]]:
    """Return the rows, which JSON has made lists; the time of the pipe is too short to matter."""
    rows: list[list[object]] = child.ask("query", text=text).value
    return rows
