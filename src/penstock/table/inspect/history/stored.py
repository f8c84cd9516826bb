"""The commits of a table as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.table.inspect.history.commits import Commit

_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()

HISTORY_SCHEMA: Final = pa.schema(
    {
        "snapshot_id": _LONG,
        "commit_kind": _TEXT,
        "commit_time": pa.timestamp("ms", tz="UTC"),
        "commit_user": _TEXT,
        "added_rows": _LONG,
        "added_files": _LONG,
        "added_bytes": _LONG,
        "removed_rows": _LONG,
        "removed_files": _LONG,
        "removed_bytes": _LONG,
        "rows": _LONG,
        "files": _LONG,
        "bytes": _LONG,
        "small_files": _LONG,
        "watermark": _LONG,
        "event_time_lag_ms": _LONG,
    }
)
"""Columns of ``history_table``."""


def history_table(commits: Iterable[Commit]) -> pa.Table:
    """Return one row per commit, in order."""
    rows = [_row(commit) for commit in commits]
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(HISTORY_SCHEMA)]
    return pa.Table.from_arrays(columns, schema=HISTORY_SCHEMA)


def _row(commit: Commit) -> tuple[object, ...]:
    snapshot, added, removed, live = commit.snapshot, commit.change.added, commit.change.removed, commit.live
    return (
        snapshot.id,
        snapshot.commit_kind.value,
        snapshot.time_millis,
        snapshot.commit_user,
        added.rows,
        added.files,
        added.bytes,
        removed.rows,
        removed.files,
        removed.bytes,
        live.rows,
        live.files,
        live.bytes,
        live.small_files,
        commit.watermark,
        commit.event_time_lag_ms,
    )
