"""A progress bar, or a status line, on the error stream."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penstock.printable import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.session import Session

    Report: TypeAlias = Callable[[int, int | None], None]
    """Takes rows and bytes done so far; None when the bytes are not known."""


@contextmanager
def progress_bar(session: Session, title: str, total_bytes: int | None) -> Iterator[Report]:
    """Show a bar while the block runs; nothing with ``--quiet`` or if the error stream is not a terminal.

    Args:
        total_bytes: None when unknown, as for standard input.
    """
    if session.quiet or not sys.stderr.isatty():
        yield _ignore
        return
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(visible(title)), total=total_bytes, rows=0)

        def report(rows: int, done_bytes: int | None) -> None:
            bar.update(task, rows=rows, completed=done_bytes)

        yield report


@contextmanager
def status_line(session: Session, title: str) -> Iterator[Callable[[str], None]]:
    """Show a line that the block may change while it runs; nothing when ``progress_bar`` shows nothing."""
    if session.quiet or not sys.stderr.isatty():
        yield lambda _text: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(escape(visible(title)))
        yield lambda text: line.update(task, description=escape(visible(text)))


def _ignore(_rows: int, _bytes: int | None) -> None:
    pass
