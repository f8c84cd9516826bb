"""Statements read from a terminal and run one after another in one session."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.shortcuts import clear

from penstock.cli.output.render import note, print_text, say
from penstock.cli.output.spark_failure import failure_of
from penstock.cli.output.sql_output import print_outcome, wait_while
from penstock.cli.prompt.history import open_history
from penstock.cli.prompt.interrupts import Interrupts
from penstock.cli.prompt.keys import command_of, prompt_keys, take_interrupt
from penstock.cli.prompt.words import WordCompleter
from penstock.dialect.parse.script import split_script
from penstock.dialect.run.lazy import run_script_late
from penstock.dialect.state import SqlState
from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
                outcomes = () if interrupts.event.is_set() else run_script_late(self._state, text)
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
