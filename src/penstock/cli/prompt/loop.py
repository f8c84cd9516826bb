"""Statements read from a terminal and run one after another in one session.

The terminal's keys, the file of earlier statements, and what Ctrl-C interrupts.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.shortcuts import clear

from penstock.api.lazy import lazy_spark
from penstock.cli.output.render import note, print_text, say
from penstock.cli.output.spark_failure import failure_of
from penstock.cli.output.sql_output import print_outcome, wait_while
from penstock.cli.prompt.words import WordCompleter
from penstock.dialect.parse.reader import is_whole, split_script
from penstock.dialect.session import run_script
from penstock.dialect.state import SqlState
from penstock.errors import TableStoreError
from penstock.printable import mask_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent
    from pyspark.sql import SparkSession

    from penstock.api.catalog import Catalog
    from penstock.cli.output.sql_output import Query
    from penstock.cli.session import Session

_INTERRUPTED: Final = "interrupted"
_HELP: Final = """\
Statements end with ; and may have several lines; docs/sql.md describes them.
  Tab        completes words, names of databases, tables and columns, and keys of options
  Up, Ctrl-R an earlier statement; one that begins with a space is not remembered
  Ctrl-C     clears what was typed, or interrupts what runs; a second one ends it at once
  help; clear; quit; (Ctrl-D)"""


def run_prompt(session: Session, catalog: Catalog, spark: SparkSession | None, *, show_all: bool) -> None:
    """Read statements and run them until the user leaves.

    Errors are printed, and the prompt continues. Queries that an ``INSERT`` has started run in the background, and are
    stopped at the end.
    """
    if spark is not None:
        # What matters is an error of a statement, too.
        spark.sparkContext.setLogLevel("OFF")
    state = SqlState()
    with state.attached(catalog, spark):
        _Prompt(session, state, show_all=show_all).run()


class _Prompt:
    """Reads and runs statements. Not thread-safe."""

    def __init__(self, session: Session, state: SqlState, *, show_all: bool) -> None:
        self._session = session
        self._state = state
        self._show_all = show_all
        self._started: list[Query] = []
        self._asking: PromptSession[str] = PromptSession(
            history=open_history(),
            completer=WordCompleter(state),
            complete_while_typing=False,
            complete_in_thread=True,
            auto_suggest=AutoSuggestFromHistory(),
            key_bindings=prompt_keys(),
            multiline=True,
            prompt_continuation=_continuation,
        )

    def run(self) -> None:
        with_spark = "" if self._state.spark is None else ", with Spark"
        note(self._session, f"SQL on {self._session.warehouse}{with_spark}; statements end with ; and help; says more")
        try:
            while True:
                self._print_ended()
                try:
                    text = self._asking.prompt(ANSI(f"\x1b[1m{self._state.database}>\x1b[0m "))
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    return
                try:
                    if take_interrupt(self._asking.app.input):
                        say(_INTERRUPTED)
                    elif not self._answer(text):
                        return
                except KeyboardInterrupt:  # between the prompt and the statement
                    say(_INTERRUPTED)
        finally:
            self._stop()

    def _answer(self, text: str) -> bool:
        """Run a command or a statement; return False to leave."""
        match command_of(text):
            case "quit" | "exit":
                return False
            case "help":
                print_text(_HELP)
            case "clear":
                clear()
            case _:
                self._run(text)
        return True

    def _run(self, text: str) -> None:
        with Interrupts(self._state.spark) as interrupts:

            def wait(queries: Sequence[Query]) -> None:
                with interrupts.waited_for():
                    wait_while(queries, interrupts.event)

            try:
                outcomes = () if interrupts.event.is_set() else run_script(self._state, text)
                for outcome in outcomes:
                    query = print_outcome(self._session, outcome, show_all=self._show_all, wait=wait)
                    if query is not None:
                        self._started.append(query)
                    if interrupts.event.is_set():
                        break
            except KeyboardInterrupt:
                interrupts.event.set()
            except Exception as error:  # noqa: BLE001 - an error of a statement must not end the prompt
                if not interrupts.event.is_set():
                    self._print_error(error, text)
            sys.stdout.flush()
            if interrupts.event.is_set():
                say(_INTERRUPTED)

    def _print_error(self, error: Exception, text: str) -> None:
        if self._session.debug:
            traceback.print_exception(error)
        if isinstance(error, TableStoreError):
            if _is_script(text):
                for each in getattr(error, "__notes__", ()):
                    say(each)
            say(f"error: {error}")
            return
        say(f"error: {failure_of(error) or f'{type(error).__name__}: {error}'}")

    def _print_ended(self) -> None:
        """Print which background queries have ended."""
        for query in [query for query in self._started if not query.isActive]:
            self._started.remove(query)
            error: Any = query.exception()
            why = "" if error is None else f": {failure_of(error)}"
            say(f"query {query.name or query.id} has {'ended' if error is None else 'failed'}{why}")

    def _stop(self) -> None:
        running = [query for query in self._started if query.isActive]
        if running:
            note(self._session, f"stopping {len(running)} streaming inserts")
        for query in running:
            query.stop()


def _is_script(text: str) -> bool:
    try:
        return len(split_script(text)) > 1
    except TableStoreError:
        return False


def _continuation(width: int, _line: int, _wrap_count: int) -> str:
    return "> ".rjust(width)


# Commands of the prompt, which need no semicolon.
_COMMANDS: Final = frozenset({"quit", "exit", "help", "clear"})


def prompt_keys() -> KeyBindings:
    """Return the bindings: Enter runs a text that ends with a semicolon, and begins a new line otherwise."""
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # accepts the completion
        elif runs_at_once(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", "enter")
    def _meta_enter(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


def runs_at_once(text: str) -> bool:
    """Whether Enter runs a text: it is empty, a command, or all of its statements have ended."""
    return not text.strip() or command_of(text) is not None or is_whole(text)


def command_of(text: str) -> str | None:
    """Return the prompt command in a text; None if it is not one."""
    word = text.strip().rstrip(";").strip().lower()
    return word if word in _COMMANDS else None


def take_interrupt(given: Input) -> bool:
    """Whether Ctrl-C was typed right after the statement that the prompt returned; other keys stay for the next one.

    A slow machine may read both at once, or the Ctrl-C may arrive before the terminal turns it into signals again: then
    it is a key, which the next prompt would read.
    """
    typed = [*get_typeahead(given), *given.read_keys()]
    is_interrupt = bool(typed) and typed[0].key == Keys.ControlC
    store_typeahead(given, typed[1:] if is_interrupt else typed)
    return is_interrupt


_NAME: Final = "sql_history"


def open_history() -> History:
    """Return the statements of earlier sessions, or only of this one if the directory is not writable.

    Source:
        The XDG Base Directory Specification: ``$XDG_STATE_HOME``, else ``~/.local/state``.
    """
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "penstock"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / _NAME
        # Statements may hold secrets.
        path.touch(mode=0o600)
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return _StatementHistory(str(path))


class _StatementHistory(FileHistory):
    """Keeps statements, except the prompt's commands, those with secrets, and those that begin with a space."""

    def store_string(self, string: str) -> None:
        """Add a statement to the file."""
        if not string.startswith(" ") and command_of(string) is None and mask_text(string) == string:
            super().store_string(string)


_CANCEL_AGAIN_SECONDS: Final = 0.5


class Interrupts:
    """Ends one statement on Ctrl-C. For the main thread.

    Without Spark it raises KeyboardInterrupt in the statement. With Spark it cancels the jobs, and the statement then
    fails: an exception during a call to the JVM would leave the response to be read by the next call. A second Ctrl-C
    raises it anyway.

    Attributes:
        event: set by an interrupt, which may have come before the block began.
    """

    def __init__(self, spark: SparkSession | None) -> None:
        self.event = threading.Event()
        self._ended = threading.Event()
        self._spark = spark
        self._cancel: Callable[[], None] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        # Installed before and removed after the jobs' tag: an interrupt while the JVM sets the tag only sets the event.
        before = signal.signal(signal.SIGINT, self._interrupt)
        self._stack.callback(signal.signal, signal.SIGINT, before)
        try:
            if self._spark is not None:
                self._cancel = self._stack.enter_context(lazy_spark.cancellable_jobs(self._spark))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._stack.close()

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Only set the event while the block runs: the block checks it, and stops the queries itself."""
        before, self._cancel = self._cancel, lambda: None
        try:
            yield
        finally:
            self._cancel = before

    def _interrupt(self, _number: int, _frame: object) -> None:
        cancel = self._cancel
        if (self._spark is None and cancel is None) or self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()
        if cancel is None:
            return
        # In another thread: the main thread may be in the middle of a call to the JVM.
        threading.Thread(target=self._cancel_until_ended, args=(cancel,), daemon=True).start()

    def _cancel_until_ended(self, cancel: Callable[[], None]) -> None:
        """Cancel repeatedly: Spark cancels only jobs that have begun, and the first may begin after the call."""
        cancel()
        while not self._ended.wait(_CANCEL_AGAIN_SECONDS):
            cancel()
