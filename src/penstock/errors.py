"""The error tree: one class per thing a caller would do about it.

Every message names the table (or path), what happened, and what to do, on one line that a terminal can show. All
arguments go to ``super().__init__``, so errors survive pickling from a Spark task to the driver.
"""

from __future__ import annotations

from penstock.printable import one_line


class _OneLine:
    """What is raised or warned of: one line, whatever the names and texts in it are."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class TableStoreError(_OneLine, Exception):
    """Root of every error that Penstock raises on purpose."""


class NotFoundError(TableStoreError, LookupError):
    """A database, table, snapshot, tag, column or file that was named does not exist."""


class DataLossError(NotFoundError):
    """What a stream was to read next has expired, was rolled back, or is gone with a table that was dropped."""


class AlreadyExistsError(TableStoreError):
    """Something with that name is there already."""


class InvalidOptionError(TableStoreError, ValueError):
    """An option has an invalid value, or contradicts another option."""


class InvalidSchemaError(TableStoreError, ValueError):
    """A schema, or a change of one, that the format does not allow."""


class SchemaMismatchError(TableStoreError, ValueError):
    """Rows that do not fit the table: missing, extra or wrongly typed columns, or null in a NOT NULL column."""


class InvalidFilterError(TableStoreError, ValueError):
    """A filter that cannot be parsed, or that does not fit the table's columns."""


class InvalidSqlError(TableStoreError, ValueError):
    """A statement that cannot be parsed; the message has line and column, and the nearest thing that works."""


class UnsupportedFeatureError(TableStoreError):
    """The format has it, Penstock does not; the message says what to use instead."""


class FormatError(TableStoreError):
    """Bytes on storage that are not what the format says: truncated, zero-length, or of an unknown version."""


class StorageError(TableStoreError):
    """The storage refused or failed.

    Args:
        message: what was tried, on which path, and what the storage said.
        retryable: whether the same call may well succeed later.
    """

    def __init__(self, message: str, retryable: bool = False) -> None:  # noqa: FBT001, FBT002 - positional, so that pickling works
        super().__init__(message, retryable)
        self.retryable = retryable

    def __str__(self) -> str:
        return one_line(str(self.args[0]))


class OutOfMemoryError(StorageError, MemoryError):
    """Memory ran out. Use smaller batches or buffers, or give the process more; nothing of the call is visible."""


class CommitConflictError(TableStoreError):
    """Another commit got in the way for good; nothing of this one is visible. Plan again from the latest snapshot."""


class CommitUnknownError(TableStoreError):
    """The storage did not say whether the snapshot was created. Nothing was deleted; check before trying again."""


class CheckpointError(TableStoreError):
    """A streaming query's checkpoint does not fit the table: another table's, set back, or too old to tell."""


class LeaseHeldError(TableStoreError):
    """What only one may use at a time (a consumer, a query's checkpoint) is in use by another, or was taken over."""


class TimedOutError(TableStoreError, TimeoutError):
    """What was waited for did not come in the time that it was given."""


class DataLossWarning(_OneLine, UserWarning):
    """A stream has skipped rows that it could not read any more, because an option allows it."""


class OtherEngineWarning(_OneLine, UserWarning):
    """Another engine commits to a table on an object store, which can replace commits of Penstock there."""


class OptionWarning(_OneLine, UserWarning):
    """An unknown option, or one without effect; the message has the nearest known name."""
