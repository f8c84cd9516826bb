"""The display of the live demo while it runs: a screen in the terminal, and the report in the browser."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.rule import Rule
from rich.text import Text

from penstock.api.history import open_history
from penstock.cli.commands.report import load_result, parse_result
from penstock.cli.draw.page import draw_page
from penstock.cli.draw.terminal import draw_screen
from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.progress import TaskID

    import penstock

RESULT: Final = "live.hourly=window_start,flights,origin"
REFRESH_SECONDS: Final = 3
_LOOK_SECONDS: Final = 1.0
_STORY_LINES: Final = 7


class Page:
    """The report, drawn for each request, so that an open browser page shows changes. Thread-safe."""

    def __init__(self, queue: penstock.Table, windows: penstock.Table) -> None:
        self._windows = windows
        self._readers = [open_history(table) for table in (queue, windows)]
        self._lock = threading.Lock()

    def draw(self) -> str:
        """Return the page as it is now."""
        with self._lock:
            return draw_page(
                [reader.load() for reader in self._readers], [load_result(self._windows, parse_result(RESULT))]
            )


@contextmanager
def served(page: Page) -> Iterator[str]:
    """Serve a page to browsers on this machine; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                body = page.draw().encode()
                status = 200 if self.path == "/" else 404
            except TableStoreError as error:
                body, status = str(error).encode(), 503
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Refresh", str(REFRESH_SECONDS))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the terminal free."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="report", daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


class Screen:
    """The log so far, the progress of each step, and what ``penstock watch`` shows of the queue."""

    def __init__(self, console: Console, queue: penstock.Table, address: str) -> None:
        self._console = console
        self._history = open_history(queue)
        self._name = queue.name
        self._address = address
        self._story: list[Text] = []
        self._progress = Progress(TextColumn("{task.description:<22}"), BarColumn(40), MofNCompleteColumn())
        self._bars: dict[str, TaskID] = {}
        self._started = time.monotonic()
        self._live: Live | None = None
        self._looked = 0.0

    def add_bar(self, name: str, total: int) -> None:
        """Show the progress of a step."""
        self._bars[name] = self._progress.add_task(name, total=total)

    def say(self, text: str, style: str = "") -> None:
        """Add a line to the log."""
        line = Text.assemble((f"{time.monotonic() - self._started:5.0f} s  ", "dim"), (text, style))
        self._story.append(line)
        if self._live is None:
            self._console.print(line, soft_wrap=True)

    def look(self, done: Mapping[str, int]) -> None:
        """Update the progress of the steps, and the queue once a second."""
        for name, count in done.items():
            self._progress.update(self._bars[name], completed=count)
        if self._live is not None and time.monotonic() - self._looked > _LOOK_SECONDS:
            self._live.update(self._draw(), refresh=True)
            self._looked = time.monotonic()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the screen while something runs, if the output is a terminal; print the log afterwards."""
        if not self._console.is_terminal:
            yield
            return
        try:
            with Live(console=self._console, screen=True, auto_refresh=False) as self._live:
                yield
        finally:
            self._live = None
            for line in self._story:
                self._console.print(line, soft_wrap=True)

    def _draw(self) -> Group:
        width, height = self._console.size
        top = [
            Text.assemble(("The report in a browser: ", "bold"), (self._address, "cyan underline")),
            *self._story[-_STORY_LINES:],
            self._progress,
            Rule(f"penstock watch {self._name}", style="dim"),
        ]
        used = len(top) + len(self._bars)
        return Group(*top, draw_screen(self._history.load(), width=width, height=height - used))
