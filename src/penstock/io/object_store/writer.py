"""Write an object piece by piece, in bounded memory.

A small object is one put when it is closed. A thread uploads a larger one in parts while it is written. An object is
visible only after ``close``; an aborted upload leaves no object.
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
# Parts in the queue, and parts in concurrent requests: 40 MB per open file at most.
_WAITING_PARTS: Final = 2
_SENT_PARTS: Final = 2
# The first request of a process has little time, so that a wrong endpoint is reported soon.
_LARGE_BYTES: Final = 1024 * 1024


class _GivenUpError(Exception):
    """Aborts an upload; the library then tells the store to delete its parts."""


class ObjectWriter:
    """A stream for writing. The object exists after ``close``; after an error or without ``close`` it never exists.

    Failures are raised as ``StorageError``, by ``write`` or ``close``.
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
        """Buffer bytes for upload; blocks while the upload queue is full."""
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
        """Return the number of bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Do nothing: data is visible only after ``close``."""

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
        """Finish the upload, so that the object exists."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._upload is None:
                data = bytes(self._buffer)
                if len(data) >= _LARGE_BYTES:
                    self._client.await_answer(self._key)
                self._client.call(lambda library, store: library.put(store, self._key, data, use_multipart=False))
            else:
                self._upload.finish(bytes(self._buffer))
        except StoreFailureError as error:
            raise self._error(error) from None
        except BaseException:  # such as an interrupt while this waits for the upload
            self._give_up()
            raise
        finally:
            self._buffer = bytearray()

    def abort(self) -> None:
        """Abort without creating the object; the store deletes the uploaded parts."""
        if not self.closed:
            self.closed = True
            self._buffer = bytearray()
            self._give_up()

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
        """Abort the upload if the stream was not closed."""
        if not getattr(self, "closed", True):
            self.abort()

    def _give_up(self) -> None:
        if self._upload is not None and self._upload.process_id == os.getpid():
            self._upload.give_up()  # a forked process has this object, but not the thread

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
    """An upload in parts by a background thread."""

    def __init__(self, client: StoreClient, key: str) -> None:
        self._parts: Queue[bytes | _GivenUpError | None] = Queue(maxsize=_WAITING_PARTS)
        self._failure: BaseException | None = None
        self._has_end = False
        self._client = client
        self._key = key
        self.process_id = os.getpid()
        self._thread = threading.Thread(target=self._run, name="penstock-upload", daemon=True)
        self._thread.start()

    def send(self, part: bytes) -> None:
        """Queue a part. Raises ``StoreFailureError``, or what the library raises, if an earlier part failed."""
        self._parts.put(part)
        if self._failure is not None:
            self.give_up()
            raise self._failure

    def finish(self, rest: bytes) -> None:
        """Send the last part and wait until the object exists. Raises as ``send``."""
        if rest:
            self.send(rest)
        self._parts.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def give_up(self) -> None:
        """Abort the upload without creating the object."""
        self._parts.put(_GivenUpError())
        self._thread.join()

    def _run(self) -> None:
        def put(library: Any, store: Any) -> None:  # noqa: ANN401 - of a library without types
            parts = self._take()
            library.put(
                store, self._key, parts, use_multipart=True, chunk_size=_PART_BYTES, max_concurrency=_SENT_PARTS
            )

        try:
            self._client.await_answer(self._key)  # the parts are taken once, so this cannot be repeated
            self._client.call(put)
        except _GivenUpError:
            return
        except BaseException as error:  # noqa: BLE001 - it is raised by ``send`` or ``finish``
            self._failure = error
            while not self._has_end:  # drain the queue, so that ``send`` does not block
                self._has_end = not isinstance(self._parts.get(), bytes)

    def _take(self) -> Iterator[bytes]:
        while True:
            part = self._parts.get()
            if isinstance(part, bytes):
                yield part
                continue
            self._has_end = True
            if part is None:
                return
            raise part
