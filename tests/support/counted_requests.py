"""Counts of the requests to an object store, and of how many of them wait for one another.

Requests wait for one another if the second is sent after the first was answered. Time does not show this reliably, so
it is derived from the program: each thread counts the requests in a row before its next one; a task of a thread pool
continues from the count of the thread that submitted it, and a thread that waits for its result continues from the
higher count. A pool with more tasks than threads counts them in rounds. So the result is the same on every machine.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from obstore.store import MemoryStore

from penstock.io.object_store.address import parse_address
from penstock.io.object_store.client import client_of
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.object_store.settings import store_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True)
class RequestCounts:
    """Requests of one operation.

    Attributes:
        names: functions of the client library that were called, such as ``get`` and ``put``, with the object's key.
        serial: length of the longest chain of requests that waited for one another.
    """

    names: list[str] = field(default_factory=list)
    serial: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        """Number of all requests."""
        return len(self.names)


def memory_store(name: str) -> ObjectFileIO:
    """Return the storage of a new bucket in the memory of this process; its paths begin with ``s3://<name>/``."""
    address, _ = parse_address(f"s3://{name}")
    settings = store_settings(address, {"s3.endpoint": "http://127.0.0.1:1", "s3.region": name})
    client = client_of(settings)
    store = MemoryStore()
    client.preset(store)
    return ObjectFileIO(settings)


@contextmanager
def counted_requests(file_io: ObjectFileIO, *, delay_seconds: float = 0.0) -> Iterator[RequestCounts]:
    """Count the requests to one bucket by this process; only one such block may be active at a time.

    Args:
        delay_seconds: delay added to each request.
    """
    client = client_of(file_io.settings)
    inner, counts = client.library, RequestCounts()
    client.library = _CountingLibrary(inner, counts, delay_seconds)
    try:
        with _followed_pools():
            _DEPTH.value = 0
            yield counts
    finally:
        client.library = inner


class _Depth(threading.local):
    """Number of requests in a row before the next request of this thread."""

    value = 0


_DEPTH = _Depth()


class _CountingLibrary:
    def __init__(self, library: Any, counts: RequestCounts, delay_seconds: float) -> None:
        self.exceptions = library.exceptions
        self._store = library._store
        self._library = library
        self._counts = counts
        self._delay_seconds = delay_seconds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._library, name)

        def call(store: Any, *args: Any, **options: Any) -> Any:
            _DEPTH.value += 1
            with self._counts.lock:
                self._counts.names.append(f"{name} {_key(args)}")
                self._counts.serial = max(self._counts.serial, _DEPTH.value)
            if self._delay_seconds:
                time.sleep(self._delay_seconds)
            return function(store, *args, **options)

        return call


def _key(args: tuple[Any, ...]) -> str:
    if not args:
        return ""
    return args[0] if isinstance(args[0], str) else f"{len(args[0])} objects" if isinstance(args[0], list) else ""


class _Workers:
    """The threads of one pool, as counts of requests; tasks are assigned to them in rounds."""

    def __init__(self, count: int) -> None:
        self.free = [0] * count
        self.latest = 0
        self.lock = threading.Lock()

    def start(self, submitted: int) -> int:
        with self.lock:
            return max(submitted, heappop(self.free) if self.free else self.latest)

    def end(self, depth: int) -> None:
        with self.lock:
            heappush(self.free, depth)
            self.latest = max(self.latest, depth)


@contextmanager
def _followed_pools() -> Iterator[None]:
    """Pass the counts of requests on between the threads of pools."""
    submit: Any = ThreadPoolExecutor.submit
    result: Any = Future.result
    shutdown: Any = ThreadPoolExecutor.shutdown
    pools: WeakKeyDictionary[ThreadPoolExecutor, _Workers] = WeakKeyDictionary()
    ends: WeakKeyDictionary[Future[Any], list[int]] = WeakKeyDictionary()

    def counted_submit(
        pool: ThreadPoolExecutor,
        function: Callable[..., Any],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Future[Any]:
        workers = pools.setdefault(pool, _Workers(pool._max_workers))
        submitted = _DEPTH.value
        begun: list[int] = []

        def run() -> Any:
            _DEPTH.value = workers.start(submitted)
            try:
                return function(*args, **kwargs)
            finally:
                workers.end(_DEPTH.value)
                begun.append(_DEPTH.value)

        future: Future[Any] = submit(pool, run)
        ends[future] = begun
        return future

    def counted_result(future: Future[Any], timeout: float | None = None) -> Any:
        try:
            return result(future, timeout)
        finally:
            _DEPTH.value = max([_DEPTH.value, *ends.get(future, ())])

    def counted_shutdown(pool: ThreadPoolExecutor, wait: bool = True, **kwargs: bool) -> None:  # noqa: FBT001, FBT002 - as its own
        shutdown(pool, wait, **kwargs)
        if wait and pool in pools:
            _DEPTH.value = max(_DEPTH.value, pools[pool].latest)

    with (
        patch.object(ThreadPoolExecutor, "submit", counted_submit),
        patch.object(ThreadPoolExecutor, "shutdown", counted_shutdown),
        patch.object(Future, "result", counted_result),
    ):
        yield
