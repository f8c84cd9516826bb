"""End on Ctrl-C or SIGTERM, at a point that the interrupted code chooses."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def until_interrupted() -> Iterator[threading.Event]:
    """Yield an event that the first interrupt sets; the second interrupt raises KeyboardInterrupt at once."""
    event = threading.Event()
    before = {each: signal.getsignal(each) for each in _SIGNALS}

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def note_it(_number: int, _frame: object) -> None:
        restore()
        event.set()

    for each in _SIGNALS:
        signal.signal(each, note_it)
    try:
        yield event
    finally:
        restore()
    if event.is_set():
        raise KeyboardInterrupt
