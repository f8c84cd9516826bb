"""Sources of one group without Spark: metadata in memory, and a clock that the test turns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from tests.unit.table.stream.queues import Queue, names

from penstock.spark.stream.session import StreamSession
from penstock.table.stream.offset import decode_offset

FIRST = {"unresolved": True}
STORES = itertools.count()
DRIFT = 20
OPTIONS = {
    "scan.mode": "earliest",
    "scan.watermark.alignment.group": "g",
    "scan.watermark.alignment.max-drift": f"{DRIFT} ms",
}


@dataclass
class Clock:
    """Seconds, which pass in sleeps; ``meanwhile`` runs in each."""

    now: float = 0.0
    meanwhile: Any = None
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        if self.meanwhile is not None:
            self.meanwhile()


@dataclass
class Source:
    """A table whose snapshot n has the watermark n times its speed, and a session that reads it."""

    store: str
    name: str
    clock: Clock
    speed: int = 1
    options: dict[str, str] = field(default_factory=dict)
    offset: dict[str, Any] = field(default_factory=lambda: FIRST)
    files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = Queue(store_name=self.store, table=self.name, buckets=1)
        self.session = self.start()

    def start(self) -> StreamSession:
        ref = self.table.ref.with_options(OPTIONS | self.options)
        return StreamSession(ref, clock=self.clock, sleep=self.clock.sleep)

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            number = len(self.table.snapshots) + 1
            self.table.append(f"0:{self.name}{number}", watermark=number * self.speed)

    def step(self) -> bool:
        """What Spark does in a micro-batch; whether the offset moved."""
        self.beat()
        end = self.session.advance(self.offset)
        moved = end != self.offset
        tasks = self.session.plan(self.offset, end) if moved else ()
        self.files += [name for task in names(tasks) for name in task]
        self.offset = end
        return moved

    def beat(self) -> None:
        """What the thread does, which knows nothing of the test's clock."""
        membership = self.session._aligned._membership
        if membership is not None and membership._is_in:
            membership.renew()

    @property
    def watermark(self) -> int:
        """Of what is delivered, by the snapshots themselves."""
        position = decode_offset(self.offset).position
        return 0 if position is None or position.snapshot_id == 1 else (position.snapshot_id - 1) * self.speed


def sources_of(clock: Clock, *speeds: int, **options: str) -> list[Source]:
    store = f"aligned-{next(STORES)}"
    return [Source(store, "abcdef"[number], clock, speed, options) for number, speed in enumerate(speeds)]


def close(*sources: Source) -> None:
    for source in sources:
        source.session.close()
