"""Commands that start Spark's servers and its SQL prompt with catalogs."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock import cli
from penstock.api.lazy import lazy_spark
from penstock.api.register import serve
from penstock.cli.arguments import parse_pairs
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.render import note
from penstock.cli.output.spark_failure import failure_of, open_spark
from penstock.cli.session import Session  # noqa: TC001 - typer reads the annotations
from penstock.errors import InvalidOptionError, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from penstock.spark.exports import Server

_CATALOG: Final = "spark.sql.catalog."
_CLASS: Final = "penstock.Catalog"
_LOOPBACK: Final = ("127.", "localhost", "::1")
_LOOK_SECONDS: Final = 2.0

Host = Annotated[str, typer.Option(help="The address to bind to.")]
Port = Annotated[int | None, typer.Option(min=0, max=65_535, help="The port.  [default: the one that Spark uses]")]
Name = Annotated[str, typer.Option("--name", help="Name of the warehouse as a catalog.")]
Master = Annotated[str, typer.Option("--spark", metavar="MASTER", help="Where Spark runs, such as local[4].")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
]
Packages = Annotated[
    str | None, typer.Option("--packages", metavar="MAVEN", help="Packages for Spark: group:name:version,…")
]


def connect_server(
    session: Session,
    *,
    host: Host = "127.0.0.1",
    port: Port = None,
    name: Name = "penstock",
    spark: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Serve catalogs to clients of Spark Connect: the warehouse, and those of the settings, until interrupted."""
    settings = _settings(session, name, conf, packages)
    _run(session, lazy_spark.CONNECT, host, port, spark, settings)


def thrift_server(
    session: Session,
    *,
    host: Host = "127.0.0.1",
    port: Port = None,
    name: Name = "penstock",
    spark: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Serve catalogs over JDBC and ODBC: the warehouse, and those of the settings, until interrupted."""
    settings = _settings(session, name, conf, packages)
    _run(session, lazy_spark.THRIFT, host, port, spark, settings)


def spark_sql(
    session: Session,
    *,
    execute: Annotated[str | None, typer.Option("--execute", "-e", metavar="SQL", help="Statements.")] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="A script.")] = None,
    name: Name = "penstock",
    spark: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Run Spark SQL in Spark's own spark-sql, with the warehouse and the catalogs of the settings."""
    settings = _settings(session, name, conf, packages)
    arguments = [part for flag, value in (("-e", execute), ("-f", file)) if value is not None for part in (flag, value)]
    lazy_spark.submit(str(files(cli).joinpath("spark_sql_script.py")), arguments, spark, settings)


def _settings(session: Session, name: str, conf: list[str] | None, packages: str | None) -> dict[str, str]:
    """Return the settings of Spark; those of ``--conf`` win."""
    made = {} if packages is None else {"spark.jars.packages": packages}
    if session.warehouse:
        made |= {f"{_CATALOG}{name}": _CLASS, f"{_CATALOG}{name}.warehouse": session.catalog().warehouse}
    return made | parse_pairs(conf, "--conf")


def _run(session: Session, server: Server, host: str, port: int | None, master: str, settings: dict[str, str]) -> None:
    number = server.port if port is None else port
    lazy_spark.use_this_python(master)
    spark = open_spark(session, master, {**settings, server.host_key: host, server.port_key: str(number)})
    try:
        names = serve(spark)
        if not names:
            raise InvalidOptionError(
                f"no catalog is given: give --warehouse PATH, or settings such as --conf {_CATALOG}lake={_CLASS}"
            )
        stop = _started(session, server, spark, f"{host}:{number}")
        note(session, f"{server.title} at {server.scheme}://{host}:{number}, catalogs: {', '.join(names)}")
        if not host.startswith(_LOOPBACK) and not lazy_spark.asks_who_clients_are(server, settings):
            note(session, f"whoever reaches {host} can read and change what this process can")
        _wait(session, spark, server)
        stop()
    finally:
        spark.stop()


def _started(session: Session, server: Server, spark: SparkSession, address: str) -> Callable[[], None]:
    try:
        return server.start(spark)
    except Exception as error:
        failure = failure_of(error)
        if failure is None or session.debug:
            raise
        raise TableStoreError(f"{server.title} could not start at {address}: {failure}") from error


def _wait(session: Session, spark: SparkSession, server: Server) -> None:
    """Return at SIGINT or SIGTERM."""
    try:
        with until_interrupted() as interrupted:
            while not interrupted.wait(_LOOK_SECONDS):
                if not lazy_spark.is_running(spark):
                    raise TableStoreError(f"{server.title}: Spark has ended")
    except KeyboardInterrupt:
        note(session, "stopping")


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "connect-server": connect_server,
    "spark-sql": spark_sql,
    "thrift-server": thrift_server,
}
