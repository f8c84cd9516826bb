"""What other engines wrote, followed commit by commit: Flink's streams above all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.golden.test_read_tables import LOCATIONS, STATES, as_written, lines
from tests.interop.canonical import dumps, sort_maps
from tests.interop.ours import Stream

from penstock.table.stream.limits import NO_LIMITS, ReadLimits

if TYPE_CHECKING:
    from pathlib import Path

# One file a micro-batch, so that every snapshot is cut wherever it can be.
CUT: Final = ReadLimits(max_files=1)
FLINK_STREAMS: Final = [
    path for path in STATES if LOCATIONS[path.stem].parent.name == "flink131s.db" if lines(path)[0]["snapshot"]
]
# Spark's DELETE and UPDATE of Paimon 0.9 rewrote rows in commits that call themselves APPEND; see tests/interop.
REWRITING: Final = "s09_append"
LIMITS: Final = pytest.mark.parametrize("limits", [NO_LIMITS, CUT], ids=["whole", "cut"])


def states_of(path: Path) -> list[dict[str, Any]]:
    """Snapshots with their rows, ascending."""
    return [state for state in lines(path) if state.get("snapshot")]


def histories() -> list[Path]:
    """Tables of several snapshots that all have the columns of the latest schema."""
    paths = []
    for path in STATES:
        states = states_of(path)
        schemas = sorted(int(each.name.split("-")[1]) for each in (LOCATIONS[path.stem] / "schema").glob("schema-*"))
        if path.stem != REWRITING and len(states) > 1 and {state["schemaId"] for state in states} == {schemas[-1]}:
            paths.append(path)
    return paths


def bag(table: str, rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(dumps(sort_maps(as_written(table, row))) for row in rows)


def by_snapshot(answer: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """Return the rows that each snapshot delivered, in the order of delivery."""
    found: dict[int, list[dict[str, Any]]] = {}
    for plan in answer["plans"]:
        for split in plan["splits"]:
            found.setdefault(split["snapshot"], []).extend(split["rows"])
    return found


def test_the_streams_of_flink_are_there() -> None:
    names = {path.stem for path in FLINK_STREAMS}
    assert {"f_watermark", "f_stream_bucket8", "f_stream_unaware", "f_stream_wo", "f_window_out"} <= names
    assert len(histories()) > 20


@LIMITS
@pytest.mark.parametrize("path", histories(), ids=lambda path: path.stem)
def test_every_append_delivers_what_it_added_and_nothing_else_delivers(path: Path, limits: ReadLimits) -> None:
    states = states_of(path)
    found = by_snapshot(Stream(LOCATIONS[path.stem], {"scan.mode": "earliest"}).follow(limits))
    # What an expired snapshot held is not known, so neither is what the first one left added to it.
    before = None if states[0]["snapshot"] > 1 else bag(path.stem, [])
    for state in states:
        rows = bag(path.stem, state["rows"])
        delivered = bag(path.stem, found.pop(state["snapshot"], []))
        if state["commitKind"] != "APPEND":
            assert not delivered, state["snapshot"]
        elif before is not None:
            assert delivered == rows - before, state["snapshot"]
        before = rows
    assert not found


@LIMITS
@pytest.mark.parametrize("path", FLINK_STREAMS, ids=lambda path: path.stem)
def test_a_full_start_delivers_the_state_and_then_what_follows(path: Path, limits: ReadLimits) -> None:
    states = states_of(path)
    # Every second snapshot as the start; where each micro-batch is one file, every fourth.
    for state in states[:: 2 if limits is NO_LIMITS else 4]:
        start = {"scan.mode": "from-snapshot-full", "scan.snapshot-id": str(state["snapshot"])}
        found = by_snapshot(Stream(LOCATIONS[path.stem], start).follow(limits))
        assert bag(path.stem, found.pop(state["snapshot"], [])) == bag(path.stem, state["rows"])
        later = [row for rows in found.values() for row in rows]
        assert bag(path.stem, later) == bag(path.stem, states[-1]["rows"]) - bag(path.stem, state["rows"])


def test_flinks_watermarks_come_with_the_snapshots_and_nothing_later_is_behind_them() -> None:
    stream = Stream(LOCATIONS["f_watermark"], {"scan.mode": "earliest"})
    found = by_snapshot(stream.follow())
    watermarks = {number: stream.store.load_snapshot(number).watermark or 0 for number in found}
    assert list(watermarks.values()) == list(range(1_704_067_225_000, 1_704_067_435_001, 30_000))
    for number, watermark in watermarks.items():
        later = [row["order_time"] for snapshot, rows in found.items() if snapshot > number for row in rows]
        assert all(time_millis(text) > watermark for text in later)


def time_millis(text: str) -> int:
    """Milliseconds of 1 January 2024, whose first second is 1704067200."""
    date, _, clock = text.partition("T")
    assert date == "2024-01-01"
    hours, minutes, seconds = clock.split(":")
    return 1_704_067_200_000 + (int(hours) * 60 + int(minutes)) * 60_000 + round(float(seconds) * 1000)


@LIMITS
@pytest.mark.parametrize(
    ("bound", "snapshots"),
    [
        (1_704_067_224_999, 0),
        (1_704_067_225_000, 1),
        (1_704_067_314_999, 3),
        (1_704_067_315_000, 4),
        (1_704_067_434_999, 7),
    ],
)
def test_a_bound_ends_behind_the_last_snapshot_that_does_not_pass_it(
    bound: int, snapshots: int, limits: ReadLimits
) -> None:
    options = {"scan.mode": "earliest", "scan.bounded.watermark": str(bound)}
    answer = Stream(LOCATIONS["f_watermark"], options).follow(limits)
    assert [len(rows) for rows in by_snapshot(answer).values()] == [30] * snapshots
    assert answer["ended"]


def test_a_bound_that_no_snapshot_passes_leaves_the_stream_waiting() -> None:
    options = {"scan.mode": "earliest", "scan.bounded.watermark": "1704067435000"}
    answer = Stream(LOCATIONS["f_watermark"], options).follow()
    assert (len(answer["plans"]), answer["ended"]) == (8, False)


def test_a_job_without_watermarks_never_ends_a_bounded_read() -> None:
    options = {"scan.mode": "earliest", "scan.bounded.watermark": "0"}
    answer = Stream(LOCATIONS["f_stream_bucket8"], options).follow()
    assert (len(answer["plans"]), answer["ended"]) == (12, False)
