"""``FileIO`` over HDFS, by the library hdfs-native (``penstock[hdfs]``).

Source:
    HDFS has no conditional create with exactly one winner, but its rename without overwrite is a single operation of
    the name node. So a file is written under a temporary name and renamed, as Paimon does on HDFS.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import importlib.util
import os
import uuid
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote

import pyarrow as pa

from penstock.errors import InvalidOptionError, NotFoundError, StorageError, UnsupportedFeatureError
from penstock.io.file_io import FileIO, FileStatus
from penstock.io.local import MAX_READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hdfs_native import Client
    from hdfs_native import FileStatus as Entry

SCHEME: Final = "hdfs"
_LIBRARY: Final = "hdfs_native"
_SETTINGS: Final = ("dfs.", "hadoop.", "ipc.")
"""What options of a catalog, which go to the client, begin with."""

_FIRST_CALL: Final = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "200",
    "dfs.client.failover.sleep.max.millis": "1000",
}


def hdfs_location(location: str, options: Mapping[str, str]) -> tuple[HdfsFileIO, str]:
    """Return the storage of a location ``hdfs://host:port/path`` or ``hdfs://nameservice/path``, and its path.

    Raises:
        InvalidOptionError: the location names no host, or has a path that leads elsewhere.
        UnsupportedFeatureError: the library is not installed.
    """
    if importlib.util.find_spec(_LIBRARY) is None:
        raise UnsupportedFeatureError(
            f"location '{location}': HDFS needs the package hdfs-native: pip install 'penstock[hdfs]'"
        )
    authority, _, path = location.partition("://")[2].partition("/")
    if not authority:
        raise InvalidOptionError(f"location '{location}' has no name node: expected 'hdfs://host:port/path'")
    settings = tuple(sorted((key, value) for key, value in options.items() if key.startswith(_SETTINGS)))
    parts = [part for part in path.split("/") if part]
    if ".." in parts or "." in parts:
        raise InvalidOptionError(f"location '{location}' has a '.' or '..' in it: HDFS has no such path")
    return HdfsFileIO(authority=authority, settings=settings), "/".join([f"{SCHEME}://{authority}", *parts])


@dataclass(frozen=True, slots=True)
class HdfsFileIO(FileIO):
    """``FileIO`` on one HDFS. Paths are locations, ``hdfs://host:port/path``.

    HDFS has no names with a colon. Settings of Hadoop (``core-site.xml``, ``hdfs-site.xml``) come from
    ``HADOOP_CONF_DIR`` or ``HADOOP_HOME`` of each process, and from ``settings``. A process that is killed leaves
    temporary files, which orphan removal recognizes.

    Attributes:
        authority: host and port of the name node, or the name of a name service.
    """

    authority: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def read(self, path: str) -> bytes:
        """Return the content of a file of at most ``MAX_READ_BYTES``."""
        with _failing("read", path):
            reader = self._client.read(self._inner(path))
            size = len(reader)
            if size > MAX_READ_BYTES:
                raise OSError(errno.EFBIG, f"it has {size} bytes, and no metadata file has {MAX_READ_BYTES}")
            return bytes(reader.read_range(0, size)) if size else b""

    def write(self, path: str, data: bytes) -> None:
        """Write a temporary file in the same directory, then rename it to the target."""
        temporary = self._write_temporary(path, data)
        try:
            with _failing("write", path):
                self._client.rename(temporary, self._inner(path), overwrite=True)
        except BaseException:
            self._delete_quietly(temporary)
            raise

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a temporary file in the same directory, then rename it to the target unless the target exists.

        If the response to the rename is lost, the existing name shows whether it succeeded.
        """
        temporary = self._write_temporary(path, data)
        try:
            self._client.rename(temporary, self._inner(path), overwrite=False)
        except Exception as error:  # noqa: BLE001 - see _failing
            return self._is_created(path, data, temporary, error)
        return True

    def _is_created(self, path: str, data: bytes, temporary: str, error: Exception) -> bool:
        """Whether a rename that reported a failure has created the file: the client repeats lost requests."""
        with _failing("create", path):
            has_temporary, is_there = self._has(temporary), self._has(self._inner(path))
        if is_there and not has_temporary:
            return self.read(path) == data
        self._delete_quietly(temporary)
        if not is_there:
            _fail("create", path, error)
        return False

    def open_input(self, path: str) -> pa.NativeFile:
        """Open for random reading."""
        with _failing("open", path):
            return pa.PythonFile(self._client.read(self._inner(path)), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; it is visible at once, and complete when closed."""
        with _failing("create", path):
            return pa.PythonFile(self._create(self._inner(path)), mode="w")

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children sorted by name."""
        inner = self._inner(path)
        try:
            with _failing("list", path):
                found = list(self._client.list_status(inner))
        except NotFoundError:
            return ()
        # For a file, HDFS lists the file itself.
        children = [self._status(path, entry) for entry in found if entry.path.rstrip("/") != inner]
        return tuple(sorted(children, key=lambda status: status.name))

    def exists(self, path: str) -> bool:
        """Whether the path is an existing file or directory."""
        with _failing("look for", path):
            return self._has(self._inner(path))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file or an empty directory, or with ``recursive`` a directory and its content."""
        with _failing("delete", path):
            try:
                return self._client.delete(self._inner(path), recursive)
            except FileNotFoundError:
                return False

    def rename_file(self, source: str, target: str) -> None:
        """Rename a file."""
        self._rename(source, target)

    def rename_dir(self, source: str, target: str) -> bool:
        """Rename a directory, in one operation of the name node; it can replace only an empty directory."""
        with _failing("rename", source):
            if not self._client.get_file_info(self._inner(source)).isdir:
                raise NotADirectoryError(errno.EINVAL, "it is not a directory")
            try:
                is_taken = bool(self.list(target)) or not self._client.get_file_info(self._inner(target)).isdir
            except FileNotFoundError:
                is_taken = False
        if is_taken:
            return False
        try:
            self._rename(source, target)
        except StorageError:
            # Another caller was faster; the source still exists.
            if self.exists(source) and self.list(target):
                return False
            raise
        return True

    def storage_options(self) -> dict[str, str]:
        """Return the settings of the client."""
        return dict(self.settings)

    def to_uri(self, path: str) -> str:
        """Return the location, with special characters percent-encoded."""
        return f"{SCHEME}://{self.authority}{quote(self._inner(path))}"

    @property
    def _client(self) -> Client:
        return _client_of(os.getpid(), self.authority, self.settings)

    def _inner(self, path: str) -> str:
        inner = path.removeprefix(f"{SCHEME}://{self.authority}")
        if inner == path or (inner and not inner.startswith("/")):
            raise StorageError(f"{path} is not on {SCHEME}://{self.authority}")
        return inner.rstrip("/") or "/"

    def _status(self, directory: str, entry: Entry) -> FileStatus:
        return FileStatus(
            path=f"{directory.rstrip('/')}/{entry.path.rstrip('/').rpartition('/')[2]}",
            size=0 if entry.isdir else entry.length,
            modified_millis=entry.modification_time,
            is_dir=entry.isdir,
        )

    def _has(self, inner: str) -> bool:
        try:
            self._client.get_file_info(inner)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _write_temporary(self, path: str, data: bytes) -> str:
        directory, _, name = self._inner(path).rpartition("/")
        temporary = f"{directory}/.{name}.{uuid.uuid4()}.tmp"
        try:
            with _failing("write", path), self._create(temporary) as output:
                output.write(data)
        except BaseException:
            self._delete_quietly(temporary)
            raise
        return temporary

    def _create(self, inner: str) -> Any:  # noqa: ANN401 - of a library that may not be installed
        return self._client.create(inner, _library().WriteOptions(overwrite=False, create_parent=True))

    def _rename(self, source: str, target: str) -> None:
        old, new = self._inner(source), self._inner(target)
        with _failing("rename", source):
            self._client.get_file_info(old)
            self._client.mkdirs(new.rpartition("/")[0] or "/", create_parent=True)
            # With overwrite, an empty directory is replaced, and no other.
            self._client.rename(old, new, overwrite=self._client.get_file_info(old).isdir)

    def _delete_quietly(self, inner: str) -> None:
        # The result of the call is already decided; a remaining file has a temporary name.
        with contextlib.suppress(Exception):
            self._client.delete(inner, recursive=False)


def _library() -> Any:  # noqa: ANN401 - see HdfsFileIO._create
    return importlib.import_module(_LIBRARY)


@lru_cache(maxsize=16)
def _client_of(_process_id: int, authority: str, settings: tuple[tuple[str, str], ...]) -> Client:
    # One per process: the threads of a client belong to the process that created it.
    url = f"{SCHEME}://{authority}"
    # The library retries 15 times, for minutes. That is right for a name node that is being replaced, but not if there
    # is none; so the first call uses another client, which gives up after seconds.
    make: type[Client] = _library().Client
    make(url, config={**_FIRST_CALL, **dict(settings)}).get_file_info("/")
    return make(url, config=dict(settings))


@contextlib.contextmanager
def _failing(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except (NotFoundError, StorageError):
        raise
    except Exception as error:  # noqa: BLE001 - the library raises RuntimeError, and OSError of several kinds
        _fail(action, path, error)


def _fail(action: str, path: str, error: Exception) -> NoReturn:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        raise NotFoundError(f"cannot {action} {path}: it does not exist") from error
    # Errors of the name node contain its stack trace.
    text = " ".join(str(error).partition("\\n\\tat ")[0].split())
    is_passing = isinstance(error, ConnectionError | TimeoutError)
    raise StorageError(f"cannot {action} {path}: {text}", is_passing) from error
