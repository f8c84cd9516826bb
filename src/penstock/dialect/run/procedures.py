"""Run ``CALL sys.…``: the procedures of Paimon that have an equivalent method on the API handles.

Source:
    Paimon's Flink procedures: names, arguments and their order; docs/spec/compaction.md section 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.catalog.names import split_name
from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.run.arguments import Arguments
from penstock.errors import InvalidSqlError, TableStoreError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.api.table import Table
    from penstock.dialect.parse.statements import Call
    from penstock.dialect.state import SqlState
    from penstock.table.compact.job import CompactionResult
    from penstock.table.expire.rollback import RollbackPlan

_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()
_RESULT: Final = pa.schema({"result": _TEXT})
_COMPACTED: Final = pa.schema(
    {
        "table": _TEXT,
        "partition": _TEXT,
        "files_in": _LONG,
        "bytes_in": _LONG,
        "files_out": _LONG,
        "bytes_out": _LONG,
        "skipped": _TEXT,
    }
)
# Words in the names of Paimon procedures that Penstock cannot support.
_REFUSED: Final = {
    "branch": "branches are not supported; a tag keeps a snapshot, and a copy of the table takes other rows",
    "fast_forward": "branches are not supported",
    "migrate": "tables of Hive are not adopted; penstock import copies their files",
    "rescale": "the number of buckets of a table stays; make a new table and INSERT INTO it",
}
_PARTITION_OPTIONS: Final = {
    "timestamp_formatter": "partition.timestamp-formatter",
    "timestamp_pattern": "partition.timestamp-pattern",
    "expire_strategy": "partition.expiration-strategy",
    "max_expires": "partition.expiration-max-num",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure that CALL can run.

    Attributes:
        parameters: parameters in positional order.
    """

    parameters: tuple[str, ...]
    run: Callable[[SqlState, Arguments], Outcome]


def call(state: SqlState, statement: Call) -> Outcome:
    """Run a procedure.

    Raises:
        InvalidSqlError: there is no such procedure.
        UnsupportedFeatureError: Paimon has this procedure, but Penstock does not have the feature.
        InvalidOptionError: the procedure does not accept these arguments.
        TableStoreError: as the method that the procedure calls.
    """
    procedure = PROCEDURES.get(statement.procedure)
    if procedure is None:
        raise _unknown(statement.procedure)
    return procedure.run(state, Arguments(statement.procedure, procedure.parameters, statement.arguments))


def _unknown(name: str) -> TableStoreError:
    reason = next((reason for word, reason in _REFUSED.items() if word in name), None)
    if reason is not None:
        return UnsupportedFeatureError(f"there is no procedure sys.{name}: {reason}")
    near = get_close_matches(name, PROCEDURES, n=1)
    hint = f"did you mean sys.{near[0]}?" if near else f"there are {', '.join(PROCEDURES)}"
    return InvalidSqlError(f"there is no procedure sys.{name}; {hint}")


def _table(state: SqlState, arguments: Arguments, options: Mapping[str, str] | None = None) -> Table:
    return state.load(split_name(arguments.needed("table")), options)


def _compact(state: SqlState, arguments: Arguments) -> Outcome:
    table = _table(state, arguments)
    strategy = arguments.text("compact_strategy")
    result = table.compact(
        state.spark,
        partitions=arguments.partitions("partitions"),
        where=arguments.text("where"),
        strategy=None if strategy is None else strategy.lower(),
        idle_time=arguments.text("partition_idle_time"),
        order_strategy=arguments.text("order_strategy"),
        order_by=arguments.names("order_by"),
        options=arguments.pairs("options"),
    )
    return rows(_COMPACTED, _compacted(table.name, result))


def _compact_database(state: SqlState, arguments: Arguments) -> Outcome:
    strategy = arguments.text("compact_strategy")
    if arguments.text("mode") not in {None, "divided", "combined"}:
        raise arguments.error("expects 'divided' or 'combined' for mode; tables are compacted one after the other")
    done = state.catalog(state.catalog_name).compact_database(
        arguments.text("including_databases") or ".*",
        state.spark,
        including=arguments.text("including_tables") or ".*",
        excluding=arguments.text("excluding_tables"),
        strategy=None if strategy is None else strategy.lower(),
        idle_time=arguments.text("partition_idle_time"),
        options=arguments.pairs("table_options"),
    )
    values: list[tuple[object, ...]] = []
    for each in done:
        if each.result is None:
            values.append((each.table, None, None, None, None, None, str(each.error)))
        else:
            values += _compacted(each.table, each.result)
    return rows(_COMPACTED, values)


def _compacted(table: str, result: CompactionResult) -> list[tuple[object, ...]]:
    return [
        (table, row.partition or None, row.files_in, row.bytes_in, row.files_out, row.bytes_out, row.skipped)
        for row in result.partitions
    ]


def _create_tag(state: SqlState, arguments: Arguments) -> Outcome:
    _table(state, arguments).create_tag(
        arguments.needed("tag"),
        snapshot_id=arguments.integer("snapshot_id"),
        time_retained=arguments.text("time_retained"),
    )
    return _success()


def _delete_tag(state: SqlState, arguments: Arguments) -> Outcome:
    table = _table(state, arguments)
    for name in arguments.needed("tag").split(","):
        table.delete_tag(name.strip())
    return _success()


def _rollback_to(state: SqlState, arguments: Arguments) -> Outcome:
    table = _table(state, arguments)
    return _rolled_back(table.rollback_to(snapshot_id=arguments.integer("snapshot_id"), tag=arguments.text("tag")))


def _rollback_to_watermark(state: SqlState, arguments: Arguments) -> Outcome:
    watermark = arguments.integer("watermark")
    if watermark is None:
        raise arguments.error("needs the argument watermark")
    return _rolled_back(_table(state, arguments).rollback_to(watermark=watermark))


def _rolled_back(plan: RollbackPlan) -> Outcome:
    schema = pa.schema({"snapshot_id": _LONG, "removed_snapshots": _LONG, "removed_tags": _LONG})
    return rows(schema, [(plan.target.id, len(plan.snapshot_ids), len(plan.tags))])


def _expire_snapshots(state: SqlState, arguments: Arguments) -> Outcome:
    expiration = _table(state, arguments).expire_snapshots(
        retain_max=arguments.integer("retain_max"),
        retain_min=arguments.integer("retain_min"),
        older_than=arguments.time("older_than"),
        max_deletes=arguments.integer("max_deletes"),
    )
    schema = pa.schema({"expired_snapshots": _LONG, "data_files": _LONG, "data_bytes": _LONG})
    return rows(schema, [(len(expiration.snapshot_ids), expiration.data_files, expiration.data_bytes)])


def _expire_tags(state: SqlState, arguments: Arguments) -> Outcome:
    names = _table(state, arguments).expire_tags()
    return rows(pa.schema({"expired_tags": _TEXT}), [(name,) for name in names])


def _expire_partitions(state: SqlState, arguments: Arguments) -> Outcome:
    given = {key: arguments.text(name) for name, key in _PARTITION_OPTIONS.items()}
    table = _table(state, arguments, {key: value for key, value in given.items() if value is not None})
    found = table.expire_partitions(expiration_time=arguments.text("expiration_time"))
    return rows(pa.schema({"expired_partitions": _TEXT}), [(each.directory,) for each in found])


def _mark_partition_done(state: SqlState, arguments: Arguments) -> Outcome:
    arguments.needed("partitions")
    done = _table(state, arguments).mark_partitions_done(arguments.partitions("partitions"))
    return rows(pa.schema({"partition": _TEXT}), [(each.directory,) for each in done])


def _remove_orphan_files(state: SqlState, arguments: Arguments) -> Outcome:
    older_than, dry_run = arguments.time("older_than"), arguments.flag("dry_run", default=False)
    values: list[tuple[object, ...]] = []
    for path in _tables(state, arguments):
        table = state.load(path)
        report = table.remove_orphan_files(older_than=older_than, dry_run=dry_run)
        values.append((table.name, len(report.orphans), report.bytes))
    return rows(pa.schema({"table": _TEXT, "orphan_files": _LONG, "orphan_bytes": _LONG}), values)


def _tables(state: SqlState, arguments: Arguments) -> list[tuple[str, ...]]:
    """Return the tables that the argument names: one table, or all tables of a database for ``database.*``."""
    path = split_name(arguments.needed("table"))
    if path[-1] != "*":
        return [path]
    catalog, database = state.full_database(path[:-1])
    return [(catalog, database, name) for name in state.catalog(catalog).list_tables(database)]


def _reset_consumer(state: SqlState, arguments: Arguments) -> Outcome:
    table, consumer = _table(state, arguments), arguments.needed("consumer_id")
    next_snapshot = arguments.integer("next_snapshot_id")
    if next_snapshot is None:
        table.delete_consumer(consumer)
    else:
        table.reset_consumer(consumer, next_snapshot)
    return _success()


def _success() -> Outcome:
    return rows(_RESULT, [("Success",)])


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "compact": Procedure(
        parameters=(
            "table", "partitions", "order_strategy", "order_by", "options", "where", "partition_idle_time",
            "compact_strategy",
        ),
        run=_compact,
    ),
    "compact_database": Procedure(
        parameters=(
            "including_databases", "mode", "including_tables", "excluding_tables", "table_options",
            "partition_idle_time", "compact_strategy",
        ),
        run=_compact_database,
    ),
    "create_tag": Procedure(parameters=("table", "tag", "snapshot_id", "time_retained"), run=_create_tag),
    "delete_tag": Procedure(parameters=("table", "tag"), run=_delete_tag),
    "rollback_to": Procedure(parameters=("table", "tag", "snapshot_id"), run=_rollback_to),
    "rollback_to_watermark": Procedure(parameters=("table", "watermark"), run=_rollback_to_watermark),
    "expire_snapshots": Procedure(
        parameters=("table", "retain_max", "retain_min", "older_than", "max_deletes"), run=_expire_snapshots
    ),
    "expire_tags": Procedure(parameters=("table",), run=_expire_tags),
    "expire_partitions": Procedure(
        parameters=(
            "table", "expiration_time", "timestamp_formatter", "timestamp_pattern", "expire_strategy", "max_expires",
        ),
        run=_expire_partitions,
    ),
    "mark_partition_done": Procedure(parameters=("table", "partitions"), run=_mark_partition_done),
    "remove_orphan_files": Procedure(parameters=("table", "older_than", "dry_run"), run=_remove_orphan_files),
    "reset_consumer": Procedure(parameters=("table", "consumer_id", "next_snapshot_id"), run=_reset_consumer),
}  # fmt: skip
"""All procedures, by name."""
