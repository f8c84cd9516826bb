"""The error hierarchy, one class for each way in which a caller may react, and warnings.

Every message names the table (or path), what happened, and what to do, on one line that is safe to print. All arguments
go to ``super().__init__``, so errors survive pickling from a Spark task to the driver.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Final

from penstock.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType


# Frames between a user's line and a warning; those of the standard library are around properties and context managers.
_INTERNAL: Final = frozenset({"penstock", "contextlib", "functools"})
_OF_JAVA: Final = frozenset({"py4j", "pyspark"})
"""Packages through which Python calls Java and Java calls Python."""
_NOT_OF_USERS: Final = _OF_JAVA | {"threading", "concurrent"}
"""Packages that call this one where no line of the user is on the stack."""


class _OneLine:
    """An error or warning whose message is one line, whatever names and strings it contains."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class TableStoreError(_OneLine, Exception):
    """Base class of all errors that Penstock raises deliberately."""


class NotFoundError(TableStoreError, LookupError):
    """The named database, table, snapshot, tag, column or file does not exist."""


class DataLossError(NotFoundError):
    """A snapshot that a stream, a read or a commit needs expired, was lost or rolled back, or the table is gone."""


class AlreadyExistsError(TableStoreError):
    """An object with that name already exists."""


class InvalidOptionError(TableStoreError, ValueError):
    """An option has an invalid value, or contradicts another option."""


class InvalidSchemaError(TableStoreError, ValueError):
    """The format does not allow a schema or a schema change."""


class SchemaMismatchError(TableStoreError, ValueError):
    """Rows do not match the table: missing, extra or wrongly typed columns, or null in a NOT NULL column."""


class InvalidFilterError(TableStoreError, ValueError):
    """A filter cannot be parsed, or does not match the table's columns."""


class InvalidSqlError(TableStoreError, ValueError):
    """A statement cannot be parsed; the message has the line and column, and an alternative that works."""


class UnsupportedFeatureError(TableStoreError):
    """The format has a feature that Penstock does not support; the message says what to use instead."""


class FormatError(TableStoreError):
    """Stored bytes violate the format: truncated, empty, or of an unknown version."""


class StorageError(TableStoreError):
    """Storage rejected a request or failed.

    Args:
        message: the operation, the path, and the response of the storage.
        retryable: whether the same call may succeed later.
    """

    def __init__(self, message: str, retryable: bool = False) -> None:  # noqa: FBT001, FBT002 - positional, so that pickling works
        super().__init__(message, retryable)
        self.retryable = retryable

    def __str__(self) -> str:
        return one_line(str(self.args[0]))


class OutOfMemoryError(StorageError, MemoryError):
    """Memory ran out; nothing of the call is visible. Use smaller batches or buffers, or provide more memory."""


class CommitConflictError(TableStoreError):
    """The commit conflicts with another one, and nothing of it is visible. Repeat it from the latest snapshot."""


class CommitUnknownError(TableStoreError):
    """The storage did not answer whether the snapshot was created. Nothing was deleted; check before retrying."""


class CheckpointError(TableStoreError):
    """A checkpoint does not match the table: it is another table's, was restored from an older copy, or is too old."""


class LeaseHeldError(TableStoreError):
    """A consumer or checkpoint, which only one query may use at a time, is in use or was taken over."""


class TimedOutError(TableStoreError, TimeoutError):
    """A wait timed out."""


class DataLossWarning(_OneLine, UserWarning):
    """A stream has skipped rows that can no longer be read, because an option allows it."""


class DamagedFileWarning(_OneLine, UserWarning):
    """A damaged metadata file was left out of a result, or of an expiration, that does not need it."""


class OtherEngineWarning(_OneLine, UserWarning):
    """Another engine commits to a table on an object store, where it can replace Penstock's commits."""


class OptionWarning(_OneLine, UserWarning):
    """An option is unknown or has no effect; the message has the nearest known name."""


def warn_damaged(table: str, snapshot_ids: Sequence[int]) -> None:
    """Issue a ``DamagedFileWarning`` for snapshots whose files are damaged; none if there are no ids."""
    if snapshot_ids:
        ids = ", ".join(map(str, sorted(snapshot_ids)))
        kind = "snapshots" if len(snapshot_ids) > 1 else "snapshot"
        text = f"table {table}: {kind} {ids} cannot be read and is left out: 'penstock fsck {table}' shows why"
        warn(text.replace("is left", "are left") if len(snapshot_ids) > 1 else text, DamagedFileWarning)


def warn_left_out(table: str, kind: str, name: str | int, error: TableStoreError) -> None:
    """Issue a ``DamagedFileWarning`` for a damaged file of the table that a result does not need."""
    warn(f"table {table}: {kind} {name!r} is left out: {error}", DamagedFileWarning)


def warn(text: str, category: type[Warning]) -> None:
    """Issue a warning that names the line outside of this package from which it was called.

    For a call from the JVM, or on a thread of this package, it is the line of the thread that waits for Java, if it is
    one. Otherwise, as in Spark's own Python processes, no line is the user's: it is line 0 of ``<penstock>``.
    """
    frame = _leave(inspect.currentframe(), _INTERNAL)
    if frame is None or _package(frame) in _NOT_OF_USERS:
        stacks = sys._current_frames().values()  # noqa: SLF001 - documented, with its underscore
        waiting = [found for each in stacks if (found := _waiting_for_java(each)) is not None]
        frame = waiting[0] if len(waiting) == 1 else None
    if frame is None:
        registry = globals().setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, category, "<penstock>", 0, __name__, registry)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<unknown>")
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, module, registry)


def _leave(frame: FrameType | None, packages: frozenset[str]) -> FrameType | None:
    """Return the innermost frame that is of none of the packages."""
    while frame is not None and _package(frame) in packages:
        frame = frame.f_back
    return frame


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _waiting_for_java(frame: FrameType) -> FrameType | None:
    """Return the frame of a thread that waits for an answer of Java from which it asked; None for other threads."""
    inner = _leave(frame, frozenset({"socket"}))
    if inner is None or _package(inner) != "py4j":
        return None
    caller = _leave(inner, _INTERNAL | _OF_JAVA)
    return None if caller is None or _package(caller) == "threading" else caller
