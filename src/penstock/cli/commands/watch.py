"""The command that shows a table's health and history live in the terminal."""

import shutil
import sys
from collections.abc import Callable
from threading import Event
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from penstock.api.history import DEFAULT_LIMIT, HistoryReader, TableHistory, history_table, open_history
from penstock.cli.arguments import TableName
from penstock.cli.draw.terminal import draw_screen
from penstock.cli.interrupt import until_interrupted
from penstock.cli.output.history_record import history_record
from penstock.cli.output.render import print_drawn, print_line, print_rows
from penstock.cli.session import OutputFormat, Session, session_of
from penstock.errors import InvalidOptionError
from penstock.options import parse_duration_ms

# A file or a pipe has no size.
_WIDTH: Final = 120
_HEIGHT: Final = 40


def watch(
    context: typer.Context,
    table: TableName,
    *,
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
    interval: Annotated[str, typer.Option(help="Between looks.")] = "2 s",
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint", metavar="PATH", help="Checkpoint of a Spark query that reads the table; may be repeated."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest snapshots to read.")] = DEFAULT_LIMIT,
) -> None:
    """Show a table's health and history until interrupted: new rows, watermark, files, readers, order."""
    session = session_of(context)
    if session.format is OutputFormat.CSV and not once:
        raise InvalidOptionError("--format csv prints the commits once: give --once too")
    reader = open_history(session.table(table), checkpoints=checkpoint or (), limit=limit)
    interval_ms = parse_duration_ms(interval)
    if once:
        _print(session, reader.load())
        return
    with until_interrupted() as interrupted:
        if session.format is OutputFormat.TABLE and sys.stdout.isatty():
            _show(reader, interrupted, interval_ms / 1000)
            return
        while not interrupted.is_set():
            _print(session, reader.load())
            interrupted.wait(interval_ms / 1000)


def _show(reader: HistoryReader, interrupted: Event, seconds: float) -> None:
    console = Console(file=sys.stdout, highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not interrupted.is_set():
            width, height = console.size
            live.update(draw_screen(reader.load(), width=width, height=height), refresh=True)
            interrupted.wait(seconds)


def _print(session: Session, history: TableHistory) -> None:
    match session.format:
        case OutputFormat.JSON:
            print_line(history_record(history))
        case OutputFormat.CSV:
            print_rows(session, history_table(history.commits))
        case OutputFormat.TABLE:
            width = shutil.get_terminal_size((_WIDTH, _HEIGHT)).columns
            console = Console(width=width, highlight=False)
            with console.capture() as captured:
                console.print(draw_screen(history, width=width, height=_HEIGHT))
            print_drawn("\n".join(line.rstrip() for line in captured.get().splitlines()))
    sys.stdout.flush()


COMMANDS: Final[dict[str, Callable[..., None]]] = {"watch": watch}
