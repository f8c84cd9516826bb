"""Exit codes of the command; ``docs/cli.md`` has the same table."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from penstock.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    FormatError,
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    InvalidSqlError,
    LeaseHeldError,
    NotFoundError,
    SchemaMismatchError,
    StorageError,
    TableStoreError,
    TimedOutError,
    UnsupportedFeatureError,
)


class ExitCode(IntEnum):
    """Codes that scripts may rely on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    ALREADY_EXISTS = 4
    CONFLICT = 5
    UNKNOWN_OUTCOME = 6
    STORAGE = 7
    DAMAGED = 8
    ROWS_DO_NOT_FIT = 9
    UNSUPPORTED = 10
    IN_USE = 11
    BEHIND = 12
    TIMED_OUT = 13
    INTERRUPTED = 130


_BY_CLASS: Final[tuple[tuple[type[TableStoreError], ExitCode], ...]] = (
    (InvalidOptionError, ExitCode.USAGE),
    (InvalidSchemaError, ExitCode.USAGE),
    (InvalidFilterError, ExitCode.USAGE),
    (InvalidSqlError, ExitCode.USAGE),
    (NotFoundError, ExitCode.NOT_FOUND),
    (AlreadyExistsError, ExitCode.ALREADY_EXISTS),
    (CommitConflictError, ExitCode.CONFLICT),
    (CommitUnknownError, ExitCode.UNKNOWN_OUTCOME),
    (StorageError, ExitCode.STORAGE),
    (FormatError, ExitCode.DAMAGED),
    (SchemaMismatchError, ExitCode.ROWS_DO_NOT_FIT),
    (UnsupportedFeatureError, ExitCode.UNSUPPORTED),
    (LeaseHeldError, ExitCode.IN_USE),
    (TimedOutError, ExitCode.TIMED_OUT),
)


def exit_code_of(error: TableStoreError) -> ExitCode:
    """Return the exit code of an error."""
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), ExitCode.FAILED)
