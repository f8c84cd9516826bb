"""The interface between Penstock and storage.

A storage implements eleven calls. Everything else has a default that is right for any storage, and that a storage
overrides where it can do better: a request to an object store takes tens of milliseconds, whatever its size, so such
storages batch requests or send them in parallel. Wrappers (``wrapper.py``) delegate all of it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from penstock.errors import NotFoundError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

_REQUESTS_AT_ONCE: Final = 64
# For data files; each one that is being read takes memory, so more of them are read at once if they are small.
_FILES_AT_ONCE: Final = 8
_SMALL_FILES_AT_ONCE: Final = 32
_FILE_BYTES_AT_ONCE: Final = 67_108_864


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """One entry of a directory listing.

    Attributes:
        path: full path, in the form that the other methods take.
        size: bytes; 0 for a directory.
        modified_millis: modification time, ms since 1970-01-01 UTC by the storage's clock; 0 if unknown.
        is_dir: a directory (object stores: a common prefix).
    """

    path: str
    size: int
    modified_millis: int
    is_dir: bool

    @property
    def name(self) -> str:
        """Last component of the path."""
        return self.path.rstrip("/").rpartition("/")[2]


class Directories(Protocol):
    """Listings of directories: a ``FileIO``, or one listing of everything below a directory."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children of a directory, as ``FileIO.list``."""
        ...


class CommitServer(Protocol):
    """The server of a catalog that decides which snapshot of a table is next."""

    def commit(self, data: bytes, base_uuid: str | None, statistics: Sequence[dict[str, Any]]) -> bool:
        """Create a snapshot; return False if it does not follow the latest one.

        Args:
            data: the encoded snapshot.
            base_uuid: of the previous snapshot.
            statistics: changes of each of its partitions.
        """
        ...

    def rollback(self, snapshot_id: int, latest_id: int | None) -> None:
        """Roll back to a snapshot, if the latest snapshot is still the given one."""
        ...


class SnapshotCommit(ABC):
    """How a snapshot becomes the latest one of its table; a storage or a catalog may bring its own."""

    __slots__ = ()

    @abstractmethod
    def create(
        self,
        file_io: FileIO,
        path: str,
        data: bytes,
        *,
        base_uuid: str | None,
        statistics: Callable[[], Sequence[dict[str, Any]]],
    ) -> bool:
        """Create a snapshot unless there is one with its id; of concurrent callers at most one gets True.

        False may also mean that an earlier call of the same caller created it and its answer was lost.

        Args:
            file_io: the storage of the caller, which may stand in front of the one that brought the strategy.
            path: of the snapshot's file.
            data: the encoded snapshot.
            base_uuid: of the previous snapshot.
            statistics: computes the changes of each of its partitions.

        Raises:
            StorageError: the storage, or the server, failed.
        """

    @property
    def may_refuse_free_id(self) -> bool:
        """Whether ``create`` may return False although no snapshot has the id, because the base has changed."""
        return False

    @property
    def server(self) -> CommitServer | None:
        """The server that decides which snapshot is next; None if the storage decides."""
        return None


@dataclass(frozen=True, slots=True)
class FileSnapshotCommit(SnapshotCommit):
    """Commits by ``put_if_absent`` of the snapshot's file."""

    def create(
        self,
        file_io: FileIO,
        path: str,
        data: bytes,
        *,
        base_uuid: str | None,  # noqa: ARG002 - of those by a server
        statistics: Callable[[], Sequence[dict[str, Any]]],  # noqa: ARG002
    ) -> bool:
        """Create the file."""
        return file_io.put_if_absent(path, data)


@dataclass(frozen=True, slots=True)
class ServerSnapshotCommit(SnapshotCommit):
    """Commits by a request to the server of the table's catalog, which writes the snapshot's file."""

    commit_server: CommitServer

    def create(
        self,
        file_io: FileIO,  # noqa: ARG002 - of those by a file
        path: str,  # noqa: ARG002
        data: bytes,
        *,
        base_uuid: str | None,
        statistics: Callable[[], Sequence[dict[str, Any]]],
    ) -> bool:
        """Send the request."""
        return self.commit_server.commit(data, base_uuid, statistics())

    @property
    def may_refuse_free_id(self) -> bool:
        """True: the server compares the base with its latest snapshot."""
        return True

    @property
    def server(self) -> CommitServer:
        """The server."""
        return self.commit_server


class FileIO(ABC):
    """Storage that holds tables. Implementations are picklable values without open handles.

    Paths are strings with ``/`` between components: absolute local paths for ``LocalFileIO``, full URIs elsewhere.
    A missing file or directory is reported as ``NotFoundError``, every other failure as ``StorageError``.
    """

    __slots__ = ()

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the whole object. Raises ``NotFoundError``."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically: a concurrent reader sees the old bytes or the new, never a mixture."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file only if it does not exist.

        Of several concurrent callers, in any processes, at most one gets True. No reader sees a partial file.
        """

    @abstractmethod
    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401 - pyarrow.NativeFile where the storage has one
        """Open for random reading: return a seekable file object that pyarrow accepts. The caller closes it."""

    @abstractmethod
    def open_output(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Open a new object for sequential writing; missing parent directories are created. The caller closes it.

        The path is unique (it holds a UUID), so no file is replaced.
        """

    @abstractmethod
    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children of a directory, sorted by name; empty when it does not exist."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether the path is an existing file or directory."""

    @abstractmethod
    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file, or with ``recursive`` a directory and its content; return False if the path did not exist."""

    @abstractmethod
    def rename_file(self, source: str, target: str) -> None:
        """Move a file to a unique path (it holds a UUID); missing parents are created. Raises ``NotFoundError``.

        A reader sees the complete target or none.
        """

    @abstractmethod
    def rename_dir(self, source: str, target: str) -> bool:
        """Move a directory; return False, and move nothing, if the target exists. Raises ``NotFoundError``.

        An empty target directory does not count as existing; the source must not be empty.
        """

    @abstractmethod
    def to_uri(self, path: str) -> str:
        """Return the path as a URI that Spark's readers accept (``file:///...``, ``s3a://...``)."""

    def to_uris(self, directory: str, names: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Return the URI of a directory, and the last parts of the URIs of files in it, as of ``to_uri``.

        Args:
            names: of the files, at least one.
        """
        uris = [self.to_uri(f"{directory}/{name}") for name in names]
        return uris[0].rpartition("/")[0], [uri.rpartition("/")[2] for uri in uris]

    # What kind of storage it is

    @property
    def is_local(self) -> bool:
        """Whether paths are those of the operating system, which other libraries can open by themselves."""
        return False

    @property
    def is_object_store(self) -> bool:
        """Whether files are objects of a store that decides about commits, of a table or of a branch."""
        return False

    @property
    def is_slow(self) -> bool:
        """Whether a request takes so long that it pays to send several in parallel."""
        return False

    @property
    def is_durable(self) -> bool:
        """Whether writes are flushed to disk, to survive a power cut."""
        return False

    @property
    def has_directories(self) -> bool:
        """Whether empty directories remain until they are deleted."""
        return True

    @property
    def storage(self) -> FileIO:
        """The storage that holds the files, without the layer of a branch or of a catalog's server."""
        return self

    def real(self, path: str) -> str:
        """Return where a file is, for messages; another path than the given one in a branch."""
        return path

    @property
    def branch_name(self) -> str | None:
        """The branch of a table whose metadata this storage shows; None for the main branch."""
        return None

    @property
    def branch_identity(self) -> str | None:
        """Identity of that branch when it was loaded; another branch can get its name."""
        return None

    @property
    def main(self) -> FileIO:
        """The storage of the main branch."""
        return self

    def metadata_root(self, location: str) -> str:
        """Return the directory of a table's snapshots and schemas: the table's own, or that of the branch."""
        return location

    @property
    def snapshot_commit(self) -> SnapshotCommit:
        """How a snapshot becomes the latest one of its table."""
        return FileSnapshotCommit()

    def storage_options(self) -> dict[str, str]:
        """Return the options with which ``resolve`` returns the same storage in another process; may hold keys."""
        return {}

    # The same storage with other settings

    def confined(self, root: str, *, readable: Sequence[str] = (), deletable: Sequence[str] = ()) -> FileIO:  # noqa: ARG002 - of those that support links
        """Return the storage, limited to directories if it supports links that could lead elsewhere; see ``Bounds``.

        Args:
            root: directory of a table.
            readable: paths of other directories on this machine whose files may be opened.
            deletable: likewise, directories whose files may be deleted.
        """
        return self

    def unconfined(self) -> FileIO:
        """Return the storage without bounds, for files outside of the table directories."""
        return self

    def with_durability(self, *, durable: bool) -> FileIO:  # noqa: ARG002 - of those that flush
        """Return the storage with ``is_durable`` set, if it can be."""
        return self

    def relaxed(self) -> FileIO:
        """Return the storage without flushing to disk: for files whose loss is harmless, such as hints and leases."""
        return self.with_durability(durable=False)

    # Single files, where a storage can do with less than the general call

    def has_file(self, path: str) -> bool:
        """Whether a file exists; the caller knows that no directory has this name."""
        return self.exists(path)

    def file_version(self, path: str) -> Hashable:  # noqa: ARG002 - of those that know it without a request
        """Return what differs if a file was replaced; None where that takes a request.

        Raises:
            NotFoundError: the file does not exist; not raised where the answer is None.
        """
        return None

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return some bytes of a file, fewer at its end.

        Raises:
            NotFoundError: the file does not exist.
            StorageError: it cannot be read.
            OSError: likewise, on some storages.
        """
        with self.open_input(path) as stream:
            stream.seek(start)
            return bytes(stream.read(length))

    def link_file(self, source: str, target: str) -> None:
        """Give a file of this machine a second name, a hard link.

        Args:
            source: may be outside of the bounds.

        Raises:
            UnsupportedFeatureError: the storage has no hard links, or the paths are on different file systems.
        """
        raise UnsupportedFeatureError(f"{source} cannot get a second name {target}: this storage has no links")

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file of this machine to a new path.

        Args:
            source: may be outside of the bounds.

        Raises:
            UnsupportedFeatureError: the storage is not on this machine.
        """
        raise UnsupportedFeatureError(f"{source} cannot be copied to {target}: this storage is not on this machine")

    def flush(self, files: Collection[str], *, root: str) -> None:  # noqa: B027 - most storages have nothing to flush
        """Flush new files to disk, with their parent directories up to ``root``, if the storage is durable.

        Raises:
            StorageError: a flush failed.
        """

    # Many files

    @property
    def delete_batch_size(self) -> int:
        """Maximum number of files that ``delete_many`` deletes with one request."""
        return 1

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; missing files are ignored.

        Raises:
            StorageError: some files may not be deleted.
        """
        for path in paths:
            self.delete(path)

    def list_tree(self, directory: str) -> Directories:  # noqa: ARG002 - of those that list all at once
        """Return the directories below a directory, from one recursive listing where supported, else on demand."""
        return self

    # Requests that are sent before their results are needed

    @contextmanager
    def prefetch(self) -> Iterator[FileIO]:
        """Yield a view of the storage: reads through it are answered by the requests that were sent ahead in the block.

        The storage itself, for which requesting does nothing, where it answers at once; see ``penstock.io.prefetch``.
        """
        yield self

    def request_read(  # noqa: B027 - of views
        self, path: str, *, then: Callable[[bytes], None] | None = None, uses: int = 1
    ) -> None:
        """Request the content of a file, unless it was requested before, if this is such a view.

        Args:
            uses: how many calls may receive the answer.
            then: called with the content, in another thread, before the answer is available; may request more.
        """

    def request_list(self, path: str) -> None:  # noqa: B027 - of views
        """Request a listing, unless it was requested before, if this is such a view."""

    def is_requested(self, path: str) -> bool:  # noqa: ARG002 - of views
        """Whether the content of a file was requested, and the answer is not used yet."""
        return False

    def drop_requested(self, prefix: str = "") -> None:  # noqa: B027 - of views
        """Drop the answers for paths that begin with the prefix."""

    def run_many(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make independent calls: in parallel if the storage is slow, otherwise in the given order.

        Raises:
            Exception: the first error, in the order of the calls, after all calls have ended.
        """
        if not self.is_slow or len(calls) < 2:
            for call in calls:
                call()
            return
        with ThreadPoolExecutor(min(_REQUESTS_AT_ONCE, len(calls)), thread_name_prefix="penstock-calls") as pool:
            tasks = [pool.submit(call) for call in calls]
        for task in tasks:
            task.result()

    def read_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Read whole files, in parallel if the storage is slow; missing files are left out.

        Returns:
            Contents by path.

        Raises:
            StorageError: the storage failed.
        """

        def read(path: str) -> bytes | None:
            try:
                return self.read(path)
            except NotFoundError:
                return None

        if not self.is_slow or len(paths) < 2:
            contents = list(map(read, paths))
        else:
            with ThreadPoolExecutor(min(_REQUESTS_AT_ONCE, len(paths)), thread_name_prefix="penstock-reads") as pool:
                contents = list(pool.map(read, paths))
        return {path: content for path, content in zip(paths, contents, strict=True) if content is not None}

    @property
    def parallel_calls(self) -> int:
        """The useful number of parallel calls: one per core; more for storages that answer slowly."""
        return _REQUESTS_AT_ONCE if self.is_slow else os.cpu_count() or 1

    def parallel_files(self, largest_bytes: int) -> int:
        """Return the useful number of data files to read in parallel.

        Args:
            largest_bytes: size of the largest of them.
        """
        if not self.is_slow:
            return os.cpu_count() or 1
        return min(_SMALL_FILES_AT_ONCE, max(_FILES_AT_ONCE, _FILE_BYTES_AT_ONCE // max(largest_bytes, 1)))

    def files_ahead(self, largest_bytes: int) -> int:
        """Return how many data files a sequential reader opens at once: one, and more small ones on slow storages.

        Args:
            largest_bytes: size of the largest of them.
        """
        if not self.is_slow:
            return 1
        return min(_SMALL_FILES_AT_ONCE, max(2, _FILE_BYTES_AT_ONCE // max(largest_bytes, 1)))
