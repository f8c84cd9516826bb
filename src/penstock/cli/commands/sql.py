"""The command that runs Flink SQL scripts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.api.lazy import load_module
from penstock.cli.arguments import parse_pairs
from penstock.cli.output.render import note
from penstock.cli.output.spark_failure import disable_error_logs, failure_of, open_spark
from penstock.cli.output.sql_output import print_outcome, wait_for
from penstock.cli.session import Session
from penstock.errors import InvalidOptionError, InvalidSqlError, NotFoundError, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.cli.output.sql_output import Query
    from penstock.cli.session import Session
    from penstock.dialect.state import SqlState

# Loaded when something runs: they need a package that only SQL needs, which the help does not.
_SESSION: Final = "penstock.dialect.session"
_STATE: Final = "penstock.dialect.state"


def sql(
    session: Session,
    statements: Annotated[list[str] | None, typer.Argument(metavar="SQL", help="Statements, as with -e.")] = None,
    *,
    execute: Annotated[
        list[str] | None, typer.Option("--execute", "-e", metavar="SQL", help="Statements; may be repeated.")
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", metavar="FILE", help="A script; - is standard input.")
    ] = None,
    spark: Annotated[
        str | None, typer.Option("--spark", metavar="MASTER", help="Run queries with Spark, such as local[4].")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's session; may be repeated."),
    ] = None,
    packages: Annotated[
        str | None,
        typer.Option("--packages", metavar="MAVEN", help="Packages for Spark, such as Kafka's: group:name:version,…"),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All rows, also with --format table.")] = False,
) -> None:
    """Run Flink SQL statements, one after another, until one fails; without any, open a prompt.

    Files run first, then -e, then statements without -e. A streaming query prints its rows as they arrive, and a
    streaming INSERT runs, until it ends or is interrupted.
    """
    scripts = [*map(_read, file or ()), *(execute or ()), *(statements or ())]
    if not scripts and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidOptionError("give statements with -e, or a script with -f; at a terminal there is a prompt too")
    catalog = session.catalog()
    settings = parse_pairs(conf, "--conf") | ({} if packages is None else {"spark.jars.packages": packages})
    if settings and spark is None:
        raise InvalidOptionError("--conf and --packages are for Spark: give --spark too, such as --spark 'local[2]'")
    if not session.debug:
        disable_error_logs()
    master = None if spark is None else open_spark(session, spark, settings)
    if not scripts:
        # The prompt's imports take longer than most commands take to run.
        load_module("penstock.cli.prompt.loop").run_prompt(session, catalog, master, show_all=all_)
        return
    state, started = load_module(_STATE).SqlState(), []
    with state.attached(catalog, master):
        for script in scripts:
            started += _run(session, state, script, show_all=all_)
    wait_for(started)


def _run(session: Session, state: SqlState, script: str, *, show_all: bool) -> list[Query]:
    """Run a script; return the streaming queries that it has started."""
    started = []
    try:
        for outcome in load_module(_SESSION).run_script(state, script):
            query = print_outcome(session, outcome, show_all=show_all, wait=wait_for)
            if query is not None:
                started.append(query)
    except TableStoreError as error:
        for text in getattr(error, "__notes__", ()):
            note(session, text)
        raise
    except Exception as error:
        failure = failure_of(error)
        if failure is None or session.debug:
            raise
        raise TableStoreError(f"Spark could not run it: {failure}") from error
    return started


def _read(path: str) -> str:
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise NotFoundError(f"the script {path} cannot be read: {error.strerror}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        name = "standard input" if path == "-" else f"the script {path}"
        raise InvalidSqlError(f"{name} is not in UTF-8: line {line} has bytes that are not text") from error


COMMANDS: Final[dict[str, Callable[..., None]]] = {"sql": sql}
