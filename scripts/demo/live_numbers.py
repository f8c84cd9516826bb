"""The numbers of the live demo: what is sent, and what the tables must contain then, computed from that alone."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import pyarrow.compute as pc
from scripts.demo.flights import load_flights

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

AIRPORTS: Final = ("EWR", "JFK", "LGA")


class Flight(NamedTuple):
    """A record, as it is sent and as a row of the queue."""

    carrier: str
    flight: int
    origin: str
    dest: str
    delay: float | None
    departs: datetime

    def encode(self) -> bytes:
        """Return the record's value: JSON as in Flink's tables."""
        return json.dumps(self._asdict() | {"departs": f"{self.departs:%Y-%m-%d %H:%M:%S}"}).encode()

    @property
    def partition(self) -> int:
        """The partition of the topic: one for each airport, so that the flights of an airport stay in their order."""
        return AIRPORTS.index(self.origin)


class Window(NamedTuple):
    """An hour at an airport: the number of departures, and the minutes of delay where known."""

    window_start: datetime
    origin: str
    flights: int
    delay: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """One number of the report."""

    what: str
    found: str
    expected: str

    @property
    def is_equal(self) -> bool:
        """Whether the tables agree with what was sent."""
        return self.found == self.expected


Order: TypeAlias = dict[tuple[str, str], list[Flight]]


def plan_flights(days: int) -> list[Flight]:
    """Return the flights of January's first days in order of departure, in which they are sent."""
    flights = load_flights()
    january = flights.filter((pc.field("month") == 1) & (pc.field("day") <= days)).to_pylist()
    rows = [
        Flight(
            *(row[name] for name in ("carrier", "flight", "origin", "dest", "dep_delay")),
            # A wall-clock time, like Flink's TIMESTAMP(3).
            datetime(row["year"], row["month"], row["day"], row["hour"], row["minute"]),  # noqa: DTZ001
        )
        for row in january
    ]
    return sorted(rows, key=lambda row: row.departs)


def windows_of(sent: Iterable[Flight]) -> dict[tuple[datetime, str], Window]:
    """Count what was sent by hour and airport."""
    groups: dict[tuple[datetime, str], list[Flight]] = {}
    for row in sent:
        groups.setdefault((row.departs.replace(minute=0), row.origin), []).append(row)
    found = {}
    for (start, origin), rows in groups.items():
        delays = [row.delay for row in rows if row.delay is not None]
        found[start, origin] = Window(start, origin, len(rows), sum(delays) if delays else None)
    return found


def check_queue(queue: pa.Table, sent: Sequence[Flight]) -> list[Line]:
    """Compare the queue, read in its order, with what was sent."""
    rows = [Flight(**row) for row in queue.select(list(Flight._fields)).to_pylist()]
    missing, extra = Counter(sent) - Counter(rows), Counter(rows) - Counter(sent)
    found = in_order(rows)
    wrong = sum(1 for key, flights in in_order(sent).items() if found.get(key) != flights)
    return [
        Line("rows in the queue", f"{len(rows):,}", f"{len(sent):,}"),
        Line("records that are not in the queue", f"{missing.total():,}", "0"),
        Line("rows that were not sent, or are there twice", f"{extra.total():,}", "0"),
        Line("carriers at an airport whose order has changed", f"{wrong:,}", "0"),
    ]


def in_order(rows: Iterable[Flight]) -> Order:
    """Return the flights of each carrier at each airport in the order in which they are given."""
    found: Order = {}
    for row in rows:
        found.setdefault((row.carrier, row.origin), []).append(row)
    return found


def check_windows(hourly: pa.Table, sent: Sequence[Flight]) -> list[Line]:
    """Compare the windows that the stream has delivered with those of what was sent."""
    rows = [Window(**row) for row in hourly.select(list(Window._fields)).to_pylist()]
    wanted = windows_of(sent)
    starts = {(row.window_start, row.origin) for row in rows}
    equal = sum(1 for row in rows if wanted.get((row.window_start, row.origin)) == row)
    return [
        Line("windows", f"{len(rows):,}", f"{len(wanted):,}"),
        Line("windows delivered twice", f"{len(rows) - len(starts):,}", "0"),
        Line("windows with the same flights and delay", f"{equal:,}", f"{len(wanted):,}"),
        Line("flights in windows", f"{sum(row.flights for row in rows):,}", f"{len(sent):,}"),
        Line(
            "minutes of delay in windows",
            f"{sum(row.delay or 0 for row in rows):,.0f}",
            f"{sum(row.delay or 0 for row in sent):,.0f}",
        ),
    ]


def check_snapshots(ids: Sequence[int]) -> list[Line]:
    """Check the ids of a queue's snapshots for gaps, oldest first."""
    gaps = sum(1 for before, after in pairwise(ids) if after != before + 1)
    return [Line("gaps in the snapshots of the queue", f"{gaps:,}", "0")]
