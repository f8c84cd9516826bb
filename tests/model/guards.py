"""What the protocol's safety rests on, each to be taken away by itself."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias


class Guard(StrEnum):
    """A check or an order of steps in the code that the model can do without.

    The values say what the code does while the guard is there.
    """

    PUT_IF_ABSENT = "a snapshot is created only where none has its id"
    OWN_PUT_RECOGNIZED = "after a put without an answer, the snapshot that is there is compared with ours"
    FILES_KEPT_IF_UNKNOWN = "a commit whose outcome is unknown deletes no file"
    LATE_PUT_FOUND = "a put that succeeds below snapshots which others made meanwhile is taken back"
    BASE_COMPARED = "a put is in time while its base is there, not another snapshot of the base's id"
    LATEST_KEPT = "a snapshot that no other follows is not taken back while its base has expired"
    ANNOUNCED_ONLY = "a base has expired only where an expiration has announced it; else it was rolled back"
    FENCE_PUT = "a rollback puts a snapshot with the target's content before it deletes any"
    FENCE_FIRST = "the first snapshot that is rolled back is replaced, the others go in the order of their ids"
    TARGET_STANDS = "a rollback whose target another one has taken back since it was planned changes nothing"
    ROLLBACK_MARKED = "a rollback makes a mark while it runs, and nothing expires meanwhile"
    KEPT_AGAIN = "expiration deletes only if the first snapshot that it keeps, and its announcement, still stand"
    BASE_IN_LINE = "nobody builds on a snapshot that does not follow the one before it, where ids were rolled back"
    KEPT_IN_LINE = "nothing expires below a snapshot that does not follow the one before it"
    HINT_CHECKED = "LATEST counts only while no snapshot follows it"
    LISTED_AGAIN = "a listing of snapshots that have all expired since is made again"
    NUMBERS_AT_COMMIT = "sequence numbers are given out at commit"
    INPUTS_LIVE = "a compaction lands only while all its inputs are live"
    REPLAY_FOUND = "a batch is looked for before it is written"
    REPLAY_FOUND_AGAIN = "a batch is looked for again after each lost race"
    CUT_SEARCH_REFUSED = "a batch is refused where snapshots that might hold it have expired"
    LEASE_EPOCHS = "whoever takes a lease makes a file of its own, and the highest epoch counts"
    LEASE_PUT_IF_ABSENT = "the file of an epoch is created only where there is none"
    LATE_EPOCH_GIVEN_BACK = "an epoch that was free because a higher one is there is given back"
    LEASE_CHECKED = "a batch that cannot be looked for any more is committed only while the lease is held"
    LEASE_LOOKED_AT = "a driver whose batch another one has committed goes on only while it holds the lease"
    TAKEN_LEASE_UNTRUSTED = "a lease taken from a driver that may be alive counts after an own commit only"
    RETAIN_MIN = "expiration keeps the latest snapshot"
    CONSUMERS_SPARED = "expiration keeps the snapshots that a consumer has not read"
    POSITION_AFTER_ROWS = "a consumer notes its position after the rows are delivered"
    TAGS_SPARED = "expiration keeps what tags read"
    EXPIRATION_ANNOUNCED = "expiration says how far it goes, then looks for new tags, then deletes"
    TAG_CHECKED = "a tag is deleted again where an expiration has said that it goes beyond"
    ORPHAN_AGE = "orphan removal takes old files only"
    ORPHAN_TAGS = "orphan removal looks at tags"
    ORPHAN_SNAPSHOTS = "orphan removal looks at all snapshots"
    DELETIONS_ONLY = "expiration deletes data files that a delta deleted, no others"


Guards: TypeAlias = "frozenset[Guard]"

ALL: Guards = frozenset(Guard)
