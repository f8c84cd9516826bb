"""What is explored: tables with some actors, small enough that every interleaving is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.model.calls import Call
from tests.model.guards import Guard
from tests.model.invariants import FIRST_POSITION, INVARIANTS
from tests.model.programs.cleaning import append_and_expire, create_tag, expire, remove_orphans
from tests.model.programs.consumers import consume
from tests.model.programs.leases import batch_user, go_on, hold_lease, leased_batches, leased_stream
from tests.model.programs.rollback import roll_back, roll_back_as_planned
from tests.model.programs.writers import append, append_on, compact, read_table, stream, write_batch
from tests.model.values import (
    CHECKPOINT,
    CONSUMER,
    LEASE,
    QUERY,
    Holding,
    LeaseFile,
    first_content,
    first_snapshot,
    merged_content,
)
from tests.model.views import System

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tests.model.guards import Guards

ROWS: Final = (("first",), ("second",))

HELD: Final = LeaseFile(1, "old")
TAKEN: Final = LeaseFile(2, "new")
LEASED: Final = (*first_content(*ROWS), (f"{LEASE}1", HELD), (f"{CHECKPOINT}x", 2))
"""A driver has the query's lease, and has noted down that it is about to commit a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Actors beside each other on one table.

    Attributes:
        actors: name, program and its arguments behind the guards.
        shows: guards without which one of its invariants breaks.
        is_deep: takes longer than the tests that always run may.
    """

    name: str
    actors: tuple[tuple[object, ...], ...]
    shows: tuple[Guard, ...] = ()
    crashes: int = 0
    lost_answers: int = 0
    content: tuple[tuple[str, Hashable], ...] = first_content(*ROWS)
    is_deep: bool = False

    def system(self, guards: Guards) -> System:
        """Return what is to be searched."""
        if not any(program in {roll_back, roll_back_as_planned} for _, program, *_ in self.actors):
            guards -= {
                Guard.BASE_IN_LINE,
                Guard.KEPT_IN_LINE,
                Guard.KEPT_AGAIN,
                Guard.ROLLBACK_MARKED,
            }  # which look at what rollbacks leave
        if not any(program is consume for _, program, *_ in self.actors):
            guards -= {Guard.CONSUMERS_SPARED}
        return System(
            content=self.content,
            actors=tuple(
                (name, Call(program, (guards, *args)))  # type: ignore[arg-type,misc]
                for name, program, *args in self.actors
            ),
            invariants=tuple(INVARIANTS.items()),
            crashes=self.crashes,
            lost_answers=self.lost_answers,
        )


SCENARIOS: Final = (
    Scenario(
        name="two drivers of one query, an append, an expiration",
        actors=(
            ("old", stream, "x", "old"),
            ("new", stream, "x", "new"),
            ("a", append, ("a",)),
            ("expire", expire),
        ),
        is_deep=True,
    ),
    Scenario(
        name="a driver that was paused, the batch made by another, an append, an expiration",
        actors=(("old", write_batch, "x", "old", 2), ("a", append, ("a",)), ("expire", expire)),
        content=first_content(*ROWS, ("x",), user=QUERY),
        shows=(Guard.CUT_SEARCH_REFUSED,),
    ),
    Scenario(
        name="a driver that has lost its lease, the one that has taken it, an append and then an expiration",
        actors=(
            ("old", leased_batches, ("x",), "old", 2, Holding(HELD, is_trusted=True)),
            ("new", leased_batches, ("x",), "new", 2, Holding(TAKEN, is_trusted=False, is_watched=True)),
            ("a", append_and_expire, "a"),
        ),
        content=(*first_content(*ROWS), (f"{LEASE}2", TAKEN)),
        shows=(Guard.LEASE_CHECKED, Guard.TAKEN_LEASE_UNTRUSTED),
    ),
    Scenario(
        name="a driver whose lease another one takes over, an append and then an expiration",
        actors=(
            ("old", leased_batches, ("x",), "old", 2, Holding(HELD, is_trusted=True, is_watched=True)),
            ("new", leased_stream, ("x",), "new"),
            ("a", append_and_expire, "a"),
        ),
        content=LEASED,
        is_deep=True,
    ),
    Scenario(
        name="a driver whose lease another one takes over, an append, an expiration",
        actors=(
            ("old", leased_batches, ("x",), "old", 2, Holding(HELD, is_trusted=True, is_watched=True)),
            ("new", leased_stream, ("x",), "new"),
            ("a", append, ("a",)),
            ("expire", expire),
        ),
        content=LEASED,
        is_deep=True,
    ),
    Scenario(
        name="two drivers after the new one has committed a batch, an append and then an expiration",
        actors=(
            ("old", go_on, ("y",), "old", 3, Holding(HELD, is_trusted=True)),
            ("new", go_on, ("y",), "new", 3, Holding(TAKEN, is_trusted=True, is_watched=True)),
            ("a", append_and_expire, "a"),
        ),
        content=(*first_content(*ROWS, ("x",), user=batch_user("x")), (f"{LEASE}2", TAKEN)),
        shows=(Guard.LEASE_LOOKED_AT,),
    ),
    Scenario(
        name="three drivers that want one lease",
        actors=(("a", hold_lease, "a"), ("b", hold_lease, "b"), ("c", hold_lease, "c")),
        content=LEASED,
        shows=(Guard.LEASE_EPOCHS, Guard.LEASE_PUT_IF_ABSENT, Guard.LATE_EPOCH_GIVEN_BACK),
        crashes=1,
    ),
    Scenario(
        name="a reader, two appends, an expiration",
        actors=(("read", read_table), ("a", append, ("a", "b")), ("expire", expire)),
        shows=(Guard.LISTED_AGAIN,),
    ),
    Scenario(
        name="a consumer, an append, an expiration, one crash",
        actors=(("read", consume, 2), ("a", append, ("a",)), ("expire", expire)),
        content=(*first_content(*ROWS), (CONSUMER, FIRST_POSITION)),
        shows=(Guard.CONSUMERS_SPARED, Guard.POSITION_AFTER_ROWS),
        crashes=1,
    ),
    Scenario(
        name="a consumer that is killed and started again, an append, an expiration",
        actors=(("read", consume, 2), ("again", consume, 2), ("a", append, ("a",)), ("expire", expire)),
        content=(*first_content(*ROWS), (CONSUMER, FIRST_POSITION)),
        crashes=1,
        is_deep=True,
    ),
    Scenario(
        name="orphan removal, an append, an expiration, a tag",
        actors=(("orphans", remove_orphans), ("a", append, ("a",)), ("expire", expire)),
        content=merged_content(),
        shows=(Guard.TAGS_SPARED, Guard.ORPHAN_AGE, Guard.ORPHAN_TAGS),
    ),
    Scenario(
        name="a tag of an old snapshot, two expirations",
        actors=(("tag", create_tag, "new", 2), ("expire", expire), ("again", expire)),
        content=merged_content(),
        shows=(Guard.EXPIRATION_ANNOUNCED, Guard.TAG_CHECKED),
    ),
    Scenario(
        name="a tag of an old snapshot, two expirations, an append",
        actors=(
            ("tag", create_tag, "new", 2),
            ("expire", expire),
            ("again", expire),
            ("a", append, ("a",)),
        ),
        content=merged_content(),
        is_deep=True,
    ),
    Scenario(
        name="orphan removal, an append",
        actors=(("orphans", remove_orphans), ("a", append, ("a",))),
        content=merged_content(),
        shows=(Guard.ORPHAN_SNAPSHOTS,),
        crashes=1,
    ),
    Scenario(
        name="two drivers of one query, an append",
        actors=(("old", stream, "x", "old"), ("new", stream, "x", "new"), ("a", append, ("a",))),
        shows=(Guard.REPLAY_FOUND, Guard.REPLAY_FOUND_AGAIN),
        crashes=1,
    ),
    Scenario(
        name="two appends, an expiration",
        actors=(("a", append, ("a",)), ("b", append, ("b",)), ("expire", expire)),
        shows=(
            Guard.PUT_IF_ABSENT,
            Guard.HINT_CHECKED,
            Guard.NUMBERS_AT_COMMIT,
            Guard.RETAIN_MIN,
            Guard.DELETIONS_ONLY,
        ),
    ),
    Scenario(
        name="three appends by two writers, an expiration",
        actors=(("a", append, ("a",)), ("b", append, ("b", "c")), ("expire", expire)),
        shows=(Guard.LATE_PUT_FOUND, Guard.LATEST_KEPT),
    ),
    Scenario(
        name="two paused appends on different bases, an expiration",
        actors=(
            ("a", append_on, "a", first_snapshot(1)),
            ("b", append_on, "b", first_snapshot(2)),
            ("expire", expire),
        ),
        content=first_content(*ROWS, ("third",), ("fourth",)),
        shows=(Guard.BASE_COMPARED,),
    ),
    Scenario(
        name="a rollback, two appends",
        actors=(("roll", roll_back, 1), ("a", append, ("a",)), ("b", append, ("b",))),
        content=first_content(*ROWS, ("third",)),
        shows=(Guard.BASE_IN_LINE, Guard.FENCE_PUT, Guard.FENCE_FIRST, Guard.ANNOUNCED_ONLY),
        is_deep=True,
    ),
    Scenario(
        name="a rollback, an append, an expiration",
        actors=(("roll", roll_back, 1), ("a", append, ("a",)), ("expire", expire)),
        content=first_content(*ROWS, ("third",)),
        shows=(Guard.KEPT_IN_LINE, Guard.ROLLBACK_MARKED, Guard.KEPT_AGAIN),
        is_deep=True,
    ),
    Scenario(
        name="a rollback, an append",
        actors=(("roll", roll_back, 1), ("a", append, ("a",))),
        content=first_content(*ROWS, ("third",)),
    ),
    Scenario(
        name="two rollbacks to one snapshot",
        actors=(("roll", roll_back, 1), ("again", roll_back, 1, "other")),
        content=first_content(*ROWS, ("third",)),
    ),
    Scenario(
        name="a rollback that was planned before another one, an append",
        actors=(("roll", roll_back_as_planned, 2, 1), ("a", append, ("a", "b"))),
        content=first_content(*ROWS, ("third",)),
        shows=(Guard.TARGET_STANDS,),
    ),
    Scenario(
        name="two appends, answers of puts are lost",
        actors=(("a", append, ("a",)), ("b", append, ("b",))),
        lost_answers=2,
        shows=(Guard.OWN_PUT_RECOGNIZED, Guard.FILES_KEPT_IF_UNKNOWN),
    ),
    Scenario(
        name="an append, a compaction, an expiration, one crash",
        actors=(("a", append, ("a",)), ("compact", compact, "compact"), ("expire", expire)),
        crashes=1,
    ),
    Scenario(
        name="an append, two compactions",
        actors=(("a", append, ("a",)), ("compact", compact, "compact"), ("other", compact, "other")),
        shows=(Guard.INPUTS_LIVE,),
    ),
    Scenario(
        name="two appends, a compaction, an expiration",
        actors=(
            ("a", append, ("a",)),
            ("b", append, ("b",)),
            ("compact", compact, "compact"),
            ("expire", expire),
        ),
        is_deep=True,
    ),
)
