"""Map errors of the operating system, and memory that runs out, to Penstock's errors."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError, OutOfMemoryError, StorageError, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""Error numbers for a missing file; ENOTDIR: a component of the path is a file; ENAMETOOLONG: none has such a name."""

# Retryable: busy, out of handles, or a network file system that lost its server. A full disk or a missing permission
# needs an operator.
_PASSING: Final = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_CURES: Final = {
    errno.ENOSPC: "free space on that disk, for instance by expiring snapshots, then retry",
    errno.EDQUOT: "free space or have the quota raised, then retry",
    errno.EROFS: "mount that file system for writing, then retry; errors of a disk make it read-only too",
    errno.EIO: "the disk or the way to it has failed: see the log of the system, then retry",
    errno.EMFILE: "raise the limit of this process ('ulimit -n'), or use fewer threads, then retry",
    errno.ENFILE: "raise the limit of the machine ('fs.file-max'), then retry",
    errno.EFBIG: "raise the limit of file sizes ('ulimit -f'), or write smaller files ('target-file-size')",
    errno.ENAMETOOLONG: "each name in a path, such as dt=<value> of a partition, has at most 255 bytes on this storage",
    errno.EACCES: "give this user the permission, then retry",
    errno.EPERM: "give this user the permission, then retry",
}


FAILURES: Final = (OSError, MemoryError)
"""Exceptions that calls to the operating system raise."""

MEMORY_CURE: Final = (
    "give the process more memory, or let it hold less at once (smaller batches, 'write-buffer-size', fewer tasks)"
)


def is_one_of(error: BaseException | None, numbers: Collection[int]) -> bool:
    """Whether an error is an ``OSError`` with one of these numbers."""
    return isinstance(error, OSError) and error.errno in numbers


def to_storage_error(
    action: str, path: str, error: OSError | MemoryError, *, creating: bool = False
) -> NotFoundError | StorageError:
    """Return the error to raise (``from error``), with the action and the path in its message.

    Streams from ``FileIO.open_input`` and ``open_output`` raise plain ``OSError``; code that uses one maps it here.

    Args:
        action: an infinitive, "read" or "write".
        creating: the path need not exist, so a missing file is not reported as ``NotFoundError``.
    """
    if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
        return OutOfMemoryError(f"cannot {action} {path}: memory ran out; {MEMORY_CURE}", True)  # noqa: FBT003 - positional, so that pickling works
    if error.errno in ABSENT and not creating:
        return NotFoundError(f"cannot {action} {path}: it does not exist")
    reason = error.strerror or str(error)
    if error.errno is not None and reason.endswith(f"[errno {error.errno}] {os.strerror(error.errno)}"):
        reason = os.strerror(error.errno)  # without the prefix that pyarrow adds
    cure = f"; {_CURES[error.errno]}" if error.errno in _CURES else ""
    return StorageError(f"cannot {action} {path}: {reason}{cure}", error.errno in _PASSING)


def is_full(error: StorageError) -> bool:
    """Whether the storage is full, or this user's quota is used up."""
    return is_one_of(error.__cause__, _FULL)


# CPython's error text when the system refuses a thread: threads take memory and count against process limits.
_NO_THREAD: Final = "can't start new thread"


@contextmanager
def enough_memory(table: str) -> Iterator[None]:
    """Convert a ``MemoryError``, of Python or pyarrow, to an error that names the table and the remedy."""
    try:
        yield
    except TableStoreError:
        raise
    except MemoryError as error:
        detail = f" ({error})" if str(error) else ""
        raise OutOfMemoryError(f"table {table}: memory ran out{detail}; {MEMORY_CURE}", True) from error  # noqa: FBT003 - positional, so that pickling works
    except RuntimeError as error:
        if str(error) != _NO_THREAD:
            raise
        raise OutOfMemoryError(f"table {table}: the system refused a thread; {MEMORY_CURE}", True) from error  # noqa: FBT003 - see above
