"""A table's history as values, for charts and monitoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.table.inspect.history.buckets import BucketOrder, SequenceRange, overlapping
from penstock.table.inspect.history.commits import DEFAULT_LIMIT, Commit, StalledWatermark
from penstock.table.inspect.history.health import HealthStatus, evaluate
from penstock.table.inspect.history.history import HistoryReader, Reader, TableHistory, TagMark, history_table
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.api.table import Table

__all__ = [
    "DEFAULT_LIMIT",
    "BucketOrder",
    "Commit",
    "HealthStatus",
    "HistoryReader",
    "Reader",
    "SequenceRange",
    "StalledWatermark",
    "TableHistory",
    "TagMark",
    "evaluate",
    "history_table",
    "open_history",
    "overlapping",
]


def open_history(table: Table, *, checkpoints: Sequence[str] = (), limit: int = DEFAULT_LIMIT) -> HistoryReader:
    """Return a reader of a table's history; its later calls read only new commits.

    Args:
        checkpoints: of Spark queries to include as readers of the table; paths or URIs.
        limit: maximum number of snapshots to read.
    """
    ref = table._ref  # noqa: SLF001 - of this package
    return HistoryReader(ref, MetadataStore(ref), checkpoints=checkpoints, limit=limit)
