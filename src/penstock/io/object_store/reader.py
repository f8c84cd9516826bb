"""Read an object at any position, with one ranged request at a time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from penstock.io.object_store.client import StoreFailureError, content_of

if TYPE_CHECKING:
    from penstock.errors import NotFoundError, StorageError
    from penstock.io.object_store.client import StoreClient

# Enough for the footer of a file with some hundred columns, and for a small file as a whole.
_TAIL_BYTES: Final = 65_536


class ObjectReader(io.RawIOBase):
    """A seekable stream. Opening it fetches the end of the object: the footer of a data file, or a whole small file.

    Failures while reading are raised as ``StorageError``.
    """

    def __init__(self, client: StoreClient, key: str, path: str) -> None:
        super().__init__()
        self._client = client
        self._key = key
        self._path = path
        self._position = 0
        try:
            self._tail, self._size = _load_tail(client, key)
        except StoreFailureError as error:
            raise self._error("open", error) from None

    def readable(self) -> bool:
        """Whether ``read`` works."""
        return True

    def seekable(self) -> bool:
        """Whether ``seek`` works."""
        return True

    def tell(self) -> int:
        """Return the current position."""
        return self._position

    def size(self) -> int:
        """Return the size of the object in bytes."""
        return self._size

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position."""
        start = (0, self._position, self._size)[whence]
        if start + offset < 0:
            raise ValueError(f"{self._path} has no position {start + offset}")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next ``size`` bytes; fewer only at the end."""
        start = self._position
        end = self._size if size is None or size < 0 else min(self._size, start + size)
        if end <= start:
            return b""
        data = self._load(start, end)
        self._position = start + len(data)
        return data

    def readall(self) -> bytes:
        """Return all bytes from the current position on."""
        return self.read()

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever has the buffer protocol
        """Read into a buffer; return the number of bytes read."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _load(self, start: int, end: int) -> bytes:
        tail_start = self._size - len(self._tail)
        if start >= tail_start:
            return self._tail[start - tail_start : end - tail_start]
        try:
            return self._client.call(lambda library, store: _load_range(library, store, self._key, start, end))
        except StoreFailureError as error:
            raise self._error("read", error) from None

    def _error(self, action: str, error: StoreFailureError) -> NotFoundError | StorageError:
        return error.failure.to_error(action, self._path, self._client.settings.address.bucket)


def _load_tail(client: StoreClient, key: str) -> tuple[bytes, int]:
    """Return the end of an object, and its size."""

    def load(library: Any, store: Any) -> tuple[bytes, int]:  # noqa: ANN401 - of a library without types
        got = library.get(store, key, options={"range": {"suffix": _TAIL_BYTES}})
        return content_of(got), int(got.meta["size"])

    try:
        return client.call(load)
    except StoreFailureError as error:
        if not error.failure.is_empty_range and error.failure.name != "NotSupportedError":
            raise
    # Azure supports no range from the end, and S3 none of an empty object.
    size = client.call(lambda library, store: int(library.head(store, key)["size"]))
    if size == 0:
        return b"", 0
    start = max(0, size - _TAIL_BYTES)
    return client.call(lambda library, store: _load_range(library, store, key, start, size)), size


def _load_range(library: Any, store: Any, key: str, start: int, end: int) -> bytes:  # noqa: ANN401 - see above
    return content_of(library.get(store, key, options={"range": (start, end)}))
