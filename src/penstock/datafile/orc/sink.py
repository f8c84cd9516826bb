"""What pyarrow writes an ORC file into: it never fails, but keeps what has failed for whoever asks."""

from __future__ import annotations

from typing import Any


class OrcSink:
    """Passes bytes on until that fails; from then on it drops them.

    The ORC library writes in destructors too, and ends the process where that fails: a full disk would end a Spark
    executor. So nothing is raised from here.
    """

    closed = False

    def __init__(self, target: Any) -> None:  # noqa: ANN401 - whatever FileIO.open_output gives
        self._target = target
        self._failure: BaseException | None = None
        self._is_dropped = False
        self._size = 0

    def write(self, data: bytes) -> int:
        """Pass bytes on, or drop them."""
        size = len(data)
        self._size += size
        if self._failure is None and not self._is_dropped:
            try:
                self._target.write(data)
            except BaseException as failure:  # noqa: BLE001 - ``check`` raises it
                self._failure = failure
        return size

    def tell(self) -> int:
        """Bytes so far, with those that were dropped: the library counts them too."""
        return self._size

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """The target is closed by whoever opened it."""

    def drop(self) -> None:
        """Drop what still comes: the file goes away."""
        self._is_dropped = True

    def check(self) -> None:
        """Raise what has failed."""
        if self._failure is not None:
            raise self._failure
