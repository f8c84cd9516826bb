"""Random histories read by streams that end, over restarts, held against what the specification says of bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.property.stream_world import OPS, WRITES, ModelCommit, ModelFile, World, expected

from penstock.format.snapshot import encode_snapshot
from penstock.table.read.travel import NO_WATERMARK
from penstock.table.store import MetadataStore
from penstock.table.stream.offset import Phase

if TYPE_CHECKING:
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import CommitKind

# What is added to the watermark of the snapshot before, or what stands in its place; and the time that has passed.
STAMPS = st.tuples(st.sampled_from([0, 0, 1, 2, 5, None, NO_WATERMARK]), st.sampled_from([0, 1, 3]))
FIRST_WATERMARK = -5
POSITION = "position"
POSITIONS = st.integers(0, 6)
MODES: dict[str, str | None] = {
    "latest-full": None,
    "latest": None,
    "earliest": None,
    "compacted-full": None,
    "from-snapshot": "scan.snapshot-id",
    "from-snapshot-full": "scan.snapshot-id",
    "from-timestamp": "scan.timestamp-millis",
    "from-file-creation-time": "scan.file-creation-time-millis",
    "from-creation-timestamp": "scan.creation-time-millis",
}
# The snapshots' times lie long ago, which is no reason for a commit to expire them.
KEPT = {"snapshot.num-retained.min": "1000"}
BOUNDS = ("scan.bounded.watermark", "penstock.scan.bounded.snapshot-id", "penstock.scan.bounded.timestamp-millis")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """None where there is no such bound."""

    watermark: int | None = None
    last_id: int | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    watermark: int | None
    time: int


def end_of(stamps: list[Stamp], start: tuple[int, Phase], bound: Bound, oldest: int) -> tuple[int, bool]:
    """The last snapshot that a stream may deliver, and whether it ends there: section 2.3 is this."""
    first, phase = start

    def is_beyond(number: int) -> bool:
        watermark, time = stamps[number - 1].watermark, stamps[number - 1].time
        by_watermark = bound.watermark is not None and watermark is not None and watermark > bound.watermark
        return by_watermark or (bound.time is not None and time > bound.time)

    # The full phase is not cut, so its snapshot counts as delivered; changes begin behind the one before them.
    before = first if phase is Phase.FULL else first - 1
    if oldest <= before <= len(stamps) and is_beyond(before):
        return before, True
    for last in range(before, len(stamps) + 1):
        if (bound.last_id is not None and last >= bound.last_id) or (last < len(stamps) and is_beyond(last + 1)):
            return last, True
    return len(stamps), False


@dataclass
class StampedWorld(World):
    """Snapshots have the watermarks and times that the test gives, as other engines and clocks may write them."""

    coming: list[tuple[int | None, int]] = field(default_factory=list)
    stamps: list[Stamp] = field(default_factory=list)
    reached: int = FIRST_WATERMARK
    oldest: int | None = None

    def note(self, kind: CommitKind, added: list[DataFileMeta], gone: set[ModelFile]) -> None:
        super().note(kind, added, gone)
        step, passed = self.coming[len(self.stamps) % len(self.coming)]
        if step is not None and step != NO_WATERMARK:
            self.reached += step
        watermark = step if step in {None, NO_WATERMARK} else self.reached
        time = (self.stamps[-1].time if self.stamps else 0) + passed
        self.stamps.append(Stamp(watermark=watermark, time=time))
        snapshot = replace(self.fresh_store().load_latest_snapshot(), watermark=watermark, time_millis=time)
        self.ref.file_io.write(self.ref.layout.snapshot_path(snapshot.id), encode_snapshot(snapshot))

    def fresh_store(self) -> MetadataStore:
        return MetadataStore(self.ref, sleep=lambda _: None)

    def expire(self, count: int) -> None:
        """Before the stream has begun too, so that nobody knows what was before its start."""
        if self.offset.start is not None:
            super().expire(count)
            return
        for _ in range(min(count, len(self.history) - 1 - self.expired)):
            self.expired += 1
            self.ref.file_io.delete(self.ref.layout.snapshot_path(self.expired))

    def read(self, max_files: int | None, restarts: bool) -> bool:  # noqa: FBT001
        had_begun, had_ended = self.offset.start is not None, self.offset.ended
        moved = super().read(max_files, restarts)
        if not had_begun and self.offset.start is not None:
            self.oldest = self.expired + 1
        assert not (had_ended and moved)
        return moved


@st.composite
def readers(draw: Any) -> dict[str, str]:
    """Options of a stream: a position for modes that have one, and at least one bound."""
    options = {"streaming-read-append-overwrite": str(draw(st.booleans())).lower(), POSITION: str(draw(POSITIONS))}
    for key in draw(st.sets(st.sampled_from(BOUNDS), min_size=1)):
        first, least = (FIRST_WATERMARK, NO_WATERMARK) if key == BOUNDS[0] else (0, 0)
        options[key] = str(draw(st.integers(first - 1, first + 14) | st.sampled_from([least, 2**63 - 1])))
    return options


def bound_of(options: dict[str, str]) -> Bound:
    values = [None if key not in options else int(options[key]) for key in BOUNDS]
    return Bound(watermark=values[0], last_id=values[1], time=values[2])


def expected_rows(history: list[ModelCommit], world: World) -> dict[int, list[int]]:
    start = world.offset.start
    assert start is not None
    rows: dict[int, list[int]] = expected(
        history,
        (start.snapshot_id, start.phase),
        by_value=False,
        overwrites=world.offset.overwrites,
        created_from=world.offset.created_from or 0,
    )
    return rows


@pytest.mark.filterwarnings("ignore::penstock.errors.DataLossWarning")
@pytest.mark.parametrize("mode", MODES)
@given(
    before=st.lists(st.one_of(*WRITES), max_size=15),
    after=st.lists(OPS, min_size=5, max_size=30),
    reader=readers(),
    stamps=st.lists(STAMPS, min_size=1, max_size=12),
    buckets=st.sampled_from([1, 2]),
)
@settings(max_examples=max(12, settings().max_examples // 2))
def test_a_bounded_stream_ends_where_the_specification_says(
    mode: str, *, before: list[Any], after: list[Any], reader: dict[str, str], stamps: list[Any], buckets: int
) -> None:
    # A start that has expired moves to the earliest snapshot that is there.
    options = {"scan.mode": mode, "penstock.fail-on-data-loss": "false", **reader}
    position = options.pop(POSITION)
    if (key := MODES[mode]) is not None:
        options[key] = position
    world = StampedWorld(buckets=buckets, options=options, stored=KEPT, coming=stamps)
    for name, *arguments in [*before, *after]:
        getattr(world, name)(*arguments)
    while world.read(2, restarts=True):
        pass
    if world.offset.start is None:
        event("nobody can say where it begins")
        return
    start = (world.offset.start.snapshot_id, world.offset.start.phase)
    last, ended = end_of(world.stamps, start, bound_of(reader), world.oldest or 1)
    event("ended" if ended else "goes on")
    assert world.offset.ended is ended
    assert world.delivered == expected_rows(world.history[:last], world)
