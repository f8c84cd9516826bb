"""Requests to an object store that are sent before their results are needed.

A store takes tens of milliseconds for each request. ``FileIO.prefetch`` yields a view of the storage: reads through it
are answered by the requests that were sent ahead, and other calls work as usual. So code that reads through the view
keeps its sequential structure without waiting for each response in turn; all other code, and all other storages, are
unaffected.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.errors import TableStoreError
from penstock.io.wrapper import WrappingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from penstock.io.file_io import FileIO, FileStatus

_THREADS: Final = 16
_MAX_AGE_SECONDS: Final = 2.0


def _new_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="penstock-prefetch")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefetchedFileIO(WrappingFileIO):
    """View of an object store that sends requests ahead, in threads.

    A response is used once, unless more uses were requested. It is dropped when it is older than two seconds, and when
    anything is changed through the view, so a check after a change never sees an earlier response.
    """

    _pool: ThreadPoolExecutor = field(default_factory=_new_pool, repr=False)
    # By kind and path: when the request was sent, how many calls may still receive the answer, and the answer.
    _answers: dict[tuple[str, str], tuple[float, int, Future[Any]]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    # A forked process has no threads that could answer.
    _process_id: int = field(default_factory=os.getpid, repr=False)

    def read(self, path: str) -> bytes:
        """Return the whole object."""
        answer = self._take("read", path)
        return self.inner.read(path) if answer is None else cast("bytes", answer.result())

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children."""
        answer = self._take("list", path)
        return self.inner.list(path) if answer is None else cast("Sequence[FileStatus]", answer.result())

    def has_file(self, path: str) -> bool:
        """Whether a file exists; a read of it answers this too."""
        answer = self._take("read", path)
        is_file = None if answer is None else _is_file(answer)
        return self.inner.has_file(path) if is_file is None else is_file

    def write(self, path: str, data: bytes) -> None:
        """Drop the answers, and delegate."""
        self.drop_requested()
        self.inner.write(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Drop the answers, and delegate."""
        self.drop_requested()
        return self.inner.put_if_absent(path, data)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Drop the answers, and delegate."""
        self.drop_requested()
        return self.inner.delete(path, recursive=recursive)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Drop the answers, and delegate."""
        self.drop_requested()
        self.inner.delete_many(paths)

    def rename_file(self, source: str, target: str) -> None:
        """Drop the answers, and delegate."""
        self.drop_requested()
        self.inner.rename_file(source, target)

    def with_durability(self, *, durable: bool) -> FileIO:
        """Return the storage itself."""
        return self.inner.with_durability(durable=durable)

    @contextmanager
    def prefetch(self) -> Iterator[FileIO]:
        """Yield this view: a block inside another one is a part of it."""
        yield self

    def request_read(self, path: str, *, then: Callable[[bytes], None] | None = None, uses: int = 1) -> None:
        """Send a read in a thread."""

        def load() -> bytes:
            data = self.inner.read(path)
            if then is not None:
                then(data)
            return data

        self._send("read", path, load, uses)

    def request_list(self, path: str) -> None:
        """Send a listing in a thread."""
        self._send("list", path, lambda: self.inner.list(path))

    def is_requested(self, path: str) -> bool:
        """Whether there is an answer that is recent enough."""
        with self._lock:
            found = self._answers.get(("read", path))
        return found is not None and not _is_old(found[0])

    def drop_requested(self, prefix: str = "") -> None:
        """Drop answers, also of requests under way."""
        with self._lock:
            for key in [key for key in self._answers if key[1].startswith(prefix)]:
                del self._answers[key]

    def close(self) -> None:
        """Drop all answers, without waiting for requests under way."""
        self.drop_requested()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _send(self, kind: str, path: str, load: Callable[[], Any], uses: int = 1) -> None:
        with self._lock:
            if (kind, path) not in self._answers:
                self._answers[kind, path] = (time.monotonic(), uses, self._pool.submit(load))

    def _take(self, kind: str, path: str) -> Future[Any] | None:
        """Return the answer of a request, which counts as a use; None if there is none, or it is too old."""
        if os.getpid() != self._process_id:
            return None
        with self._lock:
            found = self._answers.pop((kind, path), None)
            if found is not None and found[1] > 1:
                self._answers[kind, path] = (found[0], found[1] - 1, found[2])
        return None if found is None or _is_old(found[0]) else found[2]


def _is_file(answer: Future[Any]) -> bool | None:
    """Whether the file of a read exists; None if the read failed, so that a separate request is needed."""
    try:
        answer.result()
    except LookupError:
        return False
    except TableStoreError:
        return None
    return True


def _is_old(started: float) -> bool:
    return time.monotonic() - started > _MAX_AGE_SECONDS
