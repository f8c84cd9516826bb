"""What a query does for its table while it has no rows: Spark runs no micro-batch then."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from penstock.errors import TableStoreError
from penstock.printable import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG: Final = open_log(__name__)
# Idle times are given in seconds and more.
_LOOK_SECONDS: Final = 0.5


class IdleTimer:
    """Looks again and again, on a thread of its own, until it is ended.

    Args:
        look: what is to be done; what it raises is logged, and tried again with the next look.
        name: of the query and its table, for messages.
    """

    def __init__(self, look: Callable[[], None], name: str) -> None:
        self._look = look
        self._name = name
        self._is_over = threading.Event()
        self._last_failure = ""
        # Not one that inherits the stream's properties, with which its jobs would be cancelled.
        self._thread = threading.Thread(target=self._run, name=f"silence of {name}", daemon=True)

    def begin(self) -> None:
        """Begin to look."""
        self._thread.start()

    def end(self) -> None:
        """Look no more; returns when no look is under way."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            try:
                self._look()
            except TableStoreError as error:
                if str(error) != self._last_failure:
                    self._last_failure = str(error)
                    _LOG.warning("%s: while it has no rows: %s; it is tried again", self._name, error)
