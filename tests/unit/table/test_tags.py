"""Tags, and the periods of automatic tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.commit_tables import append, committer, new_table, on, rows
from tests.unit.table.metadata_tables import MemoryTable

from penstock.clocks import local_now
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError
from penstock.format.snapshot import ROLLED_BACK_TO
from penstock.options import TagOptions
from penstock.table.expire.tags import delete_tag
from penstock.table.store import MetadataStore
from penstock.table.tags import create_tag, first_since, first_with_watermark, tag_periods
from penstock.testing.file_io import FailingFileIO, Fault, Operation

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


def with_snapshots(count: int = 3) -> TableRef:
    ref = new_table()
    for number in range(1, count + 1):
        committer(ref).commit(append(rows(number)))
    return ref


def test_a_tag_names_the_latest_snapshot_or_the_one_given() -> None:
    store = MetadataStore(with_snapshots())
    create_tag(store, "now")
    create_tag(store, "then", snapshot_id=1)
    assert store.list_tags() == ("now", "then")
    assert store.load_tag("now").snapshot == store.load_snapshot(3)
    assert store.load_tag("then").snapshot == store.load_snapshot(1)
    assert store.load_tag("now").retained_seconds is None


def test_a_tag_outlives_its_snapshot() -> None:
    ref = with_snapshots()
    store = MetadataStore(ref)
    snapshot = store.load_snapshot(1)
    create_tag(store, "then", snapshot_id=1)
    ref.file_io.delete(ref.layout.snapshot_path(1))
    assert MetadataStore(ref).load_tag("then").snapshot == snapshot


def test_a_tag_that_ends_stores_its_time_and_the_local_clock() -> None:
    store = MetadataStore(with_snapshots())
    now = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=UTC)
    tag = create_tag(store, "week", time_retained="7 d", now=lambda: now)
    assert tag.retained_seconds == Decimal(7 * 86_400)
    assert tag.create_time == 1_774_751_400_123_456_000
    assert store.load_tag("week") == tag


def test_the_local_clock_is_that_of_the_wall() -> None:
    wall = datetime.now().astimezone().replace(tzinfo=UTC)
    assert abs((local_now() - wall).total_seconds()) < 5


def test_a_tag_is_not_replaced() -> None:
    store = MetadataStore(with_snapshots())
    create_tag(store, "mine", snapshot_id=1)
    with pytest.raises(AlreadyExistsError, match=r"db\.t has a tag 'mine' already; delete it first"):
        create_tag(store, "mine", snapshot_id=2)
    assert store.load_tag("mine").snapshot.id == 1


@pytest.mark.parametrize("name", ["", "  ", "a/b", "..", ".", "12"])
def test_names_that_are_blank_paths_or_numbers_are_refused(name: str) -> None:
    store = MetadataStore(with_snapshots(1))
    with pytest.raises(InvalidOptionError, match=r"table db\.t: "):
        create_tag(store, name)
    assert store.list_tags() == ()


def test_there_must_be_something_to_tag() -> None:
    with pytest.raises(NotFoundError, match="no snapshot to tag; append to it first"):
        create_tag(MetadataStore(new_table()), "t")
    with pytest.raises(NotFoundError, match=r"snapshot 9 does not exist yet"):
        create_tag(MetadataStore(with_snapshots()), "t", snapshot_id=9)


def test_a_deleted_tag_is_gone_and_its_name_is_free() -> None:
    ref = with_snapshots()
    store = MetadataStore(ref)
    create_tag(store, "t", snapshot_id=2)
    assert delete_tag(ref, store, "t") == store.load_snapshot(2)
    assert store.list_tags() == ()
    with pytest.raises(NotFoundError, match=r"no tag 't'; it has no tags"):
        delete_tag(ref, store, "t")
    create_tag(store, "t", snapshot_id=3)
    assert store.load_tag("t").snapshot.id == 3


def test_a_damaged_tag_is_deleted() -> None:
    ref = with_snapshots()
    store = MetadataStore(ref)
    create_tag(store, "t", snapshot_id=2)
    ref.file_io.write(store.layout.tag_path("t"), b"{")
    assert delete_tag(ref, store, "t") is None
    assert store.list_tags() == ()


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REFUSED])
def test_a_tag_whose_answer_was_lost_is_found_to_be_there(fault: Fault) -> None:
    ref = with_snapshots()
    counting = FailingFileIO(ref.file_io)
    create_tag(MetadataStore(on(ref, counting)), "first")
    at = [call.operation for call in counting.calls].index(Operation.PUT_IF_ABSENT) + 1
    store = MetadataStore(on(ref, FailingFileIO(ref.file_io, fault, at)))
    if fault is Fault.ANSWER_LOST:
        create_tag(store, "second")
    else:
        with pytest.raises(StorageError, match="made to fail"):
            create_tag(store, "second")
    assert ref.file_io.exists(ref.layout.tag_path("second")) is (fault is Fault.ANSWER_LOST)


@pytest.mark.parametrize(("millis", "expected"), [(500, 1), (3000, 3), (3001, 7), (7000, 7), (7001, 8)])
def test_the_first_snapshot_since_a_time_may_come_after_a_gap_of_ids(millis: int, expected: int) -> None:
    table = MemoryTable()
    for number in range(1, 10):
        properties = ((ROLLED_BACK_TO, "2"),) if number == 7 else ()
        table.commit(watermark=1000 * number, properties=properties)
    for gone in (4, 5, 6):
        table.expire(gone)
    assert first_since(table.store, millis).id == expected
    assert first_with_watermark(table.store, millis).id == expected


at = datetime.fromisoformat


def options(**keys: str) -> TagOptions:
    return TagOptions.parse({f"tag.{key.replace('_', '-')}": value for key, value in keys.items()})


DAILY, HOURLY = options(), options(creation_period="hourly")
EVERY = [
    options(creation_period=period, period_formatter=formatter)
    for period in ("daily", "hourly", "two-hours")
    for formatter in ("with_dashes", "without_dashes", "without_dashes_and_spaces")
] + [options(creation_period_duration="15 min")]


@pytest.mark.parametrize(
    ("given_options", "name"),
    [
        (DAILY, "2023-07-18"),
        (options(period_formatter="without_dashes"), "20230718"),
        (options(period_formatter="without_dashes_and_spaces"), "20230718"),
        (HOURLY, "2023-07-19 11"),
        (options(creation_period="hourly", period_formatter="without_dashes"), "20230719 11"),
        (options(creation_period="hourly", period_formatter="without_dashes_and_spaces"), "2023071911"),
        (options(creation_period="two-hours", period_formatter="without_dashes"), "2023-07-19 10"),
        (options(creation_period_duration="5 min"), "202307191205"),
        (options(creation_period="hourly", creation_period_duration="1 d"), "202307180000"),
    ],
)
def test_the_period_that_has_ended_has_the_name_that_java_gives_it(given_options: TagOptions, name: str) -> None:
    periods = tag_periods(given_options, "db.t")
    time = at("2023-07-19T12:12:19.123000")
    assert periods.name_of(periods.last_ended(time)) == name


@given(time=st.datetimes(min_value=at("1970-01-03"), max_value=at("9998-01-01")), periods=st.sampled_from(EVERY))
def test_a_name_leads_back_to_its_period(time: datetime, periods: TagOptions) -> None:
    found = tag_periods(periods, "db.t")
    ended = found.last_ended(time)
    assert found.beginning_of(found.name_of(ended)) == ended
    assert timedelta(0) < time - ended < 2 * found.length or time - ended == found.length


@pytest.mark.parametrize(
    ("given_options", "name", "beginning"),
    [
        (DAILY, "2024-02-29", at("2024-02-29")),
        (DAILY, "2024-02-29 10", at("2024-02-29")),  # an hourly one counts as a day's
        (DAILY, "2023-02-29", None),
        (DAILY, "2024-2-9", None),
        (DAILY, "", None),
        (DAILY, " 2024-02-29", None),
        (DAILY, "before-the-sale", None),
        (DAILY, "٢٠٢٤-٠٢-٢٩", None),
        (HOURLY, "2024-02-29 23", at("2024-02-29T23:00:00")),
        (HOURLY, "2024-02-29 24", None),
        (HOURLY, "2024-02-29", None),
        (HOURLY, "2024-02-29 10 x", None),
    ],
)
def test_which_names_are_those_of_periods(given_options: TagOptions, name: str, beginning: datetime | None) -> None:
    assert tag_periods(given_options, "db.t").beginning_of(name) == beginning


def test_times_before_1970_are_cut_off_towards_it_as_java_divides() -> None:
    periods = tag_periods(DAILY, "db.t")
    assert periods.last_ended(at("1969-12-31T12:00:00")) == at("1969-12-31")
    assert periods.last_ended(at("1970-01-01T12:00:00")) == at("1969-12-31")


def test_a_delay_has_to_be_shorter_than_a_period() -> None:
    tag_periods(options(creation_period="hourly", creation_delay="59 min"), "db.t")
    with pytest.raises(
        InvalidOptionError, match=r"table db.t: option 'tag.creation-delay' = '1 h': expected less .* 1 h"
    ):
        tag_periods(options(creation_period="hourly", creation_delay="60 min"), "db.t")
    with pytest.raises(InvalidOptionError, match="'0 ms': expected less than the period of the tags, 0 ms"):
        tag_periods(options(creation_period_duration="0 s"), "db.t")
