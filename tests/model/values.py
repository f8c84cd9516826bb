"""What the modelled storage holds, and what actors say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tests.model.views import Content

LATEST: Final = "snapshot/LATEST"
EARLIEST: Final = "snapshot/EARLIEST"
SNAPSHOTS: Final = "snapshot/snapshot-"
ROLLED_BACK: Final = "schema/rolled-back-"
"""Then the ids that a rollback left to be used again: the first and the last one that a late put may take."""

EXPIRING: Final = ".penstock/expiring"
ROLLING_BACK: Final = ".penstock/rolling-back-"
"""Marks a rollback while it runs."""

TAGS: Final = "tag/tag-"
CONSUMER: Final = "consumer/consumer-reader"
"""Holds the id of the snapshot that the consumer reads next."""

DATA: Final = "bucket-0/data-"
CHECKPOINT: Final = "checkpoint/"
QUERY: Final = "query"
LEASE: Final = ".penstock/leases/query-"
CLAIMED_AT: Final = 2
"""Latest snapshot when the query was started for the first time."""

LOST_RACES: Final = "lost every race"
METADATA: Final = "manifest/manifest-"


@dataclass(frozen=True, slots=True)
class Entry:
    """A data file as metadata name it.

    Attributes:
        number: sequence number of its first row; rows are read in this order.
    """

    path: str
    rows: tuple[str, ...]
    number: int


@dataclass(frozen=True, slots=True)
class File:
    """A data file, or a metadata file of one snapshot.

    Attributes:
        is_old: older than orphan removal asks for.
        live: of a metadata file: what the snapshot holds.
        deleted: of a metadata file: what its delta deleted.
        base: of a metadata file: what it was built on held, as its base list says.
    """

    is_old: bool = False
    live: tuple[Entry, ...] = ()
    deleted: tuple[Entry, ...] = ()
    base: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot file.

    Attributes:
        uid: drawn for each attempt; names the metadata file too.
        parent: uid of the snapshot that it was built on. No such thing is on storage: for invariants alone.
        rolled_back_to: of the fence of a rollback: its target.
        line: uids of what it holds, its own last; for invariants alone.
        abandoned: uids of what was rolled back before it; for invariants alone.
    """

    id: int
    uid: str
    parent: str | None
    user: str
    rolled_back_to: int | None = None
    line: tuple[str, ...] = ()
    abandoned: frozenset[str] = frozenset()

    @property
    def metadata(self) -> str:
        """Path of its metadata file, which stands for its lists and manifests."""
        return f"{METADATA}{self.uid}"


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """The file of a lease.

    Attributes:
        token: of who has taken it.
    """

    epoch: int
    token: str


@dataclass(frozen=True, slots=True)
class Holding:
    """A driver's lease.

    Attributes:
        is_trusted: it shows that no earlier driver can commit any more.
        is_watched: it is renewed beside the next batch, and found to be lost: whether that happens is a matter of time.
    """

    lease: LeaseFile
    is_trusted: bool
    is_watched: bool = False


@dataclass(frozen=True, slots=True)
class Leased:
    """A lease was taken."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An append, or a batch of a stream, returned without an error."""

    row: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Seen:
    """A reader returned these rows."""

    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delivered:
    """A consumer was given the rows that a snapshot adds."""

    snapshot_id: int
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tag was made."""

    name: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class RollingBack:
    """A rollback has put its fence.

    Attributes:
        abandoned: uids of what it takes back.
        kept: uids of what its target holds.
        uid: of the fence.
        parent: uid of the latest snapshot that it was put after.
    """

    abandoned: frozenset[str]
    kept: tuple[str, ...] = ()
    uid: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A rollback returned without an error: snapshots of these uids are gone for good."""

    abandoned: frozenset[str]


@dataclass(frozen=True, slots=True)
class Failed:
    """It returned an error that says this."""

    why: str


def snapshot_path(snapshot_id: int) -> str:
    """Path of a snapshot file."""
    return f"{SNAPSHOTS}{snapshot_id}"


def id_of(path: str) -> int:
    """Id of the snapshot that lies there."""
    return int(path.removeprefix(SNAPSHOTS))


def ids_of(content: Content) -> list[int]:
    """Ids of the snapshots that are there, ascending."""
    return sorted(id_of(path) for path in content if path.startswith(SNAPSHOTS))


def in_order(live: tuple[Entry, ...]) -> tuple[str, ...]:
    """Rows as they are read."""
    return tuple(row for entry in sorted(live, key=lambda each: each.number) for row in entry.rows)


def first_snapshot(number: int, user: str = "first") -> Snapshot:
    """Return a snapshot that was there from the first."""
    line = tuple(f"first.{each}" for each in range(1, number + 1))
    return Snapshot(number, line[-1], line[-2] if number > 1 else None, user, line=line)


def first_content(*commits: tuple[str, ...], expired: int = 0, user: str = "first") -> tuple[tuple[str, Hashable], ...]:
    """Return a table as earlier commits of one row each left it: their files are old.

    Args:
        commits: rows that each of the first snapshots added.
        expired: how many of the first snapshots are gone.
        user: who made them.
    """
    content: Content = {}
    live: tuple[Entry, ...] = ()
    for number, rows in enumerate(commits, 1):
        entry = Entry(f"{DATA}{rows[0]}", rows, sum(len(each.rows) for each in live))
        live = (*live, entry)
        snapshot = first_snapshot(number, user)
        content[entry.path] = File(is_old=True)
        if number > expired:
            content[snapshot_path(number)] = snapshot
            content[snapshot.metadata] = File(is_old=True, live=live, base=live[:-1])
    if commits:
        content[LATEST] = len(commits)
        content[EARLIEST] = expired + 1
    return tuple(content.items())


def merged_content() -> tuple[tuple[str, Hashable], ...]:
    """Return a table of two rows whose first snapshot was tagged and has expired, and whose files were merged since.

    A file that nobody knows is left of a job that died.
    """
    first = Entry(f"{DATA}first", ("first",), 0)
    merged = Entry(f"{DATA}merged", ("first", "second"), 0)
    old, two, three = (first_snapshot(number) for number in (1, 2, 3))
    second = Entry(f"{DATA}second", ("second",), 1)
    return (
        (first.path, File(is_old=True)),
        (second.path, File(is_old=True)),
        (merged.path, File(is_old=True)),
        (f"{DATA}garbage", File(is_old=True)),
        (old.metadata, File(is_old=True, live=(first,))),
        (two.metadata, File(is_old=True, live=(first, second))),
        (three.metadata, File(is_old=True, live=(merged,), deleted=(first, second))),
        (f"{TAGS}kept", old),
        (snapshot_path(2), two),
        (snapshot_path(3), three),
        (LATEST, 3),
        (EARLIEST, 2),
    )
