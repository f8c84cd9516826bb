"""How the members of a group see each other on storage."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.table.stream.queues import Queue

from penstock import Catalog
from penstock.errors import StorageError, UnsupportedFeatureError
from penstock.io.memory import MemoryFileIO
from penstock.table.process import this_process
from penstock.table.stream.align.membership import GroupFiles, Membership, open_membership
from penstock.table.stream.align.progress import AlignmentRule, Allowance, MemberState
from penstock.testing.file_io import FailingFileIO, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.io.file_io import FileIO
    from penstock.table.stream.align.progress import Member

RULE = AlignmentRule(group="g", max_drift_ms=10, update_interval_ms=1_000, idle_ms=60_000, dead_ms=10_000, path=None)
NAMES = {"scan.watermark.alignment.group": "g", "scan.watermark.alignment.max-drift": "10 s"}
DIRECTORY = "w/.penstock/alignment/g"


@dataclass
class Clock:
    """Seconds of one machine, and ms of the storage."""

    now: float = 5_000.0
    storage_millis: int = 1_000_000

    def __call__(self) -> float:
        return self.now

    def stamp(self) -> int:
        return self.storage_millis

    def go(self, seconds: float) -> None:
        self.now += seconds
        self.storage_millis += round(seconds * 1000)


@dataclass
class Group:
    """Members in one process, by hand: nobody gives signs of life unless told."""

    clock: Clock
    file_io: FileIO

    def member(self, table: str, **rule: Any) -> Membership:
        files = GroupFiles(self.file_io, DIRECTORY)
        return Membership(files, replace(RULE, **rule), table, clock=self.clock, keeps=False)

    def files(self) -> list[str]:
        return [status.name for status in self.file_io.list(DIRECTORY)]

    def on_disk(self) -> dict[str, Any]:
        found = [json.loads(self.file_io.read(status.path)) for status in self.file_io.list(DIRECTORY)]
        return {each["table"]: each for each in found}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def group(clock: Clock) -> Group:
    return Group(clock, MemoryFileIO(str(uuid.uuid4()), clock=clock.stamp))


def slowest(member: Membership) -> tuple[str, int | None] | None:
    """Who holds a member back, as it stands now."""
    found = member.look(is_fresh=True).slowest
    return None if found is None else (found.table, found.watermark)


def stand(member: Membership, watermark: int | None, **more: bool) -> None:
    member.report(watermark, **{"has_rows": True, "is_held": False, **more})


def test_members_see_the_positions_of_the_others(group: Group) -> None:
    a, b, c = (group.member(name) for name in "abc")
    assert slowest(a) is None
    assert slowest(b) == ("a", None), "whoever has joined is waited for before it can tell"
    stand(a, 30)
    stand(b, 20)
    assert slowest(c) == ("b", 20)
    assert slowest(a) == ("c", None)
    stand(c, 25)
    assert (slowest(a), slowest(b)) == (("b", 20), ("c", 25))
    assert len(group.files()) == 3, "each has one file, whatever it says"


def test_looks_are_as_old_as_the_update_interval_and_watermarks_only_grow(group: Group, clock: Clock) -> None:
    a, b = group.member("a"), group.member("b")
    stand(b, 20)
    b.join()
    assert a.look().slowest == replace(b._member)
    stand(b, 50)
    assert a.look().slowest != b._member
    clock.go(1)
    assert a.look().slowest == b._member
    stand(b, 40)
    stand(b, None)
    assert slowest(a) == ("b", 50)


def test_what_did_not_change_is_not_written_again(group: Group) -> None:
    a = group.member("a")
    a.join()
    stand(a, 20)
    before = group.on_disk()["a"]
    for _ in range(3):
        stand(a, 20, has_rows=False)
        stand(a, 20, has_rows=False, is_held=True)
    assert group.on_disk()["a"] == before
    stand(a, 20)
    assert group.on_disk()["a"] == {**before, "moves": 2, "beat": 3}


def test_a_source_without_rows_is_idle_after_a_while_and_not_at_once(group: Group, clock: Clock) -> None:
    a, b = group.member("a"), group.member("b")
    stand(a, 30)
    stand(b, 20)
    a.join()
    b.join()
    stand(b, 20, has_rows=False)
    for _ in range(7):
        clock.go(8.5)  # the last look may be long ago
        b.renew()
        assert slowest(a) == ("b", 20)
    clock.go(0.5)
    b.renew()
    assert group.on_disk()["b"]["state"] == "idle"
    assert slowest(a) is None
    stand(b, 21)
    assert slowest(a) == ("b", 21), "it is waited for again as soon as there are rows"


def test_a_long_micro_batch_and_rows_that_must_wait_make_no_member_idle(group: Group, clock: Clock) -> None:
    a, b = group.member("a"), group.member("b")
    a.join()
    b.join()
    for is_held in (False, True):
        stand(b, 20, has_rows=not is_held, is_held=is_held)
        for _ in range(30):
            clock.go(9)
            b.renew()
        assert slowest(a) == ("b", 20)


def test_a_member_of_unknown_position_is_awaited_no_longer_than_one_without_rows(
    group: Group, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = group.member("a"), group.member("b")
    b.join()
    for _ in range(8):
        assert slowest(a) == ("b", None)
        clock.go(7.5)
        stand(b, None)
        b.renew()
    assert slowest(a) is None
    (record,) = caplog.records
    assert record.getMessage() == (
        "table b: it declares no watermark that its files give, and its snapshots have none, so its stream "
        "neither waits for others of group 'g' nor is it waited for: create it with watermark=(<column>, <delay>), or "
        "write it with a stream that has a watermark"
    )


def test_a_member_that_falls_silent_is_dead_and_its_file_goes(group: Group, clock: Clock) -> None:
    a, b, c = (group.member(name) for name in "abc")
    stand(b, 20)
    stand(c, 40)
    for each in (a, b, c):
        each.join()
    assert slowest(a) == ("b", 20)
    clock.go(10)
    c.renew()
    assert slowest(a) == ("b", 20), "no longer than it said itself"
    clock.go(0.1)
    assert slowest(a) == ("c", 40)
    assert len(group.files()) == 2
    b.renew()
    assert slowest(a) == ("b", 20), "it was not dead, only stopped for a while"


def test_at_first_the_age_of_a_file_counts(group: Group, clock: Clock) -> None:
    b = group.member("b")
    stand(b, 20)
    b.join()
    clock.go(10.1)
    assert slowest(group.member("a")) is None
    assert group.files() == [f"member-{each}" for each in [group.on_disk()["a"]["id"]]]


def test_at_first_sight_of_a_storage_without_times_a_member_gets_its_time(clock: Clock) -> None:
    group = Group(clock, MemoryFileIO(str(uuid.uuid4()), clock=_no_time))
    b = group.member("b")
    stand(b, 20)
    b.join()
    clock.go(100)
    a = group.member("a")
    assert slowest(a) == ("b", 20)
    clock.go(10.1)
    assert slowest(a) is None


def _no_time() -> int:
    return 0


def test_clocks_that_differ_end_no_member(group: Group, clock: Clock) -> None:
    a = group.member("a")
    ahead = Clock(now=9_999_999.0)
    b = Membership(GroupFiles(group.file_io, DIRECTORY), RULE, "b", clock=ahead, keeps=False)
    stand(b, 20)
    b.join()
    for _ in range(5):
        assert slowest(a) == ("b", 20)
        clock.go(6)
        ahead.go(6)
        b.renew()


def test_a_process_of_this_machine_that_is_gone_is_dead_at_once(group: Group) -> None:
    a, b = group.member("a"), group.member("b")
    b._member = replace(b._member, process=replace(this_process(), started=1))
    stand(b, 20)
    b.join()
    assert slowest(a) is None
    assert len(group.files()) == 1


def test_a_member_that_leaves_blocks_no_other_and_may_come_back(group: Group) -> None:
    a, b = group.member("a"), group.member("b")
    stand(b, 20)
    b.join()
    assert slowest(a) == ("b", 20)
    b.leave()
    b.leave()
    assert slowest(a) is None
    assert group.on_disk().keys() == {"a"}
    b.look(is_fresh=True)
    assert slowest(a) is None
    stand(b, 30)
    assert slowest(a) == ("b", 30)


def test_files_that_cannot_be_read_block_no_member(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    a = group.member("a")
    a.join()
    newer = {**group.on_disk()["a"], "version": 2, "id": "x"}
    odd = {**group.on_disk()["a"], "state": "asleep", "id": "y"}
    for name, data in (("x", json.dumps(newer)), ("y", json.dumps(odd)), ("z", "{")):
        group.file_io.write(f"{DIRECTORY}/member-{name}", data.encode())
    group.file_io.write(f"{DIRECTORY}/notes.txt", b"")
    assert slowest(a) is None
    assert slowest(a) is None
    messages = [record.getMessage() for record in caplog.records]
    assert [
        f"no stream waits for who wrote {DIRECTORY}/member-{name}" in each
        for name, each in zip("xyz", messages, strict=True)
    ] == [True] * 3
    assert "was written by another version of Penstock" in messages[0]
    assert "has 'asleep' under 'state'" in messages[1]


def test_lost_positions_are_written_again_but_no_member_joins_unnoticed(clock: Clock) -> None:
    failing = FailingFileIO(MemoryFileIO(str(uuid.uuid4()), clock=clock.stamp), Fault.REFUSED, at=1)
    group = Group(clock, failing)
    a = group.member("a")
    with pytest.raises(StorageError):
        a.join()
    a.join()
    failing.at = failing.call_count + 1
    stand(a, 20)
    assert group.on_disk()["a"]["watermark"] is None
    a.renew()
    assert group.on_disk()["a"]["watermark"] == 20


def test_no_member_continues_if_the_positions_of_the_others_are_unknown(clock: Clock) -> None:
    failing = FailingFileIO(MemoryFileIO(str(uuid.uuid4()), clock=clock.stamp), Fault.REFUSED, at=2)
    a = Group(clock, failing).member("a")
    with pytest.raises(StorageError, match="list"):
        a.look()
    assert a.look().slowest is None


def test_a_thread_renews_the_membership_between_polls_and_ends_with_the_member() -> None:
    file_io = MemoryFileIO(str(uuid.uuid4()))
    group = Group(Clock(), file_io)
    member = Membership(GroupFiles(file_io, DIRECTORY), replace(RULE, dead_ms=30), "a")
    member.join()
    began = time.monotonic()
    while group.on_disk()["a"]["beat"] < 4:
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    assert member._keeper is not None
    thread = member._keeper._thread
    assert thread.daemon
    member.leave()
    assert not thread.is_alive()
    assert group.files() == []


def place_of(location: str, **options: str) -> str:
    ref = replace(Queue().ref, location=location).with_options({**NAMES, **options})
    rule = AlignmentRule.of(ref)
    assert rule is not None
    return GroupFiles.of(ref, rule)._directory


def test_groups_of_a_warehouse_are_stored_there_and_others_next_to_their_table_or_where_configured() -> None:
    assert place_of("/data/w/shop.db/orders") == "/data/w/.penstock/alignment/g"
    assert place_of("/data/w/other.db/clicks") == "/data/w/.penstock/alignment/g"
    assert place_of("/data/tables/orders") == "/data/tables/.penstock/alignment/g"
    path = {"penstock.scan.watermark.alignment.path": "file:///shared/place/"}
    assert place_of("/data/w/shop.db/orders", **path) == "/shared/place/.penstock/alignment/g"
    with pytest.raises(UnsupportedFeatureError, match="storage 'ftp' is not built in"):
        place_of("/data/w/shop.db/orders", **{"penstock.scan.watermark.alignment.path": "ftp://x/y"})


def test_nothing_else_sees_the_files_of_a_group(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, t TIMESTAMP(3)", watermark=("t", None))
    member = open_membership(table._ref.with_options(NAMES))
    assert member is not None
    member.join()
    try:
        assert len(list((tmp_path / ".penstock" / "alignment" / "g").iterdir())) == 1
        assert (catalog.list_databases(), catalog.list_tables("d")) == (("d",), ("t",))
        assert table.inspect.fsck().findings == ()
        found = table.remove_orphan_files(older_than=time.time_ns() // 1_000_000, dry_run=False, allow_recent=True)
        assert (found.orphans, found.young) == ((), 0)
        catalog.drop_database("d", cascade=True)
        assert len(list((tmp_path / ".penstock" / "alignment" / "g").iterdir())) == 1
    finally:
        member.leave()


def test_a_member_is_a_value() -> None:
    member: Member = Membership(GroupFiles(MemoryFileIO("x"), DIRECTORY), RULE, "t")._member
    assert member.state is MemberState.LIVE
    assert hash(replace(member, watermark=1)) == hash(replace(member, watermark=1))
    assert Allowance(slowest=member, max_drift_ms=1) == Allowance(slowest=member, max_drift_ms=1)
