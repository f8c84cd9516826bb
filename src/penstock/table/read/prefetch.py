"""Several streams read ahead in threads, delivered in order."""

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
    """Yield the items of all sources, one source after the other, while the next ones are read already.

    The threads end when the iterator is exhausted, fails, or is closed.

    Args:
        sources: each called once, in a thread of its own for as long as it lasts.
        threads: sources that are read at the same time.
        items_ahead: items that each may have waiting.

    Raises:
        Exception: what a source raised, when its turn has come.
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
    """Nothing more comes; ``error`` says why when that is no good reason."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Lane(Generic[_Item]):
    """The items of one source on their way between threads."""

    def __init__(self, items_ahead: int, stop: Event) -> None:
        self._queue: Queue[_Item | _End] = Queue(items_ahead)
        self._stop = stop

    def fill(self, source: Callable[[], Iterator[_Item]]) -> None:
        try:
            for item in source():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again where the items are taken
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
