"""Storage that records its calls, and storage that fails on demand."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar

from penstock.errors import NotFoundError, StorageError
from penstock.io.file_io import FileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from types import TracebackType

    from penstock.io.file_io import FileStatus

T = TypeVar("T")


class Operation(StrEnum):
    """Calls of a ``FileIO``, and of the streams that it opens for writing."""

    READ = "read"
    WRITE = "write"
    PUT_IF_ABSENT = "put_if_absent"
    OPEN_INPUT = "open_input"
    OPEN_OUTPUT = "open_output"
    STREAM_WRITE = "stream_write"
    STREAM_CLOSE = "stream_close"
    LIST = "list"
    EXISTS = "exists"
    DELETE = "delete"
    RENAME_FILE = "rename_file"
    RENAME_DIR = "rename_dir"


MUTATIONS = frozenset(
    {
        Operation.WRITE,
        Operation.PUT_IF_ABSENT,
        Operation.OPEN_OUTPUT,
        Operation.STREAM_WRITE,
        Operation.STREAM_CLOSE,
        Operation.DELETE,
        Operation.RENAME_FILE,
        Operation.RENAME_DIR,
    }
)
"""Operations that change what is stored."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to storage."""

    operation: Operation
    path: str


class Fault(StrEnum):
    """How the chosen call fails.

    A crash raises ``ProcessDiedError`` from that call and from all later calls, also on open streams: so nothing that a
    dead process would have done next happens, and no clean-up. The other two raise a retryable ``StorageError`` once,
    and later calls work.
    """

    CRASH_BEFORE = "crash_before"
    CRASH_AFTER = "crash_after"
    REFUSED = "refused"
    ANSWER_LOST = "answer_lost"


class ProcessDiedError(BaseException):
    """Simulates the death of the process; ``except Exception`` does not catch it."""


class RecordingFileIO(FileIO):
    """``FileIO`` that delegates all calls and records them.

    Thread-safe. A pickled copy has the calls recorded so far, and records its own calls from then on.
    """

    def __init__(self, inner: FileIO) -> None:
        self.inner = inner
        self._calls: list[Call] = []
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _calls=list(state["_calls"]))
        self._lock = threading.Lock()

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far, in order."""
        with self._lock:
            return tuple(self._calls)

    def paths(self, *operations: Operation, containing: str = "") -> tuple[str, ...]:
        """Return the paths of calls of these kinds (default: all) whose path contains the text, in order."""
        return tuple(
            call.path
            for call in self.calls
            if (not operations or call.operation in operations) and containing in call.path
        )

    def forget(self) -> None:
        """Clear the recorded calls."""
        with self._lock:
            self._calls.clear()

    def file_version(self, path: str) -> Hashable:
        """Delegate, without recording: it costs no request."""
        return self.inner.file_version(path)

    def read(self, path: str) -> bytes:
        """Delegate."""
        return self._call(Operation.READ, path, lambda: self.inner.read(path))

    def write(self, path: str, data: bytes) -> None:
        """Delegate."""
        self._call(Operation.WRITE, path, lambda: self.inner.write(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Delegate."""
        return self._call(Operation.PUT_IF_ABSENT, path, lambda: self.inner.put_if_absent(path, data))

    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401 - as the seam has it
        """Delegate; reads of the stream are not recorded, since their number depends on the reader."""
        return self._call(Operation.OPEN_INPUT, path, lambda: self.inner.open_input(path))

    def open_output(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Delegate; each write and the close of the stream are recorded as calls too."""
        return _Output(self, path, self._call(Operation.OPEN_OUTPUT, path, lambda: self.inner.open_output(path)))

    def list(self, path: str) -> Sequence[FileStatus]:
        """Delegate."""
        return self._call(Operation.LIST, path, lambda: self.inner.list(path))

    def exists(self, path: str) -> bool:
        """Delegate."""
        return self._call(Operation.EXISTS, path, lambda: self.inner.exists(path))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delegate."""
        return self._call(Operation.DELETE, path, lambda: self.inner.delete(path, recursive=recursive))

    def rename_file(self, source: str, target: str) -> None:
        """Delegate; the recorded path is the source."""
        self._call(Operation.RENAME_FILE, source, lambda: self.inner.rename_file(source, target))

    def rename_dir(self, source: str, target: str) -> bool:
        """Delegate; the recorded path is the source."""
        return self._call(Operation.RENAME_DIR, source, lambda: self.inner.rename_dir(source, target))

    def to_uri(self, path: str) -> str:
        """Delegate; not recorded, since it does not access storage."""
        return self.inner.to_uri(path)

    def to_uris(self, directory: str, names: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Delegate."""
        return self.inner.to_uris(directory, names)

    def _note(self, operation: Operation, path: str) -> int:
        """Record the call; return its number, from 1."""
        with self._lock:
            self._calls.append(Call(operation, path))
            return len(self._calls)

    def _call(self, operation: Operation, path: str, effect: Callable[[], T]) -> T:
        self._note(operation, path)
        return effect()


class FailingFileIO(RecordingFileIO):
    """``FileIO`` whose call number ``at`` fails; without a fault it only counts the calls.

    Args:
        at: number of the call, from 1, in the order of ``calls``.
    """

    def __init__(self, inner: FileIO, fault: Fault | None = None, at: int = 0) -> None:
        super().__init__(inner)
        self.fault = fault
        self.at = at
        self.is_dead = False

    @property
    def call_count(self) -> int:
        """Calls so far."""
        return len(self.calls)

    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Delegate; after a crash, reads of the stream fail too."""
        return _Input(self, super().open_input(path))

    def check_alive(self) -> None:
        """Raise ``ProcessDiedError`` after a crash."""
        if self.is_dead:
            raise ProcessDiedError(f"the process died at call {self.at}")

    def _call(self, operation: Operation, path: str, effect: Callable[[], T]) -> T:
        self.check_alive()
        number = self._note(operation, path)
        if self.fault is None or number != self.at:
            return effect()
        if self.fault in {Fault.CRASH_AFTER, Fault.ANSWER_LOST}:
            with suppress(NotFoundError):  # this result is lost too
                lost = effect()
                if operation in {Operation.OPEN_INPUT, Operation.OPEN_OUTPUT}:
                    lost.close()  # type: ignore[attr-defined] # no caller gets the stream
        self.is_dead = self.fault in {Fault.CRASH_BEFORE, Fault.CRASH_AFTER}
        self.check_alive()
        raise StorageError(f"{operation} {path}: call {number} was made to fail ({self.fault})", True)  # noqa: FBT003 - positional, so that pickling works


class _Output:
    """A stream for writing; its writes and its close are recorded as calls of the ``FileIO``.

    Not a subclass of ``io.IOBase``, which is closed when it is garbage-collected; a dead process closes nothing.
    """

    def __init__(self, owner: RecordingFileIO, path: str, inner: Any) -> None:  # noqa: ANN401 - any stream
        self._owner = owner
        self._path = path
        self._inner = inner

    @property
    def closed(self) -> bool:
        return bool(self._inner.closed)

    def write(self, data: Any) -> int:  # noqa: ANN401 - whatever has the buffer protocol
        return self._owner._call(  # noqa: SLF001 - one class in two parts
            Operation.STREAM_WRITE, self._path, lambda: int(self._inner.write(data))
        )

    def flush(self) -> None:
        self._inner.flush()

    def tell(self) -> int:
        return int(self._inner.tell())

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if not self.closed:
            self._owner._call(Operation.STREAM_CLOSE, self._path, self._inner.close)  # noqa: SLF001 - see above

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Input:
    """A stream for reading, whose reads fail after a crash of its ``FileIO``."""

    def __init__(self, owner: FailingFileIO, inner: Any) -> None:  # noqa: ANN401 - any stream
        self._owner = owner
        self._inner = inner

    @property
    def closed(self) -> bool:
        return bool(self._inner.closed)

    def read(self, size: int | None = None) -> bytes:
        self._owner.check_alive()
        return bytes(self._inner.read() if size is None or size < 0 else self._inner.read(size))

    def seek(self, position: int, whence: int = 0) -> int:
        return int(self._inner.seek(position, whence))

    def tell(self) -> int:
        return int(self._inner.tell())

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
