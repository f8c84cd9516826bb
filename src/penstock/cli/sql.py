"""The command that runs scripts in Flink's SQL."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import typer

from penstock.api.deferred import spark_entry
from penstock.cli.interrupt import until_interrupted
from penstock.cli.render import note, print_record, print_rows
from penstock.cli.row_stream import RowStream
from penstock.cli.session import OutputFormat, Session, session_of
from penstock.dialect.late import run_script_late
from penstock.dialect.state import SqlState
from penstock.errors import InvalidOptionError, NotFoundError, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.dialect.outcome import Outcome

# As many as a person looks at; programs, which ask for JSON or CSV, get everything.
_ROWS_FOR_PEOPLE: Final = 100
_LOOK_SECONDS: Final = 0.2


def sql(
    context: typer.Context,
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
    all_: Annotated[bool, typer.Option("--all", help="All rows, also with --format table.")] = False,
) -> None:
    """Run statements in Flink's SQL, one after the other, until one fails.

    Files come before -e. A query over a stream prints its rows as they come, and an INSERT from one goes on, until it
    ends or is interrupted.
    """
    session = session_of(context)
    scripts = [*map(_read, file or ()), *(execute or ())]
    if not scripts:
        raise InvalidOptionError("give statements with -e, or a script with -f")
    master = None if spark is None else spark_entry().open_session(spark)
    state, started = SqlState(), []
    with state.attached(session.catalog(), master):
        for script in scripts:
            try:
                for outcome in run_script_late(state, script):
                    query = _print(session, outcome, show_all=all_)
                    if query is not None:
                        started.append(query)
            except TableStoreError as error:
                for text in getattr(error, "__notes__", ()):
                    note(session, text)
                raise
    _wait(started)


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(f"the script {path} cannot be read: {error.strerror}") from error


def _print(session: Session, outcome: Outcome, *, show_all: bool) -> Any:  # noqa: ANN401 - an object of PySpark, or None
    """Print what became of a statement; return the streaming query that it has started, if any."""
    value: Any = outcome.value
    if isinstance(value, pa.Table):
        _print_rows(session, value, show_all=show_all)
    elif hasattr(value, "isStreaming"):
        if value.isStreaming:
            _print_stream(session, value, ends_at_start=outcome.ends_at_start)
        else:
            is_cut = not show_all and session.format is OutputFormat.TABLE
            shown = value.limit(_ROWS_FOR_PEOPLE + 1) if is_cut else value
            _print_rows(session, shown.toArrow(), show_all=show_all)
    elif outcome.message is not None:
        print_record(session, {"message": outcome.message}, outcome.message)
    return value if hasattr(value, "awaitTermination") else None


def _print_rows(session: Session, rows: pa.Table, *, show_all: bool) -> None:
    is_cut = not show_all and session.format is OutputFormat.TABLE and rows.num_rows > _ROWS_FOR_PEOPLE
    print_rows(session, rows.slice(0, _ROWS_FOR_PEOPLE) if is_cut else rows)
    if is_cut:
        note(session, f"only the first {_ROWS_FOR_PEOPLE} rows; LIMIT or --all shows more")


def _print_stream(session: Session, frame: Any, *, ends_at_start: bool) -> None:  # noqa: ANN401 - a DataFrame
    """Print a stream's rows until it ends or is interrupted."""
    spark_entry().sql_check_stream(frame)
    printers: list[RowStream] = []
    lock = threading.Lock()

    def show(batch: Any, _batch_id: int) -> None:  # noqa: ANN401 - a DataFrame
        rows = batch.toArrow()
        with lock:
            if not printers:
                printers.append(RowStream(session, rows.schema))
            for each in rows.to_batches():
                if each.num_rows:
                    printers[0].write(each)

    writer = frame.writeStream.foreachBatch(show)
    _wait([(writer.trigger(availableNow=True) if ends_at_start else writer).start()])


def _wait(queries: list[Any]) -> None:
    """Wait for streaming queries to end; an interrupt stops them."""
    if not queries:
        return
    with until_interrupted() as interrupted:
        try:
            while not interrupted.is_set() and any(query.isActive for query in queries):
                interrupted.wait(_LOOK_SECONDS)
        finally:
            for query in queries:
                query.stop()
    for query in queries:
        query.awaitTermination()  # says why it failed, if it did


COMMANDS: Final[dict[str, Callable[..., None]]] = {"sql": sql}
