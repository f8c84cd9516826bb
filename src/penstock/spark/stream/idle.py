"""Timer for the work on a table while its query is idle, when Spark runs no micro-batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from penstock.errors import TableStoreError
from penstock.printable import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG: Final = open_log(__name__)
# Idle timeouts are seconds or longer.
_LOOK_SECONDS: Final = 0.5


class IdleTimer:
    """Calls a function periodically on a separate thread, until ``end``.

    Args:
        check: the function. Its ``TableStoreError`` is logged, and the next call tries again.
        name: name of the query and its table, for messages.
    """

    def __init__(self, check: Callable[[], None], name: str) -> None:
        self._check = check
        self._name = name
        self._is_over = threading.Event()
        self._last_failure = ""
        # A plain thread: with the local properties of the stream, Spark would cancel its jobs with those of the stream.
        self._thread = threading.Thread(target=self._run, name=f"idle check of {name}", daemon=True)

    def begin(self) -> None:
        """Start the timer."""
        self._thread.start()

    def end(self) -> None:
        """Stop the timer, and wait for a call that is running."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            try:
                self._check()
            except TableStoreError as error:
                if str(error) != self._last_failure:
                    self._last_failure = str(error)
                    _LOG.warning("%s: while it has no rows: %s; it is tried again", self._name, error)
