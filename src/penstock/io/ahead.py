"""Requests to an object store that are sent before the calls that need their responses.

A store takes tens of milliseconds for each request. Inside ``FileIO.prefetch``, calls of this thread whose requests
were sent ahead receive those responses; all other calls, and all calls to other storages, work as usual. So the calling
code keeps its sequential structure without waiting for each response in turn.

A response is used once, unless more uses were requested. It is dropped when it is older than two seconds, and when this
thread changes anything on the same storage, so a check after a change never sees an earlier response.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import TableStoreError
from penstock.io.file_io import Ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from penstock.io.file_io import FileStatus

_THREADS: Final = 16
_LONGEST_SECONDS: Final = 2.0


class StoreAhead(Ahead):
    """Sends the requests of one block to an object store, in threads.

    Args:
        read: reads a file, without looking for answers.
        list_children: lists a directory, likewise.
    """

    def __init__(self, read: Callable[[str], bytes], list_children: Callable[[str], Sequence[FileStatus]]) -> None:
        self._read = read
        self._list = list_children
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="penstock-ahead")
        # By kind and path: when the request was sent, how many calls may still receive the answer, and the answer.
        self._answers: dict[tuple[str, str], tuple[float, int, Future[Any]]] = {}
        self._lock = threading.Lock()

    def read(self, path: str, *, then: Callable[[bytes], None] | None = None, uses: int = 1) -> None:
        """Send a read in a thread."""

        def load() -> bytes:
            data = self._read(path)
            if then is not None:
                then(data)
            return data

        self._start("read", path, load, uses)

    def list(self, path: str) -> None:
        """Send a listing in a thread."""
        self._start("list", path, lambda: self._list(path))

    def has(self, path: str) -> bool:
        """Whether there is an answer that is recent enough."""
        with self._lock:
            found = self._answers.get(("read", path))
        return found is not None and not _is_old(found[0])

    def drop(self, prefix: str) -> None:
        """Drop answers, used or under way."""
        with self._lock:
            self._answers = {key: answer for key, answer in self._answers.items() if not key[1].startswith(prefix)}

    def take(self, kind: str, path: str) -> Future[Any] | None:
        """Return the answer of a request, which counts as a use; None if there is none, or it is too old."""
        with self._lock:
            found = self._answers.pop((kind, path), None)
            if found is not None and found[1] > 1:
                self._answers[kind, path] = (found[0], found[1] - 1, found[2])
        return None if found is None or _is_old(found[0]) else found[2]

    def close(self) -> None:
        """Drop all answers, without waiting for those under way."""
        self.drop("")
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, kind: str, path: str, load: Callable[[], Any], uses: int = 1) -> None:
        with self._lock:
            if (kind, path) not in self._answers:
                self._answers[kind, path] = (time.monotonic(), uses, self._pool.submit(load))


class _ThreadBlocks(threading.local):
    """The open blocks of this thread."""

    def __init__(self) -> None:
        self.by_storage: dict[object, StoreAhead] = {}


_OPEN: Final = _ThreadBlocks()


def _forget_answers() -> None:
    # A forked process has no threads that could give them.
    _OPEN.by_storage.clear()


os.register_at_fork(after_in_child=_forget_answers)


def take_answer(storage: object, kind: str, path: str) -> Future[Any] | None:
    """Return the answer to a request that was sent ahead in this thread; None if there is none."""
    block = _OPEN.by_storage.get(storage)
    return None if block is None else block.take(kind, path)


def drop_answers(storage: object) -> None:
    """Drop all answers of this thread from a storage that it is about to change."""
    block = _OPEN.by_storage.get(storage)
    if block is not None:
        block.drop("")


@contextmanager
def block_of(storage: object, new_block: Callable[[], StoreAhead]) -> Iterator[StoreAhead]:
    """Open a block of this thread on a storage; inside another one, yield that."""
    blocks = _OPEN.by_storage
    outer = blocks.get(storage)
    if outer is not None:
        yield outer
        return
    block = blocks[storage] = new_block()
    try:
        yield block
    finally:
        blocks.pop(storage, None)
        block.close()


def is_answer_a_file(answer: Future[Any]) -> bool | None:
    """Whether the file of a read exists; None if the read failed, so that a separate request is needed."""
    try:
        answer.result()
    except LookupError:
        return False
    except TableStoreError:
        return None
    return True


def _is_old(started: float) -> bool:
    return time.monotonic() - started > _LONGEST_SECONDS
