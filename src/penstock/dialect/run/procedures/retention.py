"""Procedures for expiration, and for partition marks and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.run.procedures.procedure import LONG, TEXT, Procedure, success, table_of, tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState

_PARTITION_OPTIONS: Final = {
    "timestamp_formatter": "partition.timestamp-formatter",
    "timestamp_pattern": "partition.timestamp-pattern",
    "expire_strategy": "partition.expiration-strategy",
    "max_expires": "partition.expiration-max-num",
}
_MODES: Final = frozenset({"local", "distributed"})


def _expire_snapshots(state: SqlState, arguments: Arguments) -> Outcome:
    expiration = table_of(state, arguments, arguments.pairs("options")).expire_snapshots(
        retain_max=arguments.integer("retain_max"),
        retain_min=arguments.integer("retain_min"),
        older_than=arguments.time("older_than"),
        max_deletes=arguments.integer("max_deletes"),
    )
    schema = pa.schema({"expired_snapshots": LONG, "data_files": LONG, "data_bytes": LONG})
    return rows(schema, [(len(expiration.snapshot_ids), expiration.data_files, expiration.data_bytes)])


def _expire_partitions(state: SqlState, arguments: Arguments) -> Outcome:
    named = {key: arguments.text(name) for name, key in _PARTITION_OPTIONS.items()}
    given = (arguments.pairs("options") or {}) | {key: value for key, value in named.items() if value is not None}
    found = table_of(state, arguments, given).maintenance.expire_partitions(
        expiration_time=arguments.text("expiration_time")
    )
    return rows(pa.schema({"expired_partitions": TEXT}), [(each.directory,) for each in found])


def _mark_partition_done(state: SqlState, arguments: Arguments) -> Outcome:
    arguments.needed("partitions")
    done = table_of(state, arguments).maintenance.mark_partitions_done(arguments.partitions("partitions"))
    return rows(pa.schema({"partition": TEXT}), [(each.directory,) for each in done])


def _remove_orphan_files(state: SqlState, arguments: Arguments) -> Outcome:
    older_than, dry_run = arguments.time("older_than"), arguments.flag("dry_run", default=False)
    if (arguments.text("mode") or "local").lower() not in _MODES:
        raise arguments.error("expects 'local' or 'distributed' for mode; files are deleted from this process")
    parallelism = arguments.integer("parallelism")
    options = {} if parallelism is None else {"file-operation.thread-num": str(parallelism)}
    values: list[tuple[object, ...]] = []
    for path in tables_of(state, arguments):
        table = state.load(path, options)
        report = table.remove_orphan_files(older_than=older_than, dry_run=dry_run)
        values.append((table.name, len(report.orphans), report.bytes))
    return rows(pa.schema({"table": TEXT, "orphan_files": LONG, "orphan_bytes": LONG}), values)


def _remove_unexisting_files(state: SqlState, arguments: Arguments) -> Outcome:
    arguments.integer("parallelism")  # directories are listed one after another
    dry_run = arguments.flag("dry_run", default=False)
    missing = [
        each
        for path in tables_of(state, arguments)
        for each in state.load(path).maintenance.remove_missing_files(dry_run=dry_run)
    ]
    return rows(pa.schema({"path": TEXT, "lost_rows": LONG}), [(each.path, each.row_count) for each in missing])


def _remove_unexisting_manifests(state: SqlState, arguments: Arguments) -> Outcome:
    dry_run = arguments.flag("dry_run", default=False)
    missing = table_of(state, arguments).maintenance.remove_missing_manifests(dry_run=dry_run)
    schema = pa.schema({"path": TEXT, "added_files": LONG, "deleted_files": LONG})
    return rows(schema, [(each.path, each.added_files, each.deleted_files) for each in missing])


def _reset_consumer(state: SqlState, arguments: Arguments) -> Outcome:
    table, consumer = table_of(state, arguments), arguments.needed("consumer_id")
    next_snapshot = arguments.integer("next_snapshot_id")
    if next_snapshot is None:
        table.maintenance.delete_consumer(consumer)
    else:
        table.maintenance.reset_consumer(consumer, next_snapshot)
    return success()


def _clear_consumers(state: SqlState, arguments: Arguments) -> Outcome:
    table_of(state, arguments).maintenance.clear_consumers(
        arguments.text("including_consumers") or ".*", arguments.text("excluding_consumers")
    )
    return success()


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "expire_snapshots": Procedure(
        parameters=("table", "retain_max", "retain_min", "older_than", "max_deletes", "options"), run=_expire_snapshots
    ),
    "expire_partitions": Procedure(
        parameters=(
            "table", "expiration_time", "timestamp_formatter", "timestamp_pattern", "expire_strategy", "max_expires",
            "options",
        ),
        run=_expire_partitions,
    ),
    "mark_partition_done": Procedure(parameters=("table", "partitions"), run=_mark_partition_done),
    "remove_orphan_files": Procedure(
        parameters=("table", "older_than", "dry_run", "parallelism", "mode"), run=_remove_orphan_files
    ),
    "remove_unexisting_files": Procedure(
        parameters=("table", "dry_run", "parallelism"), run=_remove_unexisting_files
    ),
    "remove_unexisting_manifests": Procedure(
        parameters=("table", "dry_run"), run=_remove_unexisting_manifests, aliases={"tableId": "table"}
    ),
    "reset_consumer": Procedure(
        parameters=("table", "consumer_id", "next_snapshot_id"), run=_reset_consumer,
        aliases={"consumerId": "consumer_id", "nextSnapshotId": "next_snapshot_id"},
    ),
    "clear_consumers": Procedure(
        parameters=("table", "including_consumers", "excluding_consumers"), run=_clear_consumers,
        aliases={"includingConsumers": "including_consumers", "excludingConsumers": "excluding_consumers"},
    ),
}  # fmt: skip
