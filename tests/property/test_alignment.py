"""Random speeds, pauses, deaths and restarts of sources of one group: none starts what is beyond the drift."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.unit.spark.aligned_sources import DRIFT, Clock, Source, sources_of

from penstock.table.stream.align.membership import GroupFiles
from penstock.table.stream.align.progress import MemberState
from penstock.table.stream.offset import decode_offset

COUNT = 3
WHO = st.integers(0, COUNT - 1)
# A source writes snapshots whose watermarks go on by so much; None for one without a watermark.
SPANS = st.lists(st.sampled_from([0, 1, 3, 10, 50, None]), min_size=1, max_size=6)
LIVES = [st.tuples(st.just("write"), WHO, SPANS), st.tuples(st.just("read"), WHO), st.tuples(st.just("read"), WHO)]
OPS = st.one_of(
    *(3 * LIVES),
    st.tuples(st.just("hang"), WHO),
    st.tuples(st.just("start"), WHO),
    st.tuples(st.just("start"), WHO),
    st.tuples(st.just("wait"), st.integers(1, 40)),
)
LIMITS = st.sampled_from([{}, {"scan.max-snapshot.count": "1"}, {"maxFilesPerTrigger": "2"}])


@dataclass
class Stand:
    """A source as the test knows it.

    Attributes:
        marks: watermark of each snapshot.
        beats: whether its process gives signs of life.
    """

    source: Source
    marks: list[int | None] = field(default_factory=list)
    reached: int = 0
    beats: bool = True

    @property
    def next_id(self) -> int:
        position = decode_offset(self.source.offset).position
        return 1 if position is None else position.snapshot_id

    def standing(self, snapshot_id: int) -> int | None:
        """Watermark before a snapshot; batch writers would have inherited it, so it never goes back."""
        known = [mark for mark in self.marks[: snapshot_id - 1] if mark is not None]
        return known[-1] if known else None


@dataclass
class World:
    clock: Clock
    stands: list[Stand]

    @classmethod
    def of(cls, limits: dict[str, str]) -> World:
        clock = Clock()
        options = {"scan.watermark.idle-timeout": "30 s", **limits}
        world = cls(clock, [Stand(source) for source in sources_of(clock, *[1] * COUNT, **options)])
        for stand in world.stands:
            # What the storage shows before anybody begins; else a source that starts last would find others far ahead.
            world.write(world.stands.index(stand), [0])
            stand.source.session.join_group()
        return world

    def tick(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.now += 1
            for stand in self.stands:
                if stand.beats:
                    stand.source.beat()

    def write(self, who: int, spans: list[int | None]) -> None:
        stand = self.stands[who]
        for span in spans:
            stand.reached += span or 0
            mark = None if span is None else stand.reached
            number = len(stand.marks) + 1
            stand.source.table.append(f"0:{stand.source.name}{number}", watermark=mark)
            stand.marks.append(mark)

    def hang(self, who: int) -> None:
        """The process stops for a while, or for ever; nobody can tell which."""
        stand = self.stands[who]
        stand.beats = False
        keeper = stand.source.session._aligned._membership._keeper
        if keeper is not None:
            keeper._stop.set()

    def start(self, who: int) -> None:
        stand = self.stands[who]
        if not stand.beats:
            stand.source.session, stand.beats = stand.source.start(), True
            stand.source.session.join_group()

    def wait(self, seconds: int) -> None:
        self.tick(seconds)

    def read(self, who: int) -> bool:
        stand = self.stands[who]
        if not stand.beats:
            return False
        self.tick(1)  # so that the look is a fresh one
        before = stand.next_id
        own = stand.source.session._aligned._membership.watermark
        moved = stand.source.step()
        self.check(who, own, range(before, stand.next_id))
        return moved

    def check(self, who: int, own: int | None, planned: range) -> None:
        """No snapshot was planned that lies beyond the slowest of those that are there and the drift."""
        membership = self.stands[who].source.session._aligned._membership
        others = [
            sign.member
            for sign in GroupFiles(membership._files._file_io, membership._files._directory).load()
            if sign.member.id != membership._member.id and sign.member.state is MemberState.LIVE
        ]
        for snapshot_id in planned:
            mark = self.stands[who].marks[snapshot_id - 1]
            before = self.stands[who].standing(snapshot_id)
            known = [each for each in (before, own) if each is not None]
            if mark is None or not others:
                continue
            assert all(member.watermark is not None for member in others), (who, snapshot_id, others)
            least = min(member.watermark for member in others if member.watermark is not None)
            assert max(known, default=mark) <= least or mark <= least + DRIFT, (who, snapshot_id, least)


@given(ops=st.lists(OPS, min_size=10, max_size=60), limits=LIMITS)
@settings(deadline=None, max_examples=max(20, settings().max_examples // 2))
def test_no_member_starts_beyond_the_drift_and_all_reach_the_end(
    ops: list[tuple[str, Any]], limits: dict[str, str]
) -> None:
    world = World.of(limits)
    for name, *arguments in ops:
        getattr(world, name)(*arguments)
    # Whoever is alive comes to the end of its table, however the others are: no deadlock.
    alive = [number for number in range(COUNT) if world.stands[number].beats]
    for _ in range(400):
        if all(world.stands[number].next_id > len(world.stands[number].marks) for number in alive):
            break
        for number in alive:
            world.read(number)
    for number in alive:
        stand = world.stands[number]
        assert stand.source.files == [f"{stand.source.name}{snapshot}" for snapshot in range(1, len(stand.marks) + 1)]
    event(f"{len(alive)} of {COUNT} alive")
    for stand in world.stands:
        stand.source.session.close()
