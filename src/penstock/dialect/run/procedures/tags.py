"""Procedures for tags, and for rollback to an older snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.run.procedures.procedure import LONG, TEXT, Procedure, success, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState
    from penstock.format.snapshot import Snapshot
    from penstock.table.expire.rollback import RollbackPlan

_TAGGED: Final = pa.schema({"tagName": TEXT, "snapshot": LONG, "commit_time": LONG, "watermark": TEXT})
_AS_LATEST: Final = pa.schema(
    {"previous_snapshot_id": LONG, "rolled_back_snapshot_id": LONG, "current_snapshot_id": LONG}
)
_ROLLED_BACK: Final = pa.schema({"snapshot_id": LONG, "removed_snapshots": LONG, "removed_tags": LONG})


def _create_tag(state: SqlState, arguments: Arguments) -> Outcome:
    table_of(state, arguments).create_tag(
        arguments.needed("tag"),
        snapshot_id=arguments.integer("snapshot_id"),
        time_retained=arguments.text("time_retained"),
    )
    return success()


def _create_tag_from_timestamp(state: SqlState, arguments: Arguments) -> Outcome:
    name = arguments.needed("tag")
    snapshot = table_of(state, arguments).create_tag(
        name, timestamp=arguments.needed_integer("timestamp"), time_retained=arguments.text("time_retained")
    )
    return _tagged(name, snapshot)


def _create_tag_from_watermark(state: SqlState, arguments: Arguments) -> Outcome:
    name = arguments.needed("tag")
    snapshot = table_of(state, arguments).create_tag(
        name, watermark=arguments.needed_integer("watermark"), time_retained=arguments.text("time_retained")
    )
    return _tagged(name, snapshot)


def _tagged(name: str, snapshot: Snapshot) -> Outcome:
    watermark = "null" if snapshot.watermark is None else str(snapshot.watermark)
    return rows(_TAGGED, [(name, snapshot.id, snapshot.time_millis, watermark)])


def _replace_tag(state: SqlState, arguments: Arguments) -> Outcome:
    table_of(state, arguments).versions.replace_tag(
        arguments.needed("tag"),
        snapshot_id=arguments.integer("snapshot_id"),
        time_retained=arguments.text("time_retained"),
    )
    return success()


def _rename_tag(state: SqlState, arguments: Arguments) -> Outcome:
    name, target = arguments.needed("tagName"), arguments.needed("targetTagName")
    table_of(state, arguments).versions.rename_tag(name, target)
    return success(f"Rename [{name}] to [{target}] successfully.")


def _delete_tag(state: SqlState, arguments: Arguments) -> Outcome:
    table = table_of(state, arguments)
    for name in arguments.needed("tag").split(","):
        table.versions.delete_tag(name.strip())
    return success()


def _expire_tags(state: SqlState, arguments: Arguments) -> Outcome:
    names = table_of(state, arguments).versions.expire_tags(older_than=arguments.time("older_than"))
    return rows(pa.schema({"expired_tags": TEXT}), [(name,) for name in names])


def _trigger_tag_automatic_creation(state: SqlState, arguments: Arguments) -> Outcome:
    table_of(state, arguments).versions.create_due_tags()
    return success()


def _rollback_to(state: SqlState, arguments: Arguments) -> Outcome:
    table = table_of(state, arguments)
    if arguments.is_number("tag"):  # sys.rollback_to('t', 10), as in Paimon for Flink 1.18
        return _rolled_back(table.rollback_to(snapshot_id=arguments.integer("tag")))
    return _rolled_back(table.rollback_to(snapshot_id=arguments.integer("snapshot_id"), tag=arguments.text("tag")))


def _rollback(state: SqlState, arguments: Arguments) -> Outcome:
    version, snapshot_id, tag = arguments.text("version"), arguments.integer("snapshot"), arguments.text("tag")
    if sum(each is not None for each in (version, snapshot_id, tag)) != 1:
        raise arguments.error("takes one of version, snapshot and tag")
    if version is not None and version.isdecimal():
        snapshot_id, version = int(version), None
    return _rolled_back(table_of(state, arguments).rollback_to(snapshot_id=snapshot_id, tag=tag or version))


def _rollback_to_timestamp(state: SqlState, arguments: Arguments) -> Outcome:
    timestamp = arguments.needed_integer("timestamp")
    return _rolled_back(table_of(state, arguments).rollback_to(timestamp=timestamp))


def _rollback_to_watermark(state: SqlState, arguments: Arguments) -> Outcome:
    watermark = arguments.needed_integer("watermark")
    return _rolled_back(table_of(state, arguments).rollback_to(watermark=watermark))


def _rollback_to_as_latest(state: SqlState, arguments: Arguments) -> Outcome:
    table = table_of(state, arguments)
    snapshot_id, tag = arguments.integer("snapshot_id"), arguments.text("tag")
    previous = table.latest_snapshot()
    tags = {row["tag_name"]: row["snapshot_id"] for row in table.inspect.tags().to_pylist()}
    restored = table.versions.rollback_to_as_latest(snapshot_id=snapshot_id, tag=tag)
    before = None if previous is None else previous.id
    return rows(_AS_LATEST, [(before, tags.get(tag, snapshot_id), before if restored is None else restored.id)])


def _rolled_back(plan: RollbackPlan) -> Outcome:
    return rows(_ROLLED_BACK, [(plan.target.id, len(plan.snapshot_ids), len(plan.tags))])


_SNAPSHOT: Final = {"snapshot": "snapshot_id"}

PROCEDURES: Final[Mapping[str, Procedure]] = {
    "create_tag": Procedure(
        parameters=("table", "tag", "snapshot_id", "time_retained"), run=_create_tag, aliases=_SNAPSHOT
    ),
    "create_tag_from_timestamp": Procedure(
        parameters=("table", "tag", "timestamp", "time_retained"), run=_create_tag_from_timestamp
    ),
    "create_tag_from_watermark": Procedure(
        parameters=("table", "tag", "watermark", "time_retained"), run=_create_tag_from_watermark
    ),
    "replace_tag": Procedure(
        parameters=("table", "tag", "snapshot_id", "time_retained"), run=_replace_tag, aliases=_SNAPSHOT
    ),
    "rename_tag": Procedure(
        parameters=("table", "tagName", "targetTagName"),
        run=_rename_tag,
        aliases={"tag": "tagName", "target_tag": "targetTagName"},
    ),
    "delete_tag": Procedure(parameters=("table", "tag"), run=_delete_tag),
    "expire_tags": Procedure(parameters=("table", "older_than"), run=_expire_tags),
    "trigger_tag_automatic_creation": Procedure(parameters=("table",), run=_trigger_tag_automatic_creation),
    "rollback": Procedure(parameters=("table", "version", "snapshot", "tag"), run=_rollback),
    "rollback_to": Procedure(parameters=("table", "tag", "snapshot_id"), run=_rollback_to),
    "rollback_to_as_latest": Procedure(parameters=("table", "tag", "snapshot_id"), run=_rollback_to_as_latest),
    "rollback_to_timestamp": Procedure(parameters=("table", "timestamp"), run=_rollback_to_timestamp),
    "rollback_to_watermark": Procedure(parameters=("table", "watermark"), run=_rollback_to_watermark),
}
