"""Errors of the operating system as errors of the tree."""

from __future__ import annotations

import errno
from typing import Final

from penstock.errors import NotFoundError, StorageError

ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
"""What the system says when nothing is there; ENOTDIR: a file stands where the path has a directory."""

# Busy, out of handles, or a network file system that lost its server: the next call may find it well again. A full
# disk or a missing permission stays until somebody acts.
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


def to_storage_error(action: str, path: str, error: OSError, *, creating: bool = False) -> NotFoundError | StorageError:
    """Say what was tried on which path, as the error to raise ``from error``.

    Streams from ``FileIO.open_input`` and ``open_output`` raise plain ``OSError``; whoever drives one maps it here.

    Args:
        action: an infinitive, "read" or "write".
        creating: the path need not be there, so its absence is no reason.
    """
    if error.errno in ABSENT and not creating:
        return NotFoundError(f"cannot {action} {path}: it does not exist")
    reason = error.strerror or str(error)
    return StorageError(f"cannot {action} {path}: {reason}", error.errno in _PASSING)
