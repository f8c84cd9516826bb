"""What has to hold in every state, by name."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Final

from tests.model.values import (
    CONSUMER,
    LATEST,
    LOST_RACES,
    SNAPSHOTS,
    TAGS,
    Acknowledged,
    Delivered,
    Entry,
    Failed,
    Leased,
    RolledBack,
    RollingBack,
    Seen,
    Snapshot,
    Tagged,
    id_of,
    ids_of,
    in_order,
    snapshot_path,
)

if TYPE_CHECKING:
    from tests.model.views import Content, Invariant, View


FIRST_ROWS: Final = ("first", "second")
FIRST_POSITION: Final = 2
"""Of the consumer in the scenarios that have one."""


def latest_of(content: Content) -> Snapshot | None:
    """Return the snapshot that a reader takes for the latest."""
    hint = content.get(LATEST)
    if isinstance(hint, int) and snapshot_path(hint + 1) not in content and snapshot_path(hint) in content:
        return content[snapshot_path(hint)]  # type: ignore[return-value]
    ids = ids_of(content)
    return content[snapshot_path(ids[-1])] if ids else None  # type: ignore[return-value]


def settled(view: View) -> Snapshot | None:
    """Return the latest snapshot; while somebody is running, the latest one that has not come late.

    For a moment such a one can be read, until its writer takes it back.
    """
    latest = latest_of(view.content)
    while latest is not None and not view.is_whole and is_late(view, latest):
        lower = [number for number in ids_of(view.content) if number < latest.id]
        latest = view.content[snapshot_path(lower[-1])] if lower else None  # type: ignore[assignment]
    return latest


def is_late(view: View, snapshot: Snapshot) -> bool:
    """Whether a snapshot was put on one that was rolled back, or beside others that it does not hold."""
    abandoned = abandoned_uids(view)
    if not abandoned:
        return False  # without a rollback late puts have ids below the latest one's
    if abandoned & set(snapshot.line):
        return True
    lower = (view.content[snapshot_path(number)] for number in ids_of(view.content) if number < snapshot.id)
    beside = (each for each in lower if isinstance(each, Snapshot) and each.rolled_back_to is None)
    return any(each.uid not in snapshot.line and not abandoned & set(each.line) for each in beside)


def live_of(content: Content, snapshot: Snapshot | None) -> tuple[Entry, ...] | None:
    """Return the files that a snapshot holds; None where its metadata are gone."""
    if snapshot is None:
        return ()
    metadata = content.get(snapshot.metadata)
    return None if metadata is None else metadata.live  # type: ignore[attr-defined]


def visible_rows(content: Content) -> tuple[str, ...] | None:
    """Return the table's rows in order; None where metadata are gone."""
    live = live_of(content, latest_of(content))
    return None if live is None else in_order(live)


def settled_rows(view: View) -> tuple[str, ...] | None:
    """Return the table's rows in order, without what came late; None where metadata are gone."""
    live = live_of(view.content, settled(view))
    return None if live is None else in_order(live)


def abandoned_uids(view: View) -> set[str]:
    """Return what was rolled back, or is about to be; what a later rollback has brought back is not.

    A rollback to a snapshot that another one takes back meanwhile brings that one's content back.
    """
    found: set[str] = set()
    notes = view.notes(RollingBack)
    for note in sorted(notes, key=cmp_to_key(_order)):
        found = (found | note.abandoned) - set(note.kept)
    known = {note.uid for note in notes}
    for snapshot in view.content.values():
        # A fence may be there whose rollback was stopped right after its put, or is about to take it back.
        if isinstance(snapshot, Snapshot) and snapshot.rolled_back_to is not None and snapshot.uid not in known:
            found |= snapshot.abandoned if ".first" not in snapshot.uid else set()
    return found


def _order(one: RollingBack, other: RollingBack) -> int:
    """Compare rollbacks by the order in which they put their fences."""
    return _is_after(one, other) - _is_after(other, one)


def _is_after(one: RollingBack, other: RollingBack) -> bool:
    """Whether a fence was put on one of another rollback, or on what that one's target holds."""
    fences = {other.uid, f"{other.uid}.first"}
    return bool(fences & (one.abandoned | {one.parent})) or one.parent in other.kept


def acknowledged_rows_visible(view: View) -> str | None:
    """The row of each append that returned is in the latest snapshot, or was rolled back; so are those from before."""
    rows = settled_rows(view)
    if rows is None:
        return None  # latest_whole says so
    missing = {row: f"first.{number}" for number, row in enumerate(FIRST_ROWS, 1) if row not in rows}
    missing |= {note.row: note.snapshot.uid for note in view.notes(Acknowledged) if note.row not in rows}
    abandoned = abandoned_uids(view) if missing else set()
    lost = [row for row, uid in missing.items() if uid not in abandoned]
    return f"rows {lost} are not there: {rows}" if lost else None


def rolled_back_gone(view: View) -> str | None:
    """Once everybody came to the end, no snapshot is built on what a rollback took away that returned."""
    gone = {uid for note in view.notes(RolledBack) for uid in note.abandoned} & abandoned_uids(view)
    for path, snapshot in view.content.items() if gone and view.is_whole else ():
        if isinstance(snapshot, Snapshot) and path.startswith(SNAPSHOTS) and gone & set(snapshot.line):
            return f"snapshot {snapshot.id} ({snapshot.uid}) holds {sorted(gone & set(snapshot.line))}"
    return None


def exactly_once(view: View) -> str | None:
    """No row is in the latest snapshot twice, whoever committed it, acknowledged or not."""
    rows = settled_rows(view) or ()
    double = sorted({row for row in rows if rows.count(row) > 1})
    return f"rows {double} are there twice: {rows}" if double else None


def latest_whole(view: View) -> str | None:
    """All files of the latest snapshot are there."""
    latest = settled(view)
    live = live_of(view.content, latest)
    if live is None:
        return f"the metadata of the latest snapshot {latest} are gone"
    missing = [entry.path for entry in live if entry.path not in view.content]
    return f"the latest snapshot needs {missing}, which are gone" if missing else None


def snapshots_whole(view: View) -> str | None:
    """All files of each snapshot that is there are, once everybody came to the end."""
    for path in sorted(view.content) if view.is_whole else ():
        snapshot = view.content[path]
        if isinstance(snapshot, Snapshot) and path.startswith("snapshot/"):
            live = live_of(view.content, snapshot)
            if live is None or any(entry.path not in view.content for entry in live):
                return f"files of snapshot {snapshot.id} are gone"
    return None


def tag_readable(view: View) -> str | None:
    """All files are there of the tags that were there from the first, and of those whose making returned."""
    names = {note.name for note in view.notes(Tagged)} | {"kept"}
    for name in sorted(names):
        tagged = view.content.get(f"{TAGS}{name}")
        if isinstance(tagged, Snapshot):
            live = live_of(view.content, tagged)
            if live is None or any(entry.path not in view.content for entry in live):
                return f"files of tag {name} are gone"
    return None


def reads_complete(view: View) -> str | None:
    """Whoever reads sees all rows from before, each once."""
    for note in view.notes(Seen):
        if any(note.rows.count(row) != 1 for row in FIRST_ROWS) or len(set(note.rows)) != len(note.rows):
            return f"a reader returned {note.rows}"
    return None


def consumer_gets_all(view: View) -> str | None:
    """What lies before a consumer's position was delivered, but for what lay there first."""
    position = view.content.get(CONSUMER)
    delivered = {note.snapshot_id: note.rows for note in view.notes(Delivered)}
    for snapshot_id in range(FIRST_POSITION, position) if isinstance(position, int) else ():
        if not delivered.get(snapshot_id):
            return f"the position is {position}, and snapshot {snapshot_id} was not delivered"
    return None


def consumer_can_go_on(view: View) -> str | None:
    """The snapshot at a consumer's position is there with its files, unless it is still to come."""
    position, latest = view.content.get(CONSUMER), latest_of(view.content)
    if not isinstance(position, int) or latest is None or position > latest.id:
        return None
    snapshot = view.content.get(snapshot_path(position))
    live = live_of(view.content, snapshot) if isinstance(snapshot, Snapshot) else None
    if live is None or any(entry.path not in view.content for entry in live):
        return f"snapshot {position} is the consumer's next one, and its files are gone"
    return None


def chain_linear(view: View) -> str | None:
    """Each snapshot was built on the one before it, once everybody came to the end: a late put stands for a moment."""
    if not view.is_whole:
        return None
    for path, snapshot in view.content.items():
        if isinstance(snapshot, Snapshot) and path.startswith("snapshot/"):
            before = view.content.get(snapshot_path(id_of(path) - 1))
            if snapshot.rolled_back_to is None and isinstance(before, Snapshot) and snapshot.parent != before.uid:
                return f"snapshot {snapshot.id} was built on {snapshot.parent}, but before it stands {before.uid}"
    return None


def order_kept(view: View) -> str | None:
    """Rows are read in the order in which they were committed."""
    rows = settled_rows(view) or ()
    latest = settled(view)
    line = latest.line if latest else ()
    noted = sorted({(note.snapshot.id, note.row) for note in view.notes(Acknowledged) if note.snapshot.uid in line})
    wanted = [*FIRST_ROWS, *(row for _, row in noted)]
    got = [row for row in rows if row in wanted]
    return None if got == [row for row in wanted if row in got] else f"committed as {wanted}, read as {got}"


def lease_epochs_differ(view: View) -> str | None:
    """No epoch of a lease has two holders."""
    epochs = [note.epoch for note in view.notes(Leased)]
    return f"epochs {sorted(epochs)} were taken" if len(set(epochs)) < len(epochs) else None


def progress_made(view: View) -> str | None:
    """Nobody loses more races than others have won."""
    lost = [note for note in view.notes(Failed) if note.why == LOST_RACES]
    return "a commit was given up, though nobody outran it so often" if lost else None


INVARIANTS: Final[dict[str, Invariant]] = {
    "acknowledged-rows-visible": acknowledged_rows_visible,
    "rolled-back-gone": rolled_back_gone,
    "exactly-once": exactly_once,
    "latest-whole": latest_whole,
    "snapshots-whole": snapshots_whole,
    "tag-readable": tag_readable,
    "reads-complete": reads_complete,
    "consumer-gets-all-rows": consumer_gets_all,
    "consumer-can-go-on": consumer_can_go_on,
    "snapshot-chain-linear": chain_linear,
    "order-kept": order_kept,
    "lease-epochs-differ": lease_epochs_differ,
    "progress-made": progress_made,
}
