"""``penstock follow`` as a process of its own: rows while it runs, and the end by a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from penstock import Catalog, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAIN: Final = "from penstock.cli.main import main; main()"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A queue of one bucket with one row."""
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.q", "n BIGINT", options={"bucket": "1", "bucket-key": "n"})
    add(table, 1)
    return table


def add(table: Table, *numbers: int) -> None:
    table.append(pa.table({"n": pa.array(numbers, pa.int64())}))


def follow(table: Table, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, "follow", table.location, "--interval", "50 ms", "--format", "json", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def numbers(process: subprocess.Popen[str], count: int) -> Iterator[int]:
    assert process.stdout is not None
    for _ in range(count):
        yield json.loads(process.stdout.readline())["n"]


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


def test_rows_are_printed_as_they_are_added_and_an_interrupt_ends_it_with_130(table: Table) -> None:
    process = follow(table, "--from", "earliest", "--consumer", "c")
    with process:
        assert list(numbers(process, 1)) == [1]
        for first in (2, 5, 8):
            add(table, *range(first, first + 3))
            assert list(numbers(process, 3)) == [first, first + 1, first + 2]
        assert end(process) == (130, "error: interrupted\n")
    # The lease was given back, and the last snapshot may come again: nobody knows how far it was printed.
    with follow(table, "--once", "--consumer", "c") as again:
        text, errors = again.communicate(timeout=60)
    assert errors == ""
    assert [json.loads(line)["n"] for line in text.splitlines()] in ([], [8, 9, 10])


def test_two_may_follow_but_not_as_one_consumer(table: Table) -> None:
    with follow(table, "--from", "earliest", "--consumer", "c") as first:
        assert list(numbers(first, 1)) == [1]
        with follow(table, "--from", "earliest") as free:
            assert list(numbers(free, 1)) == [1]
            assert end(free)[0] == 130
        with follow(table, "--consumer", "c") as second:
            text, errors = second.communicate(timeout=60)
        assert (second.returncode, text) == (11, "")
        assert f"'consumer-c' is in use by process {first.pid} on " in errors
        first.kill()
    with follow(table, "--consumer", "c", "--once") as third:
        third.communicate(timeout=60)
    assert third.returncode == 0, "the holder is dead: its consumer is free at once"
