"""Triggers and checkpoints of streaming inserts."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.dialect.parse.statements import Insert
    from penstock.dialect.settings import Settings
    from penstock.dialect.state import SqlState

_UNSAFE: Final = re.compile(r"[^\w.-]+")


def stream_trigger(settings: Settings, *, ends_at_start: bool) -> dict[str, object] | None:
    """Return the trigger of a streaming insert; None to run micro-batches without a pause."""
    # A query with another bound waits for rows that are not written yet, and ends at the bound.
    if ends_at_start:
        return {"availableNow": True}
    return None if settings.interval_ms is None else {"processingTime": f"{settings.interval_ms} milliseconds"}


def place_for(state: SqlState, settings: Settings, statement: Insert, table: str, query: str) -> tuple[str | None, str]:
    """Return name and checkpoint directory of a streaming insert; without a name in the settings, None.

    If the settings name a checkpoint directory, the checkpoint is a sub-directory of it. Its name is the query's name,
    or else it is derived from the target and the query's text, so that the same statement resumes where it stopped.
    Without one, it is a temporary directory, which is deleted when the process ends.

    Queries of one statement set run at the same time: the first one has the name, and the others have their targets
    after it.
    """
    words = " ".join(query.split())
    own = f"{table}-{zlib.crc32(words.encode()):08x}"
    name = settings.name
    if name is not None and statement.place_in_set is not None:
        name = f"{name}-{own}" if state.has_named_query else name
        state.has_named_query = True
    if settings.checkpoints is None:
        folder = tempfile.mkdtemp(prefix="penstock-sql-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return name, folder
    return name, f"{settings.checkpoints.rstrip('/')}/{_UNSAFE.sub('_', name or own)}"
