"""What the live demo compares and shows, without Kafka and Spark."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from scripts.demo.live_numbers import (
    Flight,
    Line,
    check_queue,
    check_snapshots,
    check_windows,
    plan_flights,
    windows_of,
)
from scripts.demo.live_screen import Page, Screen, served

import penstock

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS = "carrier STRING, flight BIGINT, origin STRING, dest STRING, delay DOUBLE, departs TIMESTAMP(3)"


@pytest.fixture(scope="module")
def sent() -> list[Flight]:
    return plan_flights(1)


@pytest.fixture
def catalog(tmp_path: Path) -> penstock.Catalog:
    made = penstock.Catalog(str(tmp_path))
    made.create_database("live")
    return made


@pytest.fixture
def queue(catalog: penstock.Catalog) -> penstock.Table:
    return catalog.create_table("live.departures", _COLUMNS, options={"bucket": "2", "bucket-key": "carrier"})


@pytest.fixture
def hourly(catalog: penstock.Catalog) -> penstock.Table:
    columns = "window_start TIMESTAMP(3), origin STRING, flights BIGINT, delay DOUBLE"
    return catalog.create_table("live.hourly", columns, options={"bucket": "-1"})


def unequal(lines: list[Line]) -> set[str]:
    return {line.what for line in lines if not line.is_equal}


def get(address: str) -> tuple[str, str | None]:
    """Return a page, and after how many seconds a browser is to ask again."""
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - of this machine
        return answer.read().decode(), answer.headers["Refresh"]


def append(table: penstock.Table, rows: list[Flight]) -> None:
    table.append([row._asdict() for row in rows])


def test_a_day_is_what_new_york_s_airports_had_and_its_windows_count_all_of_it(sent: list[Flight]) -> None:
    assert len(sent) == 842
    assert [row.departs for row in sent] == sorted(row.departs for row in sent)
    windows = windows_of(sent)
    assert sum(window.flights for window in windows.values()) == 842
    assert sum(window.delay or 0 for window in windows.values()) == sum(row.delay or 0 for row in sent)


def test_equal_tables_have_equal_numbers(queue: penstock.Table, hourly: penstock.Table, sent: list[Flight]) -> None:
    append(queue, sent[:400])
    append(queue, sent[400:])
    windows = windows_of(sent)
    hourly.append([window._asdict() for window in windows.values()])
    lines = check_queue(queue.to_arrow(), sent) + check_windows(hourly.to_arrow(), sent)
    assert unequal(lines) == set()
    assert lines[0] == Line("rows in the queue", "842", "842")


def test_a_lost_a_doubled_and_a_moved_row_show(queue: penstock.Table, sent: list[Flight]) -> None:
    append(queue, [*sent[1:-1], sent[0], sent[0], sent[-1]])
    assert unequal(check_queue(queue.to_arrow(), sent)) == {
        "rows in the queue",
        "rows that were not sent, or are there twice",
        "carriers at an airport whose order has changed",
    }
    rows = queue.to_arrow()
    assert unequal(check_queue(rows.slice(0, rows.num_rows - 2), sent)) >= {"records that are not in the queue"}


def test_a_window_that_is_wrong_missing_or_there_twice_shows(hourly: penstock.Table, sent: list[Flight]) -> None:
    windows = [*windows_of(sent).values()]
    hourly.append([windows[0]._replace(flights=windows[0].flights + 1)._asdict(), windows[1]._asdict()])
    hourly.append([windows[1]._asdict()])
    assert "windows delivered twice" in unequal(check_windows(hourly.to_arrow(), sent))
    assert "windows with the same flights and delay" in unequal(check_windows(hourly.to_arrow(), sent))
    hourly.truncate()
    hourly.append([window._asdict() for window in windows[1:]])
    assert unequal(check_windows(hourly.to_arrow(), sent)) >= {"windows", "flights in windows"}


def test_a_gap_in_the_snapshots_shows() -> None:
    assert unequal(check_snapshots([1, 2, 3])) == set()
    assert unequal(check_snapshots([1, 2, 4])) == {"gaps in the snapshots of the queue"}


def test_a_browser_gets_the_report_as_it_is_now(
    queue: penstock.Table, hourly: penstock.Table, sent: list[Flight]
) -> None:
    with served(Page(queue, hourly)) as address:
        assert "Nothing was ever committed" in get(address)[0]
        append(queue, sent)
        hourly.append([window._asdict() for window in windows_of(sent).values()])
        page, refresh = get(address)
    assert refresh == "3"
    assert "Nothing was ever committed" not in page
    assert "live.hourly" in page


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_screen_shows_the_phases_and_the_queue(
    queue: penstock.Table, sent: list[Flight], *, is_terminal: bool
) -> None:
    console = Console(force_terminal=is_terminal, width=100, height=48, record=True)
    screen = Screen(console, queue, "http://127.0.0.1:1/")
    screen.add_bar("in the queue", len(sent))
    append(queue, sent)
    with screen.shown():
        screen.say("killed the driver")
        screen.look({"in the queue": len(sent)})
        shown = console.export_text(clear=False)
    assert ("penstock watch live.departures" in shown) == is_terminal
    assert ("842/842" in shown) == is_terminal
    assert "killed the driver" in console.export_text()
