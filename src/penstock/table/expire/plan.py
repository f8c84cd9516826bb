"""Selection of the snapshots to expire, computed only from ids, times and rules.

Source:
    Paimon 2.0 ``core:table/ExpireSnapshotsImpl.java``; docs/spec/commit.md section 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class RetainerKind(StrEnum):
    """Kind of a retainer."""

    OPTION = "option"
    CONSUMER = "consumer"
    TAG = "tag"
    BRANCH = "branch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retainer:
    """An option, consumer, tag or branch that keeps snapshots, or files of expired snapshots.

    Attributes:
        name: key of the option, id of the consumer, name of the tag or branch.
        snapshot_id: the first snapshot that it keeps; None for a tag or branch, which keep files.
        files: number of data files that are kept only because of it.
    """

    kind: RetainerKind
    name: str
    snapshot_id: int | None = None
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireRules:
    """Retention rules.

    Attributes:
        retain_min: number of newest snapshots that are kept whatever their age.
        retain_max: number of newest snapshots that may be kept; older ones expire whatever their age.
        cutoff_millis: a snapshot expires if its successor was committed before this, ms since 1970-01-01 UTC. So every
            state that the table had since then can be read.
        max_deletes: most snapshots to expire at once; None for no limit.
    """

    retain_min: int
    retain_max: int
    cutoff_millis: int
    max_deletes: int | None = None

    def check(self, table: str) -> None:
        """Check that the rules do not contradict each other. Raises ``InvalidOptionError``."""
        limit = self.max_deletes
        if self.retain_min < 1 or self.retain_max < self.retain_min or (limit is not None and limit < 1):
            raise InvalidOptionError(
                f"table {table}: cannot keep at least {self.retain_min} and at most {self.retain_max} snapshots"
                f"{'' if limit is None else f' and delete {limit} at once'}: 'snapshot.num-retained.min' is 1 or more "
                "and not above 'snapshot.num-retained.max', the limit is 1 or more; retain_min and retain_max replace "
                "these options"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpirationPlan:
    """Snapshots that expire: ids from ``first`` up to but without ``end``; none if the two are equal.

    Attributes:
        holds: what keeps ``end`` and the snapshots after it.
        next_cutoff_millis: age keeps ``end`` until the cutoff is later than this; None if age does not keep it.
    """

    first: int
    end: int
    holds: tuple[Retainer, ...] = ()
    next_cutoff_millis: int | None = None


def plan_expiration(
    *,
    earliest: int,
    latest: int,
    rules: ExpireRules,
    consumers: Mapping[str, int],
    time_of: Callable[[int], int | None],
) -> ExpirationPlan:
    """Return which snapshots expire.

    Args:
        consumers: consumer id to the first snapshot that the consumer has not read.
        time_of: returns the commit time of a snapshot in ms since 1970-01-01 UTC, None if it does not exist. Called
            from the oldest snapshot on, until one is young enough.
    """
    newest_to_go = latest - rules.retain_min + 1
    bounds = [Retainer(kind=RetainerKind.OPTION, name="snapshot.num-retained.min", snapshot_id=newest_to_go)]
    bounds += [
        Retainer(kind=RetainerKind.CONSUMER, name=name, snapshot_id=next_id)
        for name, next_id in sorted(consumers.items())
        if next_id < newest_to_go
    ]
    if rules.max_deletes is not None and earliest + rules.max_deletes < newest_to_go:
        limit = earliest + rules.max_deletes
        bounds.append(Retainer(kind=RetainerKind.OPTION, name="snapshot.expire.limit", snapshot_id=limit))
    end = min(hold.snapshot_id for hold in bounds if hold.snapshot_id is not None)
    next_cutoff_millis = None
    # Snapshots below this range expire whatever their age.
    for snapshot_id in range(max(latest - rules.retain_max + 1, earliest), end):
        successor_millis = time_of(snapshot_id + 1)
        if successor_millis is not None and successor_millis >= rules.cutoff_millis:
            bounds.append(Retainer(kind=RetainerKind.OPTION, name="snapshot.time-retained", snapshot_id=snapshot_id))
            end, next_cutoff_millis = snapshot_id, successor_millis
            break
    return ExpirationPlan(
        first=earliest,
        end=max(earliest, end),
        holds=tuple(replace(hold, snapshot_id=max(earliest, hold.snapshot_id or 0)) for hold in bounds),
        next_cutoff_millis=next_cutoff_millis,
    )
