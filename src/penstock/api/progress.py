"""Progress bars of the Python API, on a terminal and in notebooks."""

from __future__ import annotations

import contextvars
import importlib
import sys
import time
from contextlib import contextmanager
from html import escape
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penstock.metrics import ROWS
from penstock.printable import open_log, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import ProgressColumn

_LOG: Final = open_log(__name__)
DELAY_SECONDS: Final = 2.0
"""After so long, a bar appears."""
_INTERVAL_SECONDS: Final = 0.2
_WORDS: Final = {"read": "rows read", "written": "rows written", "files": "files"}


class Bar(Protocol):
    """What is shown; ``penstock.api.handle.Bar`` has these attributes."""

    title: str
    counts: Literal["read", "written", "files"]
    total: int | None
    files: int
    is_due: Event
    is_drawn: Event


def rich_progress(*columns: ProgressColumn) -> Progress:
    """Return the bar of a terminal, on the error stream, which disappears in the end.

    Args:
        columns: what it shows between the title and the time.
    """
    shown = (SpinnerColumn(), TextColumn("{task.description}"), *columns, TimeElapsedColumn())
    return Progress(*shown, console=Console(stderr=True), transient=True)


@contextmanager
def showing(bar: Bar, location: str) -> Iterator[None]:
    """Show a bar while the block runs, from the third second on; nothing inside of another bar.

    Args:
        location: of the table whose rows are counted.
    """
    if ROWS.location is not None:
        bar.is_drawn.set()
        yield
        return
    ROWS.begin(location)
    ended = Event()
    # In a copy of the context, in which a notebook knows the cell that runs.
    thread = Thread(target=contextvars.copy_context().run, args=(_show, bar, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        bar.is_due.set()
        thread.join()
        ROWS.end()


class _View(Protocol):
    """Where a bar is shown."""

    def update(self, done: int, total: int | None) -> None:
        """Show how much is done."""
        ...

    def close(self) -> None:
        """Remove the bar."""
        ...


def _show(bar: Bar, ended: Event) -> None:
    began = time.monotonic()
    bar.is_due.wait(DELAY_SECONDS)
    if ended.is_set():
        return
    try:
        view: _View = _NotebookView(bar, began) if "ipykernel" in sys.modules else _TerminalView(bar, began)
        try:
            while not ended.is_set():
                view.update(_done(bar), bar.total)
                bar.is_drawn.set()
                ended.wait(_INTERVAL_SECONDS)
        finally:
            view.close()
    except Exception as error:  # noqa: BLE001 - an operation must not fail because of its bar
        _LOG.debug("no progress is shown: %s", error)
    finally:
        bar.is_drawn.set()


def _done(bar: Bar) -> int:
    match bar.counts:
        case "read":
            return ROWS.read
        case "written":
            return ROWS.written
        case "files":
            return bar.files


class _TerminalView:
    def __init__(self, bar: Bar, began: float) -> None:
        self._progress = rich_progress(BarColumn(), TextColumn(f"{{task.completed:,.0f}} {_WORDS[bar.counts]}"))
        self._task = self._progress.add_task(escape_markup(visible(bar.title)), total=bar.total)
        # Of the operation, not of its bar.
        self._progress.tasks[0].start_time = began
        self._progress.start()

    def update(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total, refresh=True)

    def close(self) -> None:
        self._progress.stop()


class _NotebookView:
    def __init__(self, bar: Bar, began: float) -> None:
        self._began = began
        self._title = escape(visible(bar.title))
        self._words = _WORDS[bar.counts]
        self._library: Any = importlib.import_module("IPython.display")
        self._handle = self._library.display(self._html(0, bar.total), display_id=True)

    def update(self, done: int, total: int | None) -> None:
        self._handle.update(self._html(done, total))

    def close(self) -> None:
        self._handle.update(self._library.HTML(""))

    def _html(self, done: int, total: int | None) -> Any:  # noqa: ANN401 - of a library that is not there
        value = f'value="{min(done, total)}" max="{total}"' if total else ""
        seconds = time.monotonic() - self._began
        return self._library.HTML(
            f"{self._title} <progress {value}></progress> {done:,} {self._words}, {seconds:.0f} s"
        )
