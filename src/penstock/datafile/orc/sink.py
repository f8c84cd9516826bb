"""The file object that pyarrow writes an ORC file to: it never raises, but keeps the first error for the caller."""

from __future__ import annotations

from typing import Any


class OrcSink:
    """Forwards bytes to the target until a write fails; later bytes are dropped.

    The ORC library writes in destructors too, and an exception there ends the process: a full disk would end a Spark
    executor. So ``write`` does not raise.
    """

    closed = False

    def __init__(self, target: Any) -> None:  # noqa: ANN401 - whatever FileIO.open_output gives
        self._target = target
        self._failure: BaseException | None = None
        self._is_dropped = False
        self._size = 0

    def write(self, data: bytes) -> int:
        """Forward bytes to the target, or drop them."""
        size = len(data)
        self._size += size
        if self._failure is None and not self._is_dropped:
            try:
                self._target.write(data)
            except BaseException as failure:  # noqa: BLE001 - ``check`` raises it
                self._failure = failure
        return size

    def tell(self) -> int:
        """Return the number of bytes so far, including dropped ones, because the library counts them too."""
        return self._size

    def flush(self) -> None:
        """Do nothing: no bytes are buffered."""

    def close(self) -> None:
        """Do nothing: the code that opened the target closes it."""

    def drop(self) -> None:
        """Drop all further bytes, because the file will be deleted."""
        self._is_dropped = True

    def check(self) -> None:
        """Raise the first error of ``write``, if any."""
        if self._failure is not None:
            raise self._failure
