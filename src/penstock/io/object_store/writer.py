"""Writing an object piece by piece, in bounded memory.

Small objects are one put when they are closed. Larger ones are uploaded in parts by a thread while they are written;
nobody sees them before they are closed, and given up they leave nothing.
"""

from __future__ import annotations

import os
import threading
from queue import Queue
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.io.object_store.client import StoreFailureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from penstock.io.object_store.client import StoreClient

_PART_BYTES: Final = 8 * 1024 * 1024
# Parts that wait for the thread, and those that it sends at once: 40 MB an open file at most.
_WAITING_PARTS: Final = 2
_SENT_PARTS: Final = 2


class _GivenUpError(Exception):
    """Ends an upload; the library then tells the store to forget its parts."""


class ObjectWriter:
    """A stream for writing. Closed, the object is there; left by an error or dropped, it never is.

    What the store refuses is raised as a ``StorageError``, by ``write`` or ``close``.
    """

    def __init__(self, client: StoreClient, key: str, path: str) -> None:
        self.closed = False
        self._client = client
        self._key = key
        self._path = path
        self._buffer = bytearray()
        self._size = 0
        self._upload: _Upload | None = None

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Take bytes; waits while many are on their way."""
        if self.closed:
            raise ValueError(f"{self._path} is closed")
        view = memoryview(data).cast("B")
        self._buffer += view
        self._size += view.nbytes
        while len(self._buffer) >= _PART_BYTES:
            self._send(bytes(self._buffer[:_PART_BYTES]))
            del self._buffer[:_PART_BYTES]
        return view.nbytes

    def tell(self) -> int:
        """Bytes so far."""
        return self._size

    def flush(self) -> None:
        """Nothing is seen before ``close``."""

    def readable(self) -> bool:
        """Whether ``read`` works."""
        return False

    def writable(self) -> bool:
        """Whether ``write`` works."""
        return True

    def seekable(self) -> bool:
        """Whether ``seek`` works."""
        return False

    def close(self) -> None:
        """Make the object."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._upload is None:
                data = bytes(self._buffer)
                self._client.call(lambda library, store: library.put(store, self._key, data, use_multipart=False))
            else:
                self._upload.finish(bytes(self._buffer))
        except StoreFailureError as error:
            raise self._error(error) from None
        finally:
            self._buffer = bytearray()

    def abort(self) -> None:
        """Make no object, and have the store forget what it was sent."""
        if not self.closed:
            self.closed = True
            self._buffer = bytearray()
            if self._upload is not None and self._upload.process_id == os.getpid():
                self._upload.give_up()  # a forked process has the object, but not the thread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        """Give up, where nobody closed it."""
        if not getattr(self, "closed", True):
            self.abort()

    def _send(self, part: bytes) -> None:
        if self._upload is None:
            self._upload = _Upload(self._client, self._key)
        try:
            self._upload.send(part)
        except StoreFailureError as error:
            self.closed = True
            raise self._error(error) from None

    def _error(self, error: StoreFailureError) -> Exception:
        return error.failure.to_error("write", self._path, self._client.settings.address.bucket)


class _Upload:
    """A thread that uploads parts."""

    def __init__(self, client: StoreClient, key: str) -> None:
        self._parts: Queue[bytes | _GivenUpError | None] = Queue(maxsize=_WAITING_PARTS)
        self._failure: StoreFailureError | None = None
        self._client = client
        self._key = key
        self.process_id = os.getpid()
        self._thread = threading.Thread(target=self._run, name="penstock-upload", daemon=True)
        self._thread.start()

    def send(self, part: bytes) -> None:
        """Hand a part over. Raises ``StoreFailureError`` of an earlier one."""
        self._parts.put(part)
        if self._failure is not None:
            self.give_up()
            raise self._failure

    def finish(self, rest: bytes) -> None:
        """Send the last part and wait until the object is there. Raises ``StoreFailureError``."""
        if rest:
            self.send(rest)
        self._parts.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def give_up(self) -> None:
        """End the upload without an object."""
        self._parts.put(_GivenUpError())
        self._thread.join()

    def _run(self) -> None:
        def put(library: Any, store: Any) -> None:  # noqa: ANN401 - of a library without types
            parts = self._take()
            library.put(
                store, self._key, parts, use_multipart=True, chunk_size=_PART_BYTES, max_concurrency=_SENT_PARTS
            )

        try:
            self._client.call(put)
        except _GivenUpError:
            return
        except StoreFailureError as error:
            self._failure = error
            while isinstance(self._parts.get(), bytes):  # so that nobody waits to hand over
                pass

    def _take(self) -> Iterator[bytes]:
        while True:
            part = self._parts.get()
            if part is None:
                return
            if isinstance(part, _GivenUpError):
                raise part
            yield part
