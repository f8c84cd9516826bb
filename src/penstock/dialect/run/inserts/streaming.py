"""Triggers and checkpoints of streaming inserts."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.dialect.settings import Settings

_UNSAFE: Final = re.compile(r"[^\w.-]+")


def stream_trigger(settings: Settings, *, ends_at_start: bool) -> dict[str, object] | None:
    """Return the trigger of a streaming insert; None to run micro-batches without a pause."""
    # A query with another bound waits for rows that are not written yet, and ends at the bound.
    if ends_at_start:
        return {"availableNow": True}
    return None if settings.interval_ms is None else {"processingTime": f"{settings.interval_ms} milliseconds"}


def checkpoint_for(settings: Settings, table: str, query: str) -> str:
    """Return the checkpoint directory of a streaming insert.

    If the settings name a checkpoint directory, the result is a sub-directory of it. Its name is the query's name, or
    else it is derived from the target and the query's text, so that the same statement resumes where it stopped.
    Without one, the result is a temporary directory, which is deleted when the process ends.
    """
    if settings.checkpoints is None:
        folder = tempfile.mkdtemp(prefix="penstock-sql-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    words = " ".join(query.split())
    name = settings.name or f"{table}-{zlib.crc32(words.encode()):08x}"
    return f"{settings.checkpoints.rstrip('/')}/{_UNSAFE.sub('_', name)}"
