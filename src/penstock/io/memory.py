"""Tables in the memory of one process, for tests and trials."""

from __future__ import annotations

import io
import threading
import time
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from penstock.errors import NotFoundError, StorageError
from penstock.io.file_io import FileStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def wall_clock_millis() -> int:
    """Now, ms since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


class _Store:
    """Objects by path, with the paths in order so that a listing touches its own directory only."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.paths: list[str] = []

    def put(self, path: str, data: bytes, modified_millis: int) -> None:
        if path not in self.objects:
            insort(self.paths, path)
        self.objects[path] = (data, modified_millis)

    def pop(self, path: str) -> tuple[bytes, int]:
        del self.paths[bisect_left(self.paths, path)]
        return self.objects.pop(path)

    def below(self, path: str) -> list[str]:
        """Paths inside a directory at any depth, in order."""
        low, high = _span(path)
        return self.paths[bisect_left(self.paths, low) : bisect_left(self.paths, high)]

    def has_dir(self, path: str) -> bool:
        low, _ = _span(path)
        index = bisect_left(self.paths, low)
        return index < len(self.paths) and self.paths[index].startswith(low)

    def children(self, path: str) -> list[FileStatus]:
        """Files and directories right below; looks at one path of each sub-directory."""
        low, high = _span(path)
        found: list[FileStatus] = []
        index, end = bisect_left(self.paths, low), bisect_left(self.paths, high)
        while index < end:
            child, slash, _ = self.paths[index][len(low) :].partition("/")
            child_path = low + child
            if slash:
                found.append(FileStatus(path=child_path, size=0, modified_millis=0, is_dir=True))
                index = bisect_left(self.paths, _span(child_path)[1])
            else:
                data, modified_millis = self.objects[child_path]
                found.append(FileStatus(path=child_path, size=len(data), modified_millis=modified_millis, is_dir=False))
                index += 1
        return sorted(found, key=lambda status: status.name)


_STORES: Final[dict[str, _Store]] = {}
_STORES_LOCK: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemoryFileIO:
    """``FileIO`` over a store that every ``MemoryFileIO`` of that name shares, inside one process.

    Safe between threads. Pickled into another process it finds an empty store there. Directories are there as long as
    something is in them, as on object stores.

    Attributes:
        name: of the store; made when first used.
        clock: modification times, ms since 1970-01-01 UTC; a module's function, for handles that are pickled.
    """

    name: str
    clock: Callable[[], int] = field(default=wall_clock_millis, compare=False)

    def read(self, path: str) -> bytes:
        """Return the whole object."""
        store = self._store()
        with store.lock:
            if path in store.objects:
                return store.objects[path][0]
        raise _missing("read", path)

    def write(self, path: str, data: bytes) -> None:
        """Create or replace."""
        store = self._store()
        with store.lock:
            store.put(path, bytes(data), self.clock())

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create only, under the store's lock."""
        store = self._store()
        with store.lock:
            if path in store.objects or store.has_dir(path):
                return False
            store.put(path, bytes(data), self.clock())
            return True

    def open_input(self, path: str) -> BinaryIO:
        """Open for random reading; what is written later does not show."""
        return io.BytesIO(self.read(path))

    def open_output(self, path: str) -> BinaryIO:
        """Open a new object: empty until it is closed."""
        self.write(path, b"")
        return _MemoryOutput(self, path)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Direct children sorted by name."""
        store = self._store()
        with store.lock:
            return tuple(store.children(path))

    def exists(self, path: str) -> bool:
        """Whether an object, or something below the path, is there."""
        store = self._store()
        with store.lock:
            return path in store.objects or store.has_dir(path)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete an object, or with ``recursive`` all below."""
        store = self._store()
        with store.lock:
            if path in store.objects:
                store.pop(path)
                return True
            below = store.below(path)
            if below and not recursive:
                raise StorageError(f"cannot delete {path}: the directory is not empty")
            for each in below:
                store.pop(each)
            return bool(below)

    def rename_file(self, source: str, target: str) -> None:
        """Move one object, under the store's lock."""
        store = self._store()
        with store.lock:
            if source not in store.objects:
                raise _missing("rename", source)
            data, modified_millis = store.pop(source)
            store.put(target, data, modified_millis)

    def rename_dir(self, source: str, target: str) -> bool:
        """Move all below the source, under the store's lock."""
        store = self._store()
        with store.lock:
            moved = store.below(source)
            if not moved:
                raise _missing("rename", source)
            if self.exists(target):
                return False
            for path in moved:
                data, modified_millis = store.pop(path)
                store.put(target.rstrip("/") + path[len(source.rstrip("/")) :], data, modified_millis)
            return True

    def to_uri(self, path: str) -> str:
        """Return ``memory://<name>/...``, which no Spark reader opens."""
        return path if "://" in path else f"memory://{self.name}/{path.lstrip('/')}"

    def discard(self) -> None:
        """Forget the store and all in it."""
        with _STORES_LOCK:
            _STORES.pop(self.name, None)

    def _store(self) -> _Store:
        with _STORES_LOCK:
            return _STORES.setdefault(self.name, _Store())


class _MemoryOutput(io.BytesIO):
    """Hands what was written to the store when it is closed; dropped without ``close`` it hands over nothing."""

    def __init__(self, file_io: MemoryFileIO, path: str) -> None:
        super().__init__()
        self._file_io = file_io
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._file_io.write(self._path, self.getvalue())
        super().close()

    def __del__(self) -> None:
        """Do nothing, where the base class would close."""


def _span(path: str) -> tuple[str, str]:
    """Bounds of the paths inside a directory; ``0`` follows ``/``."""
    base = path.rstrip("/")
    return f"{base}/", f"{base}0"


def _missing(action: str, path: str) -> NotFoundError:
    return NotFoundError(f"cannot {action} {path}: it does not exist")
