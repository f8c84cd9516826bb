"""Procedures that merge data files and manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.run.procedures.procedure import LONG, TEXT, Procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState
    from penstock.table.compact.job import CompactionResult

_COMPACTED: Final = pa.schema(
    {
        "table": TEXT,
        "partition": TEXT,
        "files_in": LONG,
        "bytes_in": LONG,
        "files_out": LONG,
        "bytes_out": LONG,
        "skipped": TEXT,
    }
)
_MANIFESTS: Final = pa.schema({"manifests_before": LONG, "rewritten": LONG, "manifests_after": LONG})
_RESCALED: Final = pa.schema({"partition": TEXT, "buckets_before": LONG, "rows": LONG})


def _compact(state: SqlState, arguments: Arguments) -> Outcome:
    table = table_of(state, arguments)
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


def _compact_manifest(state: SqlState, arguments: Arguments) -> Outcome:
    table = table_of(state, arguments, arguments.pairs("options"))
    done = table.maintenance.compact_manifests(dry_run=arguments.flag("dry_run", default=False))
    return rows(_MANIFESTS, [(done.manifests_before, done.rewritten, done.manifests_after)])


def _rescale(state: SqlState, arguments: Arguments) -> Outcome:
    # Partitions are written one after another, in this process.
    for name in ("scan_parallelism", "sink_parallelism"):
        arguments.integer(name)
    specs, buckets, table = (
        arguments.partitions("partition"),
        arguments.integer("bucket_num"),
        table_of(state, arguments),
    )
    done = [each for spec in specs or () for each in table.maintenance.rescale(buckets, partition=spec)]
    if specs is None:
        done += table.maintenance.rescale(buckets)
    return rows(_RESCALED, [(each.directory or None, each.buckets_before, each.rows) for each in done])


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
        aliases={"options": "table_options"},
    ),
    "compact_manifest": Procedure(parameters=("table", "options", "dry_run"), run=_compact_manifest),
    "rescale": Procedure(
        parameters=("table", "bucket_num", "partition", "scan_parallelism", "sink_parallelism"), run=_rescale,
        aliases={"partitions": "partition"},
    ),
}  # fmt: skip
