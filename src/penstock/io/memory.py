"""Tables in the memory of one process, for tests and experiments."""

from __future__ import annotations

import io
import threading
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from penstock.clocks import utc_millis
from penstock.errors import NotFoundError, StorageError
from penstock.io.file_io import FileIO, FileStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Store:
    """Objects by path, with the paths sorted so that a listing reads only its own directory."""

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
        """Return the paths inside a directory at any depth, sorted."""
        low, high = _span(path)
        return self.paths[bisect_left(self.paths, low) : bisect_left(self.paths, high)]

    def has_dir(self, path: str) -> bool:
        low, _ = _span(path)
        index = bisect_left(self.paths, low)
        return index < len(self.paths) and self.paths[index].startswith(low)

    def children(self, path: str) -> list[FileStatus]:
        """Return the files and directories directly below; reads one path of each sub-directory."""
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
class MemoryFileIO(FileIO):
    """``FileIO`` over a store that all ``MemoryFileIO`` with the same name share, inside one process.

    Thread-safe. If it is pickled to another process, the store there is empty. A directory exists only while it
    contains an object, as on object stores.

    Attributes:
        name: of the store, which is created at first use.
        clock: returns modification times, ms since 1970-01-01 UTC; must be a module-level function for pickling.
    """

    name: str
    clock: Callable[[], int] = field(default=utc_millis, compare=False)

    def read(self, path: str) -> bytes:
        """Return the whole object."""
        store = self._store()
        with store.lock:
            if path in store.objects:
                return store.objects[path][0]
        raise _missing("read", path)

    def write(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        store = self._store()
        with store.lock:
            store.put(path, bytes(data), self.clock())

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object only if the path does not exist, under the store's lock."""
        store = self._store()
        with store.lock:
            if path in store.objects or store.has_dir(path):
                return False
            store.put(path, bytes(data), self.clock())
            return True

    def file_version(self, path: str) -> bytes:
        """Return the content."""
        return self.read(path)

    def open_input(self, path: str) -> BinaryIO:
        """Open for random reading; later writes are not visible."""
        return io.BytesIO(self.read(path))

    def open_output(self, path: str) -> BinaryIO:
        """Open a new object for writing; it is empty until it is closed."""
        self.write(path, b"")
        return _MemoryOutput(self, path)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children sorted by name."""
        store = self._store()
        with store.lock:
            return tuple(store.children(path))

    def exists(self, path: str) -> bool:
        """Whether the path is an object, or a directory with objects below it."""
        store = self._store()
        with store.lock:
            return path in store.objects or store.has_dir(path)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete an object, or with ``recursive`` all objects below."""
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
        """Move all objects below the source, under the store's lock."""
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
        """Return ``memory://<name>/...``, which no Spark reader can open."""
        return path if "://" in path else f"memory://{self.name}/{path.lstrip('/')}"

    def discard(self) -> None:
        """Remove the store and all its objects."""
        with _STORES_LOCK:
            _STORES.pop(self.name, None)

    def _store(self) -> _Store:
        with _STORES_LOCK:
            return _STORES.setdefault(self.name, _Store())


class _MemoryOutput(io.BytesIO):
    """A buffer that ``close`` writes to the store; without ``close`` nothing is written."""

    def __init__(self, file_io: MemoryFileIO, path: str) -> None:
        super().__init__()
        self._file_io = file_io
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._file_io.write(self._path, self.getvalue())
        super().close()

    def __del__(self) -> None:
        """Do nothing; the base class would call ``close``."""


def _span(path: str) -> tuple[str, str]:
    """Return the bounds of the sorted paths inside a directory; in ASCII ``0`` follows ``/``."""
    base = path.rstrip("/")
    return f"{base}/", f"{base}0"


def _missing(action: str, path: str) -> NotFoundError:
    return NotFoundError(f"cannot {action} {path}: it does not exist")
