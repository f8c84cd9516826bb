"""Which snapshots expire, by ids, times and rules alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidOptionError
from penstock.table.expire.plan import ExpirationPlan, ExpireRules, RetainerKind, plan_expiration

if TYPE_CHECKING:
    from collections.abc import Mapping

MANY = 2**31 - 1


def plan(
    earliest: int,
    latest: int,
    rules: ExpireRules,
    *,
    consumers: Mapping[str, int] | None = None,
    times: Mapping[int, int] | None = None,
) -> ExpirationPlan:
    """Plan where snapshot n was committed at n * 10 unless ``times`` says something else."""
    return plan_expiration(
        earliest=earliest,
        latest=latest,
        rules=rules,
        consumers=consumers or {},
        time_of=lambda each: (times or {}).get(each, each * 10),
    )


def rules(**given: int) -> ExpireRules:
    return ExpireRules(**{"retain_min": 1, "retain_max": MANY, "cutoff_millis": 10**9, **given})


def holders(found: ExpirationPlan) -> set[tuple[str, int | None]]:
    return {(hold.name, hold.snapshot_id) for hold in found.holds}


def test_the_newest_snapshots_stay_whatever_their_age() -> None:
    found = plan(1, 20, rules(retain_min=10))
    assert (found.first, found.end) == (1, 11)
    assert holders(found) == {("snapshot.num-retained.min", 11)}


def test_a_snapshot_goes_when_its_successor_is_old_enough_too() -> None:
    # At 55, the table was what snapshot 5 says: that state stays readable.
    found = plan(1, 20, rules(cutoff_millis=55))
    assert (found.first, found.end) == (1, 5)
    assert ("snapshot.time-retained", 5) in holders(found)


def test_a_successor_of_exactly_the_age_keeps_the_snapshot() -> None:
    assert plan(1, 20, rules(cutoff_millis=60)).end == 5
    assert plan(1, 20, rules(cutoff_millis=61)).end == 6


def test_too_many_go_whatever_their_age() -> None:
    assert plan(1, 20, rules(retain_max=5, cutoff_millis=0)).end == 16


def test_a_snapshot_that_is_not_there_keeps_none() -> None:
    found = plan_expiration(
        earliest=2, latest=9, rules=rules(cutoff_millis=55), consumers={}, time_of=lambda n: n * 10 if n > 5 else None
    )
    assert (found.first, found.end) == (2, 5)


def test_what_a_consumer_has_not_read_stays() -> None:
    found = plan(1, 20, rules(retain_max=5), consumers={"slow": 4, "fast": 19, "done": 21})
    assert (found.first, found.end) == (1, 4)
    assert {hold.name for hold in found.holds if hold.kind is RetainerKind.CONSUMER} == {"slow", "fast"}
    assert ("slow", 4) in holders(found)


def test_a_consumer_behind_the_earliest_keeps_everything() -> None:
    found = plan(5, 20, rules(), consumers={"lost": 2})
    assert (found.first, found.end) == (5, 5)


def test_only_so_many_go_at_once() -> None:
    found = plan(3, 100, rules(max_deletes=50))
    assert (found.first, found.end) == (3, 53)
    assert ("snapshot.expire.limit", 53) in holders(found)


@pytest.mark.parametrize("given", [{"retain_min": 0}, {"retain_min": 3, "retain_max": 2}, {"max_deletes": 0}])
def test_rules_that_contradict_each_other_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(InvalidOptionError, match=r"db\.t: cannot keep at least"):
        rules(**given).check("db.t")


@given(
    ids=st.tuples(st.integers(1, 9), st.integers(1, 30)),
    retain=st.tuples(st.integers(1, 12), st.integers(0, 12)),
    cutoff=st.integers(0, 400),
    limit=st.none() | st.integers(1, 9),
    consumers=st.dictionaries(st.sampled_from("abc"), st.integers(1, 45)),
)
def test_what_expires_is_old_enough_or_too_many_and_has_no_holder(
    ids: tuple[int, int], retain: tuple[int, int], cutoff: int, limit: int | None, consumers: dict[str, int]
) -> None:
    earliest, latest = ids[0], ids[0] + ids[1] - 1
    retain_min, more = retain
    given_rules = ExpireRules(
        retain_min=retain_min, retain_max=retain_min + more, cutoff_millis=cutoff, max_deletes=limit
    )
    found = plan(earliest, latest, given_rules, consumers=consumers)
    assert found.first == earliest <= found.end <= latest
    for each in range(earliest, found.end):
        assert latest - each >= retain_min
        assert all(each < next_id for next_id in consumers.values())
        assert limit is None or each < earliest + limit
        assert latest - each >= retain_min + more or (each + 1) * 10 < cutoff
    # And all of those go that may.
    stays = found.end
    assert (
        latest - stays < retain_min
        or any(stays >= next_id for next_id in consumers.values())
        or (limit is not None and stays >= earliest + limit)
        or (latest - stays < retain_min + more and (stays + 1) * 10 >= cutoff)
    )
