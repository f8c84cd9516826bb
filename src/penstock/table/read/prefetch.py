"""Read-ahead of several iterators in threads, with items delivered in order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import Full, Queue
from threading import Event
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_Item = TypeVar("_Item")
_WAIT_SECONDS = 0.1


def read_ahead(sources: Sequence[Callable[[], Iterator[_Item]]], *, threads: int, items_ahead: int) -> Iterator[_Item]:
    """Yield the items of all sources, one source after another, while the next sources are read in threads.

    The threads end when the iterator is exhausted, fails, or is closed.

    Args:
        sources: each is called once, and is iterated in one thread.
        threads: number of sources that are read at the same time.
        items_ahead: maximum number of waiting items of each source; 0 for no limit.

    Raises:
        Exception: the error of a source, after the items that it yielded before.
    """
    if threads <= 1 or len(sources) <= 1:
        for source in sources:
            yield from source()
        return
    stop = Event()
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="penstock-read") as pool:
        try:
            pending: list[_Lane[_Item]] = []
            for source in sources:
                lane = _Lane[_Item](items_ahead, stop)
                pool.submit(lane.fill, source)
                pending.append(lane)
                if len(pending) > threads:
                    yield from pending.pop(0).drain()
            for lane in pending:
                yield from lane.drain()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


class _End:
    """Marks the end of a source; ``error`` is the error that ended it, None after a normal end."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Lane(Generic[_Item]):
    """Queue that passes the items of one source to the consuming thread."""

    def __init__(self, items_ahead: int, stop: Event) -> None:
        self._queue: Queue[_Item | _End] = Queue(items_ahead)
        self._stop = stop

    def fill(self, source: Callable[[], Iterator[_Item]]) -> None:
        try:
            for item in source():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - ``drain`` raises it again in the consuming thread
            self._put(_End(error))
        else:
            self._put(_End())

    def drain(self) -> Iterator[_Item]:
        while True:
            item = self._queue.get()
            if not isinstance(item, _End):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                return

    def _put(self, item: _Item | _End) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return True
        return False
