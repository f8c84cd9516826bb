"""Operations that bring back an older snapshot."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from penstock.api.arguments import INTEGER
from penstock.api.handle import TableHandle
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Arguments, Procedure, ResultRows
from penstock.catalog.checks.features import check_taggable, check_writable
from penstock.clocks import to_millis
from penstock.format.snapshot import Snapshot
from penstock.table.actions.changes import open_committer
from penstock.table.actions.restore import restore_snapshot
from penstock.table.assumptions import check_other_engines
from penstock.table.expire.rollback import RollbackPlan, apply_rollback, plan_rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackTo(Operation[TableHandle, RollbackPlan]):
    """Make an older snapshot the latest one, and remove all later snapshots.

    Concurrent commits wait for the rollback to end, at most 5 s, and build on the older snapshot. Consumers that have
    read a removed snapshot continue after the older one.

    Args:
        snapshot_id: the snapshot to go back to.
        tag: go back to the snapshot with this tag.
        timestamp: roll back to the newest snapshot committed at or before this time.
        watermark: roll back to the newest snapshot whose watermark is not later than this event time.
        dry_run: only return what would be removed.

    Raises:
        NotFoundError: there is no such snapshot or tag.
        InvalidOptionError: not exactly one target.
        CommitConflictError: another rollback was made meanwhile, or other commits won every race.
        UnsupportedFeatureError: on an object store, another engine created the latest snapshot; or the table has
            readers that would not learn of the rollback.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp: Annotated[datetime | int | None, Named(sql=INTEGER)] = None
    watermark: Annotated[datetime | int | None, Named(sql=INTEGER)] = None
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> RollbackPlan:
        store = table.checked_store
        plan = plan_rollback(
            store,
            snapshot_id=self.snapshot_id,
            tag=self.tag,
            timestamp_millis=None if self.timestamp is None else to_millis(self.timestamp),
            watermark=None if self.watermark is None else to_millis(self.watermark),
        )
        if not self.dry_run:
            check_taggable(table.ref)
            apply_rollback(store, plan, check=lambda latest: check_other_engines(table.ref, latest))
        return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackToAsLatest(Operation[TableHandle, Snapshot | None]):
    """Commit the state of an older snapshot as a new snapshot; later snapshots stay readable until they expire.

    Because its files are in use again, the older snapshot gets a tag, ``rollback-to-as-latest-<id>-<uuid>``, unless one
    was given. Streams that read this table do not deliver the rows again.

    Args:
        snapshot_id: the older snapshot.
        tag: the snapshot with this tag.

    Returns:
        The new snapshot; None if the latest snapshot already has the same rows.

    Raises:
        NotFoundError: there is no such snapshot or tag.
        InvalidOptionError: not exactly one target.
        CommitConflictError: others committed at every attempt.
    """

    snapshot_id: int | None = None
    tag: str | None = None

    def run(self, table: TableHandle, /) -> Snapshot | None:
        check_writable(table.ref)
        committer = open_committer(table.ref, table.checked_store, adds_rows=False)
        return restore_snapshot(committer, snapshot_id=self.snapshot_id, tag=self.tag)


def _to_tag_or_id(arguments: Arguments) -> RollbackTo:
    if arguments.is_number("tag"):  # sys.rollback_to('t', 10), as in Paimon for Flink 1.18
        return RollbackTo(snapshot_id=arguments.value("tag", INTEGER))
    return RollbackTo(snapshot_id=arguments.value("snapshot_id", INTEGER), tag=arguments.text("tag"))


def _to_version(arguments: Arguments) -> RollbackTo:
    version, snapshot_id, tag = arguments.text("version"), arguments.value("snapshot", INTEGER), arguments.text("tag")
    if sum(each is not None for each in (version, snapshot_id, tag)) != 1:
        raise arguments.error("takes one of version, snapshot and tag")
    if version is not None and version.isdecimal():
        snapshot_id, version = int(version), None
    return RollbackTo(snapshot_id=snapshot_id, tag=tag or version)


def _rolled_back(table: TableHandle, operation: RollbackTo) -> ResultRows:
    plan = operation.run(table)
    return [(plan.target.id, len(plan.snapshot_ids), len(plan.tags))]


def _restored(table: TableHandle, operation: RollbackToAsLatest) -> ResultRows:
    previous = table.store.load_latest_snapshot()
    restored = operation.run(table)
    before = None if previous is None else previous.id
    target = operation.snapshot_id if operation.tag is None else table.store.load_tag(operation.tag).snapshot.id
    return [(before, target, before if restored is None else restored.id)]


_ROLLED_BACK: Final = "snapshot_id BIGINT, removed_snapshots BIGINT, removed_tags BIGINT"

PROCEDURES: Final = (
    Procedure(
        "rollback", RollbackTo, "table, version, snapshot, tag", _ROLLED_BACK, _rolled_back, build=_to_version,
        skips_damaged_schemas=True,
        note="as `rollback_to`, in the form of Paimon on Spark; `version` is a snapshot id or the name of a tag"
    ),
    Procedure(
        "rollback_to", RollbackTo, "table, tag, snapshot_id", _ROLLED_BACK, _rolled_back, build=_to_tag_or_id,
        skips_damaged_schemas=True,
        note="make an older snapshot the latest one, and remove all later ones; a number as the tag is a snapshot id"
    ),
    Procedure(
        "rollback_to_as_latest", RollbackToAsLatest, "table, tag, snapshot_id",
        "previous_snapshot_id BIGINT, rolled_back_snapshot_id BIGINT, current_snapshot_id BIGINT", _restored,
        skips_damaged_schemas=True,
    ),
    Procedure(
        "rollback_to_timestamp", RollbackTo, "table, timestamp", _ROLLED_BACK, _rolled_back, needed="timestamp",
        skips_damaged_schemas=True,
        note="roll back to the newest snapshot committed at or before a time in ms"
    ),
    Procedure(
        "rollback_to_watermark", RollbackTo, "table, watermark", _ROLLED_BACK, _rolled_back, needed="watermark",
        skips_damaged_schemas=True,
        note="roll back to the newest snapshot whose watermark is not later than an event time in ms"
    ),
)  # fmt: skip
