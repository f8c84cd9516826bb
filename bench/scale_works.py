"""What ``bench.scale`` measures, for a fresh process; metadata only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.many_files import new_file, partition_value
from penstock.format.row.row import encode_row
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import STRING
from penstock.predicate.parse import parse_filter
from penstock.table.actions.changes import drop_partitions, open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.partition_scope import WrittenPartitions
from penstock.table.read.query import plan_query
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.table.ref import TableRef

NEW_PARTITIONS: Final = 1_000


def plan(ref: TableRef, filter: str | None = None) -> int:
    """Plan a read; return the number of files."""
    return plan_query(ref, MetadataStore(ref), None if filter is None else parse_filter(filter)).plan.file_count


def drop(ref: TableRef, files: str, number: str) -> int:
    """Drop a partition."""
    drop_partitions(open_committer(ref), [{"dt": _day(files, number)}])
    return 1


def overwrite(ref: TableRef, files: str, number: str) -> int:
    """Replace the files of a partition by one file."""
    messages = _messages(ref, [_day(files, str(int(number) + 20))])  # others than those that are dropped
    request = CommitRequest(
        commit_user="bench", kind=CommitKind.OVERWRITE, messages=messages, scope=WrittenPartitions()
    )
    open_committer(ref).commit(request)
    return 1


def append(ref: TableRef, _files: str, number: str) -> int:
    """Append one file to each of 1,000 new partitions."""
    messages = _messages(ref, [f"day-{number}-{partition:04d}" for partition in range(NEW_PARTITIONS)])
    request = CommitRequest(commit_user="bench", kind=CommitKind.APPEND, messages=messages)
    open_committer(ref).commit(request)
    return 1


WORKS: Final[dict[str, Callable[..., int]]] = {"plan": plan, "drop": drop, "overwrite": overwrite, "append": append}


def _messages(ref: TableRef, days: Sequence[str]) -> tuple[CommitMessage, ...]:
    buckets = int(ref.options.get("bucket", "-1"))
    return tuple(
        CommitMessage(
            partition=encode_row([day], [STRING]),
            bucket=0,
            total_buckets=buckets,
            new_files=(new_file(ref.schema, number, day),),
        )
        for number, day in enumerate(days)
    )


def _day(files: str, number: str) -> str:
    """Return a partition of the table."""
    return partition_value(int(files) * (int(number) % 100) // 100, int(files))
