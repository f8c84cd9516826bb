"""The rule by which sources of a group wait for each other, and the options that name it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.table.stream.queues import Queue

from penstock.errors import InvalidOptionError, OptionWarning
from penstock.table.process import this_process
from penstock.table.stream.align.membership import check_alignment
from penstock.table.stream.align.progress import AlignmentRule, Allowance, Member, MemberState, allowance_of

GROUP, DRIFT = "scan.watermark.alignment.group", "scan.watermark.alignment.max-drift"
INTERVAL, IDLE = "scan.watermark.alignment.update-interval", "scan.watermark.idle-timeout"
ONE = Member(id="a", table="shop.a", process=this_process(), dead_ms=1)


def rule_of(**options: str) -> AlignmentRule | None:
    return AlignmentRule.of(Queue().ref.with_options(options))


def member(id: str, watermark: int | None, state: MemberState = MemberState.LIVE) -> Member:
    return replace(ONE, id=id, watermark=watermark, state=state)


@pytest.mark.parametrize(
    ("least", "own", "following", "allowed"),
    [
        (100, 90, 110, True),
        (100, 90, 111, True),  # the slowest goes on, however far the next snapshot reaches
        (100, 100, 10_000, True),  # so does one of several
        (100, 101, 110, True),
        (100, 101, 111, False),
        (100, 111, 111, False),
        (100, 111, None, True),  # beyond nothing
        (100, None, 110, True),  # its first rows
        (100, None, 111, False),
        (None, 1, 2, False),  # nobody knows where the other is
        (None, None, 2, False),
        (None, 1, None, True),
        (-50, -60, 1_000, True),
        (-50, -49, -40, True),
        (-50, -49, -39, False),
    ],
)
def test_who_may_plan_a_snapshot(least: int | None, own: int | None, following: int | None, *, allowed: bool) -> None:
    allowance = Allowance(slowest=member("a", least), max_drift_ms=10)
    assert allowance.allows(own, following) is allowed


def test_alone_everything_is_allowed() -> None:
    rule = rule_of(**{GROUP: "g", DRIFT: "0"})
    assert rule is not None
    allowance = allowance_of([], rule)
    assert allowance.slowest is None
    assert allowance.allows(1, 10**15)
    assert allowance_of([member("a", 1, MemberState.IDLE)], rule).allows(2, 10**15)


def test_a_member_without_a_position_is_before_all_and_an_idle_one_does_not_count() -> None:
    rule = rule_of(**{GROUP: "g", DRIFT: "1 s"})
    assert rule is not None
    far, near, idle = member("a", 70), member("b", -70), member("c", -900, MemberState.IDLE)
    assert allowance_of([far, near, idle], rule) == Allowance(slowest=near, max_drift_ms=1_000)
    unknown = member("z", None)
    assert allowance_of([far, unknown, near], rule).slowest is unknown
    assert allowance_of([far, member("y", None, MemberState.IDLE)], rule).slowest is far


def test_a_stream_without_a_group_does_not_wait() -> None:
    assert rule_of() is None
    assert rule_of(**{IDLE: "1 s", INTERVAL: "1 s"}) is None


def test_a_source_is_dead_after_ten_intervals_and_idle_after_a_minute_or_as_configured() -> None:
    rule = rule_of(**{GROUP: "g", DRIFT: "5 s"})
    assert rule is not None
    assert (rule.max_drift_ms, rule.update_interval_ms, rule.idle_ms, rule.dead_ms) == (5_000, 1_000, 60_000, 10_000)
    rule = rule_of(**{GROUP: "g", DRIFT: "5 s", IDLE: "3 s", INTERVAL: "500 ms"})
    assert rule is not None
    assert (rule.idle_ms, rule.dead_ms) == (3_000, 3_000), "whoever is killed releases the others within the idle time"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {GROUP: "g"},
            f"option '{GROUP}' is set and '{DRIFT}' is not: the group names the sources that wait for each other",
        ),
        ({DRIFT: "1 s"}, f"option '{DRIFT}' is set and '{GROUP}' is not: the group names"),
        ({GROUP: "g", DRIFT: "far"}, f"option '{DRIFT}' = 'far': expected a duration such as '10 s'"),
        ({GROUP: "g", DRIFT: "1 s", INTERVAL: "0"}, f"option '{INTERVAL}' = '0': expected 1 ms or more"),
        ({GROUP: "g", DRIFT: "1 s", IDLE: "0 s"}, f"option '{IDLE}' = '0 s': expected 1 ms or more"),
    ],
)
def test_options_that_make_no_group_are_refused_when_the_stream_is_made(options: dict[str, str], message: str) -> None:
    queue = Queue()
    ref = queue.ref.with_options(options)
    with pytest.raises(InvalidOptionError) as caught:
        check_alignment(ref, queue.store)
    assert str(caught.value).startswith(f"table shop.orders: {message}")


@pytest.mark.parametrize("name", ["", " ", ".g", "a/b", "..", "a b", "x" * 101, "a\\b", "a\n", "-a"])
def test_a_group_must_have_a_name_that_a_directory_can_have(name: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        rule_of(**{GROUP: name, DRIFT: "1 s"})
    shown = name.replace("\n", " ")
    assert str(caught.value).startswith(f"table shop.orders: option '{GROUP}' = '{shown}': expected a name of letters")


@pytest.mark.parametrize("name", ["g", "Aufträge-2026.eu_1", "7"])
def test_plain_names_are_taken(name: str) -> None:
    rule = rule_of(**{GROUP: name, DRIFT: "1 s"})
    assert rule is not None
    assert rule.group == name


def test_a_table_that_has_no_time_is_warned_of_when_the_stream_is_made() -> None:
    options = {GROUP: "g", DRIFT: "1 s"}
    queue = Queue()
    check_alignment(queue.ref.with_options(options), queue.store)  # what is not there yet may have one
    queue.append("0:f1")
    with pytest.warns(OptionWarning) as caught:
        check_alignment(queue.ref.with_options(options), queue.store)
    (warning,) = caught
    assert str(warning.message) == (
        "table shop.orders: it declares no watermark that its files give, and its snapshots have none, so "
        "'scan.watermark.alignment.group' has no effect on it: create it with watermark=(<column>, <delay>), or write "
        "it with a stream that has a watermark"
    )
    check_alignment(queue.ref, queue.store)
    queue.append("0:f2", watermark=5)
    check_alignment(queue.ref.with_options(options), queue.store)


def test_a_table_that_declares_a_watermark_needs_none_in_its_snapshots() -> None:
    declared = {
        "schema.watermark.0.rowtime": "id",
        "schema.watermark.0.strategy.expr": "`id`",
        "schema.watermark.0.strategy.data-type": "TIMESTAMP(3)",
    }
    queue = Queue(options=declared)
    queue.append("0:f1")
    check_alignment(queue.ref.with_options({GROUP: "g", DRIFT: "1 s"}), queue.store)
