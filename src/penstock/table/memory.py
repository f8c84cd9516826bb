"""Errors for work on a table that runs out of memory."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.errors import OutOfMemoryError, TableStoreError
from penstock.io.failures import MEMORY_CURE

if TYPE_CHECKING:
    from collections.abc import Iterator

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
