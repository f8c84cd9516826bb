"""Progress bars of the Python API: when they appear, what they count, and how they are turned off."""

from __future__ import annotations

import io
import sys
import threading
import time
import types
import uuid
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock
from penstock import Catalog, Table
from penstock.api import handle, progress, reads
from penstock.metrics import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable


class Terminal(io.StringIO):
    """An error stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True

    def output_of(self, operation: Callable[[], object]) -> str:
        """Return what an operation writes to it."""
        start = self.tell()
        with redirect_stderr(self):
            operation()
        return self.getvalue()[start:]


@pytest.fixture
def table() -> Table:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    table = catalog.create_table("t", "k BIGINT, p STRING", partition_by="p")
    table.append(rows(100))
    return table


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0.01)
    monkeypatch.delenv("PENSTOCK_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(handle._Switch, "enabled", None)
    return stream


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting takes a while, so that bars are drawn after it."""
    add = ROWS.add

    def add_slowly(*args: Any, **kwargs: Any) -> None:  # as they are
        add(*args, **kwargs)
        time.sleep(0.15)

    monkeypatch.setattr(ROWS, "add", add_slowly)


def rows(count: int) -> pa.Table:
    return pa.table({"k": pa.array(range(count), pa.int64()), "p": ["a"] * count})


@pytest.mark.usefixtures("slow")
def test_slow_operations_show_what_they_have_done_and_then_nothing(table: Table, terminal: Terminal) -> None:
    shown = {
        "appending to default.t": (lambda: table.append(rows(1_000)), "1,000 rows written"),
        "reading default.t": (table.to_arrow, "rows read"),
        "deleting from default.t": (lambda: table.delete("k = 5"), "rows read"),
        "updating default.t": (lambda: table.update({"k": 3}, "k = 4"), "rows read"),
        "merging into default.t": (lambda: table.merge(rows(1), "k", matched=penstock.MergeDelete()), "rows read"),
        "compacting default.t": (lambda: table.compact(strategy="full"), "rows read"),
    }
    for title, (operation, words) in shown.items():
        output = terminal.output_of(operation)
        assert title in output
        assert words in output
        assert ROWS.location is None


def test_operations_that_count_files_show_them(
    table: Table, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = handle.Bar.report

    def report_slowly(self: handle.Bar, files: int, done_bytes: int | None = None) -> None:
        report(self, files, done_bytes)
        time.sleep(0.1)

    monkeypatch.setattr(handle.Bar, "report", report_slowly)
    for _ in range(3):
        table.overwrite(rows(1))
    output = terminal.output_of(lambda: table.remove_orphan_files(dry_run=True))
    assert "finding orphan files of default.t" in output
    output = terminal.output_of(lambda: table.expire_snapshots(retain_max=1, retain_min=1))
    assert "expiring snapshots of default.t" in output
    seen: list[int] = []
    table.remove_orphan_files(dry_run=True, progress=lambda files, _: seen.append(files))
    assert seen


@pytest.mark.usefixtures("slow")
def test_the_bar_of_a_dataframe_lasts_until_it_is_made(
    table: Table, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, counting = reads.pandas_frame, []

    def convert_slowly(*args: Any) -> Any:
        counting.append((ROWS.location, ROWS.read))
        return convert(*args)

    monkeypatch.setattr(reads, "pandas_frame", convert_slowly)
    monkeypatch.setattr(reads, "_SLOW_ROWS", 100)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 60.0)
    assert "100 rows read" in terminal.output_of(table.to_pandas)
    assert counting == [(table.location, 100)]


@pytest.mark.usefixtures("slow")
def test_one_switch_turns_them_off(table: Table, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PROGRESS", "0")
    assert terminal.output_of(table.to_arrow) == ""
    monkeypatch.delenv("PENSTOCK_PROGRESS")
    penstock.show_progress(enabled=False)
    assert terminal.output_of(table.to_arrow) == ""
    penstock.show_progress(enabled=True)
    assert "rows read" in terminal.output_of(table.to_arrow)


@pytest.mark.usefixtures("slow")
def test_there_are_none_without_a_terminal_in_threads_and_in_tasks_of_spark(
    table: Table, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_in_thread() -> None:
        thread = threading.Thread(target=table.to_arrow)
        thread.start()
        thread.join()

    assert terminal.output_of(read_in_thread) == ""
    task: Any = types.ModuleType("pyspark.taskcontext")
    task.TaskContext = types.SimpleNamespace(get=object)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyspark.taskcontext", task)
        assert terminal.output_of(table.to_arrow) == ""
    with redirect_stderr(io.StringIO()) as plain:
        table.to_arrow()
    assert plain.getvalue() == ""


def test_a_fast_operation_shows_nothing(table: Table, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY_SECONDS", 60.0)
    began = time.monotonic()
    assert terminal.output_of(lambda: table.append(rows(10))) == ""
    assert time.monotonic() - began < 30


@pytest.mark.usefixtures("slow", "terminal")
def test_a_notebook_shows_html_and_removes_it(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def show(html: str, *, display_id: bool) -> object:
        assert display_id
        shown.append(html)
        return types.SimpleNamespace(update=shown.append)

    display: Any = types.ModuleType("IPython.display")
    display.HTML, display.display = str, show
    for name in ("ipykernel", "IPython"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with redirect_stderr(io.StringIO()):
        table.append(rows(1_000))
    assert shown[0].startswith("appending to default.t <progress value=")
    assert 'value="1000" max="1000"></progress> 1,000 rows written' in shown[-2]
    assert shown[-1] == ""


def test_a_display_that_fails_does_not_fail_the_operation(
    table: Table, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_TerminalView", lambda *_args: 1 / 0)
    monkeypatch.setattr(ROWS, "add", lambda *_args, **_kwargs: time.sleep(0.05))
    assert terminal.output_of(lambda: table.append(rows(5))) == ""
    monkeypatch.setattr(reads, "_SLOW_ROWS", 1)
    assert terminal.output_of(table.to_pandas) == ""
