"""Progress of streaming writes to penstock tables, which Spark's own reports cannot include."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.compact.state import CompactionState

# Includes queries that have ended.
_QUERIES_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteProgress:
    """A micro-batch of a ``write_stream`` query, after its commit.

    Attributes:
        query_id: the same after a restart from the checkpoint.
        table: name of the table that is written.
        snapshot_id: of the micro-batch; None if it had no rows, or was already committed.
        watermark: after the micro-batch, ms of event time; None if unknown. The watermark of a snapshot is never lower
            than its predecessor's.
        rows: written.
        files: data files written, with ``bytes``.
        compaction: what background merges have done, and the pending small files; None before the first commit, and if
            the query does not compact (``write-only``, output mode ``complete``).
    """

    query_id: str
    batch_id: int
    table: str
    snapshot_id: int | None
    watermark: int | None
    rows: int
    files: int
    bytes: int
    compaction: CompactionState | None


class _WriteBoard:
    """Stores the last write of each query of this process. Thread-safe."""

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[], WriteProgress]] = {}
        self._lock = Lock()

    def note(self, query_id: str, ask: Callable[[], WriteProgress]) -> None:
        with self._lock:
            self._sources.pop(query_id, None)
            self._sources[query_id] = ask
            while len(self._sources) > _QUERIES_KEPT:
                self._sources.pop(next(iter(self._sources)))

    def ask(self, query_id: str) -> WriteProgress | None:
        with self._lock:
            ask = self._sources.get(query_id)
        return None if ask is None else ask()


_BOARD: Final = _WriteBoard()


def note_write(query_id: str, ask: Callable[[], WriteProgress]) -> None:
    """Record that a query has written; ``ask`` returns the progress, with the current state of the compaction."""
    _BOARD.note(query_id, ask)


def last_write(query_id: str) -> WriteProgress | None:
    """Return the last micro-batch that a ``write_stream`` query of this process has committed.

    Args:
        query_id: ``query.id``.

    Returns:
        None if it has committed none since it was started.
    """
    return _BOARD.ask(str(query_id))
