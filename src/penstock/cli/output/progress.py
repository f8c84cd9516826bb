"""A progress bar, or a status line, on the error stream."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, ProgressColumn, TextColumn

from penstock.api.handle import is_progress_disabled
from penstock.api.progress import rich_progress
from penstock.printable import bytes_text, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.session import Session

    Report: TypeAlias = Callable[[int, int | None], None]
    """Takes the number of rows or files done so far, and of bytes; None when these are not known."""


class Unit(StrEnum):
    """What an operation reports the number of."""

    ROWS = "rows"
    FILES = "files"


@contextmanager
def progress_bar(
    session: Session, title: str, unit: Unit, *, total: int | None = None, total_bytes: int | None = None
) -> Iterator[Report]:
    """Show a bar while the block runs.

    Nothing is shown with ``--quiet``, with ``PENSTOCK_PROGRESS=0``, or if the error stream is not a terminal.

    Args:
        unit: of the first number that is reported, and of ``total``.
        total: None when unknown.
        total_bytes: None when unknown, as for standard input. Without any total there is no bar.
    """
    if not _is_shown(session):
        yield _ignore
        return
    columns: list[ProgressColumn] = []
    if total_bytes is not None:
        columns = [BarColumn(), DownloadColumn(binary_units=True)]
    elif total is not None:
        columns = [BarColumn()]
    with rich_progress(*columns, TextColumn("{task.fields[text]}")) as bar:
        whole = total if total_bytes is None else total_bytes
        task = bar.add_task(escape(visible(title)), total=whole, text="")
        of = "" if total is None else f" of {total:,}"

        def report(done: int, done_bytes: int | None) -> None:
            bytes_done = f", {bytes_text(done_bytes)}" if done_bytes and total_bytes is None else ""
            completed = done if total_bytes is None else done_bytes
            bar.update(task, completed=completed, text=f"{done:,}{of} {unit}{bytes_done}")

        yield report


@contextmanager
def status_line(session: Session, title: str) -> Iterator[Callable[[str], None]]:
    """Show a line that the block may change while it runs; nothing when ``progress_bar`` shows nothing."""
    if not _is_shown(session):
        yield lambda _text: None
        return
    with rich_progress() as line:
        task = line.add_task(escape(visible(title)))
        yield lambda text: line.update(task, description=escape(visible(text)))


def _is_shown(session: Session) -> bool:
    return not session.quiet and not is_progress_disabled() and sys.stderr.isatty()


def _ignore(_rows: int, _bytes: int | None) -> None:
    pass
