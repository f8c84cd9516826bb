"""Prints the outcomes of SQL statements."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.api.lazy import lazy_spark
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.render import note, print_record, print_rows, print_text
from penstock.cli.output.row_stream import RowStream
from penstock.cli.output_format import OutputFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.cli.session import Session
    from penstock.dialect.outcome import Outcome

Query = Any
"""A streaming query of PySpark, which is not imported here."""

# For human readers; JSON and CSV have all rows.
_ROWS_FOR_PEOPLE: Final = 100
_LOOK_SECONDS: Final = 0.2


def print_outcome(
    session: Session, outcome: Outcome, *, show_all: bool, wait: Callable[[Sequence[Query]], None]
) -> Query | None:
    """Print the outcome of a statement.

    Args:
        wait: returns when queries have ended or were interrupted.

    Returns:
        The streaming query that an ``INSERT`` has started, if any.
    """
    value: Any = outcome.value
    if outcome.is_text and session.format is OutputFormat.TABLE:
        print_text(value.column(0)[0].as_py())
    elif isinstance(value, pa.Table):
        _print_rows(session, value, show_all=show_all)
    elif hasattr(value, "isStreaming"):
        if value.isStreaming:
            _print_stream(session, value, ends_at_start=outcome.ends_at_start, wait=wait)
        else:
            is_cut = not show_all and session.format is OutputFormat.TABLE
            shown = value.limit(_ROWS_FOR_PEOPLE + 1) if is_cut else value
            _print_rows(session, lazy_spark.to_arrow(shown), show_all=show_all)
    elif outcome.message is not None:
        print_record(session, {"message": outcome.message}, outcome.message)
    return value if hasattr(value, "awaitTermination") else None


def wait_for(queries: Sequence[Query]) -> None:
    """Wait for streaming queries to end; an interrupt stops them."""
    if not queries:
        return
    with until_interrupted() as interrupted:
        wait_while(queries, interrupted)


def wait_while(queries: Sequence[Query], interrupted: threading.Event) -> None:
    """Wait for streaming queries to end, or for an interrupt, which stops them."""
    try:
        while not interrupted.is_set() and any(query.isActive for query in queries):
            interrupted.wait(_LOOK_SECONDS)
    finally:
        for query in queries:
            query.stop()
    for query in queries:
        query.awaitTermination()  # raises the reason if it failed


def _print_rows(session: Session, rows: pa.Table, *, show_all: bool) -> None:
    is_cut = not show_all and session.format is OutputFormat.TABLE and rows.num_rows > _ROWS_FOR_PEOPLE
    print_rows(session, rows.slice(0, _ROWS_FOR_PEOPLE) if is_cut else rows, exact=True)
    if is_cut:
        note(session, f"only the first {_ROWS_FOR_PEOPLE} rows; LIMIT or --all shows more")


def _print_stream(
    session: Session,
    frame: Any,  # noqa: ANN401 - a DataFrame
    *,
    ends_at_start: bool,
    wait: Callable[[Sequence[Query]], None],
) -> None:
    """Print the rows of a stream until it ends or is interrupted."""
    lazy_spark.check_stream(frame)
    printers: list[RowStream] = []
    lock = threading.Lock()

    def show(batch: Any, _batch_id: int) -> None:  # noqa: ANN401 - a DataFrame
        rows = lazy_spark.to_arrow(batch)
        with lock:
            if not printers:
                printers.append(RowStream(session, rows.schema, exact=True))
            for each in rows.to_batches():
                if each.num_rows:
                    printers[0].write(each)

    writer = frame.writeStream.foreachBatch(show)
    wait([(writer.trigger(availableNow=True) if ends_at_start else writer).start()])
