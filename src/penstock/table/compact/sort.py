"""Sort compaction: the order, the plan and the commit message. Spark executes the sort.

The order of the rows changes, so sort compaction commits OVERWRITE snapshots, which streaming readers skip. The
reference replaces all files that are live at the commit. Penstock's commit names the files that were read: rows written
meanwhile are kept, and if one of those files is no longer live, the result of its partition is discarded.

Source:
    docs/spec/compaction.md section 8; Paimon ``flink:action/SortCompactAction.java``.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.format.types.text import format_sql_type
from penstock.options import BucketOptions, ClusteringOptions
from penstock.table.actions.rewriting import as_replacement
from penstock.table.compact.job import plan_only
from penstock.table.compact.plan import CompactStrategy, check_compactable, plan_merges, plan_partitions
from penstock.table.compact.rewrite import check_rows
from penstock.table.message import CommitMessage
from penstock.table.row_tracking import with_numbers
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.local import CompactionRequest
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import CompactTask
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef

_UNSORTABLE: Final = frozenset({TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})


class OrderStrategy(StrEnum):
    """How a sort compaction orders rows by several columns.

    ORDER: by the first column, equal rows by the next one, and so on; null first.
    ZORDER, HILBERT: along a space-filling curve, so that each file has a narrow range in every column; HILBERT keeps
        similar rows together better.
    """

    ORDER = "order"
    ZORDER = "zorder"
    HILBERT = "hilbert"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """The order in which rows are written.

    Attributes:
        columns: column names, at least one, for HILBERT at least two.
    """

    strategy: OrderStrategy
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortJob:
    """A planned sort compaction, or a job of incremental clustering.

    Attributes:
        ref: the table at its latest schema: with an older one, columns that were added later would be lost.
        plan: one task for each partition; those of a sort compaction have all its files.
        kind: of the commits: OVERWRITE for a sort compaction, COMPACT for incremental clustering.
        is_local: sort the rows of each new file alone.
    """

    ref: TableRef
    order: SortOrder
    plan: CompactionPlan
    kind: CommitKind = CommitKind.OVERWRITE
    is_local: bool = False


def plan_sort(
    ref: TableRef,
    store: MetadataStore,
    order: SortOrder,
    *,
    scope: OverwriteScope | None = None,
    idle_ms: int | None = None,
) -> SortJob:
    """Plan a sort compaction of the latest snapshot; reads metadata only.

    Args:
        scope: the partitions; None for all.
        idle_ms: only partitions that got no rows for this long.
    """
    check_compactable(ref)
    _check_is_scalable(ref)
    plan_tasks = partial(plan_merges, ref, _every_file, None)
    plan = plan_partitions(
        ref, store, plan_tasks, scope=scope, idle_ms=idle_ms, otherwise="its files are those of a queue"
    )
    # Loaded after the snapshot, so the schema is not older than that of any of its files.
    ref = replace(ref, schema=store.load_latest_schema())
    check_sortable(ref, order)
    return SortJob(ref=ref, order=order, plan=plan)


def check_sortable(ref: TableRef, order: SortOrder, *, source: str = "order_by") -> None:
    """Check that Spark can sort the rows of a table.

    Args:
        source: what names the columns, for messages.
    """
    _check_order(ref, order, source)
    check_types(ref)


def parse_order(ref: TableRef, strategy: str | None, order_by: Sequence[str] | None) -> SortOrder | None:
    """Parse the order from user arguments; None if there are none.

    Args:
        strategy: None means ``order`` if columns are given.
    """
    if strategy is None and order_by is None:
        return None
    columns = tuple(name.strip() for name in order_by or ())
    try:
        return SortOrder(strategy=OrderStrategy((strategy or OrderStrategy.ORDER).strip().lower()), columns=columns)
    except ValueError as error:
        known = ", ".join(f"'{each}'" for each in OrderStrategy)
        raise InvalidOptionError(f"table {ref.name}: order strategy '{strategy}': expected one of {known}") from error


def sort_table(
    ref: TableRef,
    order: SortOrder,
    request: CompactionRequest,
    sort: Callable[[SortJob], CompactionResult] | None,
    *,
    dry_run: bool = False,
    on_plan: Callable[[CompactionPlan], None] = lambda _: None,
) -> CompactionResult:
    """Sort a table once.

    Args:
        ref: from ``for_compaction``.
        request: the partitions to sort.
        sort: runs the plan; None without Spark.
        dry_run: only plan; the result has no outputs.
        on_plan: called with the plan before the sort.
    """
    check_compactable(ref)
    if request.strategy is CompactStrategy.MINOR:
        raise InvalidOptionError(
            f"table {ref.name}: sorting rewrites all files, so the strategy 'minor' is not possible"
        )
    job = plan_sort(ref, MetadataStore(ref), order, scope=request.scope, idle_ms=request.idle_ms)
    return run_sort(job, sort, dry_run=dry_run, on_plan=on_plan)


def run_sort(
    job: SortJob,
    sort: Callable[[SortJob], CompactionResult] | None,
    *,
    dry_run: bool,
    on_plan: Callable[[CompactionPlan], None],
) -> CompactionResult:
    """Run a planned job; arguments as for ``sort_table``."""
    on_plan(job.plan)
    if dry_run:
        return plan_only(job.plan)
    if sort is None:
        raise InvalidOptionError(
            f"table {job.ref.name}: sorting runs on Spark: give compact a session, or 'penstock compact' a --spark "
            "MASTER"
        )
    return sort(job)


def sorted_message(task: CompactTask, messages: Sequence[CommitMessage], ref: TableRef) -> CommitMessage:
    """Combine the messages of a sort into one, with the files that were read and those that replace them.

    The new files get ascending sequence numbers in their order, so a read in that order returns sorted rows; with row
    tracking, their rows keep their own.

    Args:
        messages: in the order of the rows.
    """
    for message in messages:
        if (message.partition, message.bucket) != (task.partition, task.bucket):
            raise FormatError(
                f"table {ref.name}: files of a partition or bucket hold rows of another one; nothing was changed: look "
                "at them with 'penstock fsck', and rewrite the rows of that partition"
            )
    files = tuple(file for message in messages for file in message.new_files)
    check_rows(task, files, ref)
    outputs = []
    # As Java Paimon numbers them.
    number = min(file.min_sequence_number for file in task.files) if task.total_buckets > 0 else 0
    for file in as_replacement(ref, task.files, files):
        outputs.append(replace(with_numbers(file, number, number + file.row_count - 1), level=task.level))
        number += file.row_count
    return CommitMessage(
        partition=task.partition,
        bucket=task.bucket,
        total_buckets=task.total_buckets,
        compact_before=task.files,
        compact_after=tuple(outputs),
        vectors=task.vectors,
    )


def count_ranges(task: CompactTask, target_bytes: int) -> int:
    """Return how many files of about the target size a task's rows need."""
    return max(1, -(-task.size_bytes // target_bytes))


def _every_file(
    files: list[DataFileMeta],
    is_queue: bool,  # noqa: FBT001 - the signature of Pick
) -> tuple[tuple[DataFileMeta, ...], ...]:
    return () if is_queue else (tuple(files),)


def _check_is_scalable(ref: TableRef) -> None:
    if ref.parsed(BucketOptions).bucket != -1:
        raise UnsupportedFeatureError(
            f"table {ref.name} is a queue ('bucket' is not -1), which keeps the order in which rows were written; "
            "sorting would change it: compact it without an order strategy, copy it into a table with 'bucket' = '-1', "
            "or give the order up: 'bucket-append-ordered' = 'false' and 'clustering.incremental' = 'true'"
        )


def _check_order(ref: TableRef, order: SortOrder, source: str) -> None:
    if not order.columns:
        raise InvalidOptionError(f"table {ref.name}: {source} names no column: give those that queries filter by")
    if order.strategy is OrderStrategy.HILBERT and len(order.columns) == 1:
        raise InvalidOptionError(
            f"table {ref.name}: a Hilbert curve needs two columns, and {source} names '{order.columns[0]}' alone: "
            f"choose '{OrderStrategy.ORDER}'"
        )
    fields = {field.name: field for field in ref.schema.fields}
    for place, name in enumerate(order.columns):
        if name in order.columns[:place]:
            raise InvalidOptionError(f"table {ref.name}: {source} names column '{name}' twice")
        _check_column(ref, name, fields, source)


def _check_column(ref: TableRef, name: str, fields: dict[str, DataField], source: str) -> None:
    if name not in fields:
        near = difflib.get_close_matches(name, fields, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"its columns are {', '.join(fields)}"
        raise InvalidOptionError(f"table {ref.name}: {source} names '{name}', which is not a column; {hint}")
    if name in ref.schema.partition_keys:
        raise InvalidOptionError(
            f"table {ref.name}: {source} names the partition column '{name}', which has one value in each partition; "
            "leave it out, partitions are sorted one by one"
        )
    data_type = fields[name].type
    if not isinstance(data_type, AtomicType) or data_type.root in _UNSORTABLE:
        raise InvalidOptionError(
            f"table {ref.name}: {source} names '{name}', and values of type {format_sql_type(data_type)} have no order"
        )


# Spark's timestamps count microseconds.
_PRECISION: Final = 6


def check_types(ref: TableRef) -> None:
    """Check that Spark can hold every value of every column. Raises ``UnsupportedFeatureError``."""
    for each in ref.schema.fields:
        if not _holds(each.type):
            cure = "compact without an order strategy"
            if ref.parsed(ClusteringOptions).is_incremental:
                cure = f"cluster it with Paimon on Flink, or set 'clustering.incremental' = 'false' and {cure}"
            raise UnsupportedFeatureError(
                f"table {ref.name}: column '{each.name}' is {format_sql_type(each.type)}, which Spark cannot "
                f"represent exactly, so rows cannot be sorted there: {cure}"
            )


def _holds(data_type: DataType) -> bool:
    """Whether Spark returns every value of this type unchanged."""
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element) | VectorType(element=element):
            return _holds(element)
        case MapType(key=key, value=value):
            return _holds(key) and _holds(value)
        case RowType(fields=fields):
            return all(_holds(each.type) for each in fields)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ, precision=precision):
            return (precision or 0) <= _PRECISION
        case _:
            return True
