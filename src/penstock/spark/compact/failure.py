"""The error for a failed Spark job of a compaction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.errors import StorageError, TableStoreError

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

_OURS: Final = "penstock.errors."
# Spark puts the error of the task at the end of the line: "... (host executor driver): java.io.IOException: ...".
_OF_TASK: Final = re.compile(r"most recent failure: .*?\)\s*:\s*(?P<error>.+)")


def failed_job(ref: TableRef, work: str, error: Exception) -> TableStoreError:
    """Return the error to raise instead of Spark's.

    Args:
        work: what the job does, for example ``merges 3 files``.
    """
    cause = spark_cause(error)
    text = f"table {ref.name}: the Spark job that {work} failed or was cancelled, and it left no files: {cause}"
    return StorageError(text) if f"{_OURS}StorageError" in cause else TableStoreError(text)


def spark_cause(error: Exception) -> str:
    """Return the part of Spark's error text that names the cause, without stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(_OURS)]
    if ours:
        return ours[-1]
    of_task = [found["error"] for line in lines if (found := _OF_TASK.search(line))]
    return (of_task or lines or [type(error).__name__])[0]
