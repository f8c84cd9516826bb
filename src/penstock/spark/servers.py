"""Spark's own servers and SQL prompt, in the JVM of this process's session, whose catalogs they use.

Source:
    ``SparkConnectService``, ``HiveThriftServer2`` and ``SparkSQLCLIDriver`` of Spark, which its scripts start as well.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from penstock.errors import UnsupportedFeatureError
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.versions.facts import THRIFT_SERVER_EXITS
from penstock.spark.versions.python_api import maven_package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_JavaObject = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of Spark's servers.

    Attributes:
        title: its name in messages.
        scheme: of its addresses.
        port: its usual one.
        host_key: setting of the address to which it binds; ``port_key`` that of the port.
        authentication_key: setting without which it asks no client who it is.
        authentication_variable: environment variable that takes the place of the setting; None if it has none.
        start: called with a session; returns the function that stops the server.
    """

    title: str
    scheme: str
    port: int
    host_key: str
    port_key: str
    authentication_key: str
    authentication_variable: str | None
    start: Callable[[SparkSession], Callable[[], None]]


def _start_connect(spark: SparkSession) -> Callable[[], None]:
    jvm: _JavaObject = spark._jvm  # noqa: SLF001 - no public way to the JVM
    context: _JavaObject = spark.sparkContext
    service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
    if isinstance(service, JavaPackage):
        raise UnsupportedFeatureError(
            f"Spark has no server of Spark Connect: give --packages {maven_package(spark, 'spark-connect')}"
        )
    service.start(context._jsc.sc())  # noqa: SLF001 - as above

    def stop() -> None:
        service.stop(jvm.scala.Option.empty(), jvm.scala.Option.empty())

    return stop


def _start_thrift(spark: SparkSession) -> Callable[[], None]:
    jvm: _JavaObject = spark._jvm  # noqa: SLF001 - as above
    session: _JavaObject = spark._jsparkSession  # noqa: SLF001 - as above
    thrift = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    if THRIFT_SERVER_EXITS:  # as on a port that is taken; this brings the error here
        thrift.systemExitOnError().set(False)
    server: _JavaObject = thrift.startWithContext(session.sqlContext())
    open_bridge(spark).server_metadata.serve(server)
    stop: Callable[[], None] = server.stop
    return stop


CONNECT: Final = Server(
    title="Spark Connect",
    scheme="sc",
    port=15002,
    host_key="spark.connect.grpc.binding.address",
    port_key="spark.connect.grpc.binding.port",
    authentication_key="spark.connect.authenticate.token",
    authentication_variable="SPARK_CONNECT_AUTHENTICATE_TOKEN",
    start=_start_connect,
)
THRIFT: Final = Server(
    title="Thrift server",
    scheme="jdbc:hive2",
    port=10000,
    host_key="spark.hadoop.hive.server2.thrift.bind.host",
    port_key="spark.hadoop.hive.server2.thrift.port",
    authentication_key="spark.hadoop.hive.server2.authentication",
    authentication_variable=None,
    start=_start_thrift,
)


def use_this_python(master: str) -> None:
    """Let tasks on this machine, and functions of clients of Spark Connect, run with this process's Python."""
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def asks_who_clients_are(server: Server, settings: Mapping[str, str]) -> bool:
    """Whether clients of a server with these settings authenticate."""
    return server.authentication_key in settings or bool(os.environ.get(server.authentication_variable or ""))


def is_running(spark: SparkSession) -> bool:
    """Whether the application of a session has neither been stopped nor lost its JVM."""
    context: _JavaObject = spark.sparkContext._jsc  # noqa: SLF001 - as above
    try:
        return context is not None and not context.sc().isStopped()
    except (Py4JNetworkError, OSError):
        return False


def submitted_session() -> SparkSession:
    """Return the session of a script that ``submit`` runs."""
    # The prompt reads the metastore of its session.
    session = SparkSession.builder.appName("penstock spark-sql").enableHiveSupport().getOrCreate()
    # Spark's own script starts the JVM with it, but ``spark-submit`` of Python logs each step.
    session.sparkContext.setLogLevel("WARN")
    return session


def run_prompt(arguments: Sequence[str]) -> None:
    """Run Spark's SQL prompt, whose arguments are those of ``spark-sql``; it ends the process."""
    gateway: _JavaObject = SparkContext._gateway  # noqa: SLF001 - as above
    texts = gateway.new_array(gateway.jvm.java.lang.String, len(arguments))
    for place, text in enumerate(arguments):
        texts[place] = text
    with suppress(Py4JNetworkError):  # it ends the JVM
        gateway.jvm.org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver.main(texts)


def submit(script: str, arguments: Sequence[str], master: str | None, settings: dict[str, str]) -> None:
    """Go on as Spark's ``spark-submit`` of a script, with this process's Python; the JVM gets the terminal."""
    command = [os.path.join(_find_spark_home(), "bin", "spark-submit")]  # noqa: PTH118 - not of a file that is opened
    command += [] if master is None else ["--master", master]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    os.execve(command[0], [*command, script, *arguments], environment)  # noqa: S606 - a script of Spark
