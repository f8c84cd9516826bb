"""Tables on the local file system, or on a mounted one."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

import pyarrow as pa

from penstock.errors import UnsupportedFeatureError
from penstock.io.bounds import Bounds, delete_beneath
from penstock.io.failures import ABSENT, FAILURES, is_one_of, to_storage_error
from penstock.io.file_io import FileIO, FileStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

T = TypeVar("T")

# Of files that we write: they need no encoding in a URI, and do not lead out of the directory.
_PLAIN_NAMES: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\n[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
# Errors of file systems without hard links: FAT and some FUSE mounts return EPERM, others one of the rest.
_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
# A cleanup may delete a new, still empty directory before a file is created in it.
_CREATE_TRIES: Final = 4
_LEFT_OUT: Final = frozenset({errno.ENOENT, errno.ELOOP})
# Of fewer files, each is looked at.
_MIN_LISTED: Final = 16
# Only metadata is read as a whole: manifests have 8 MB by default, and no other metadata file is larger.
MAX_READ_BYTES: Final = 268_435_456
# Errors of renaming a directory to an existing path: a directory with content, a file or a link.
_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class LocalFileIO(FileIO):
    """``FileIO`` on absolute paths of the operating system.

    If a *process* is killed, each file of ``write`` and ``put_if_absent`` is either complete or a temporary file named
    ``.<name>.<uuid>.tmp``, which orphan removal recognizes. After a power cut, files that were not flushed may be
    missing, empty or truncated. With ``durable``, ``write`` and ``put_if_absent`` flush a file before it gets its final
    name and the directory afterwards, and ``flush`` does so for many data files at once. A commit calls ``flush``
    before it writes the snapshot, so every file that a snapshot refers to is on disk before the snapshot (design/0018).

    The streams of ``open_input`` and ``open_output`` raise plain ``OSError``.

    Attributes:
        durable: flush to disk, so that commits survive a power cut.
        bounds: the directories that calls may access; None for no limit.
    """

    durable: bool = False
    bounds: Bounds | None = None

    def read(self, path: str) -> bytes:
        """Return the whole content; the path must be a regular file of at most ``MAX_READ_BYTES``."""
        self._check_read("read", path)
        try:
            return _read_regular(path)
        except FAILURES as error:
            raise to_storage_error("read", path, error) from error

    def write(self, path: str, data: bytes) -> None:
        """Write a temporary file in the same directory, then rename it to the target."""
        temporary = self._write_temporary(path, data)
        try:
            temporary.replace(path)
        except FAILURES as error:
            _unlink_quietly(temporary)
            raise to_storage_error("write", path, error, creating=True) from error
        self._sync_parent(path)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a temporary file in the same directory, then hard-link it to the target; this fails if it exists.

        On a file system without hard links the target itself is opened with ``O_EXCL``. There still is only one winner,
        but a reader may see the file before it is complete, and a process that is killed during the call leaves a
        truncated file under the final name.
        """
        temporary = self._write_temporary(path, data)
        try:
            is_created = self._link(temporary, path, data)
        finally:
            _unlink_quietly(temporary)
        if is_created:
            self._sync_parent(path)
        return is_created

    def file_version(self, path: str) -> tuple[int, int, int]:
        """Return inode, size and modification time."""
        try:
            status = os.stat(path)  # noqa: PTH116 - of each cached manifest of a plan: a Path costs five times as much
        except FAILURES as error:
            raise to_storage_error("look for", path, error) from error
        return status.st_ino, status.st_size, status.st_mtime_ns

    def open_input(self, path: str) -> pa.NativeFile:
        """Open for random reading.

        The file is not memory-mapped: if another process truncated it, a signal would end this process, and mapped
        pages would count as memory of this process.
        """
        self._check_read("open", path)
        try:
            _check_regular(path, Path(path).stat().st_mode)
            return pa.OSFile(path, "rb")
        except FAILURES as error:
            raise to_storage_error("open", path, error) from error

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file for writing; it is visible at once, and complete when closed. ``flush`` puts it on disk."""
        self._check_write("create", path)
        try:
            return _with_parents(path, lambda: pa.OSFile(path, "wb"))
        except FAILURES as error:
            raise to_storage_error("create", path, error, creating=True) from error

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children sorted by name; entries deleted during the call and circular links are left out.

        With ``bounds`` set, a link is listed as a small file, without reading its target.
        """
        self._check_read("list", path)
        found: list[FileStatus] = []
        base = path.rstrip("/")
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    status = _status_of(base, entry, follow_links=self.bounds is None)
                    if status is not None:
                        found.append(status)
        except FAILURES as error:
            if is_one_of(error, ABSENT):
                return ()
            raise to_storage_error("list", path, error) from error
        return tuple(sorted(found, key=lambda status: status.name))

    def exists(self, path: str) -> bool:
        """Whether the path is an existing file or directory."""
        self._check_read("look for", path)
        try:
            Path(path).stat()
        except FAILURES as error:
            if is_one_of(error, ABSENT):
                return False
            raise to_storage_error("look for", path, error) from error
        return True

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file or an empty directory, or with ``recursive`` a directory and its content.

        Links are removed, not followed, even if another process replaces a directory with a link during the call.
        """
        base, parts = ("", ()) if self.bounds is None else self.bounds.check_delete(path)
        if not parts:
            parent, _, name = path.rstrip("/").rpartition("/")
            base, parts = parent or "/", (name,)
        try:
            delete_beneath(base, parts, recursive=recursive)
        except FAILURES as error:
            if is_one_of(error, ABSENT):
                return False
            raise to_storage_error("delete", path, error) from error
        return True

    def rename_file(self, source: str, target: str) -> None:
        """Rename a file; both paths must be on one file system. ``flush`` puts the file and its name on disk."""
        self._check_write("rename", source)
        self._check_write("rename", target)
        try:
            _rename_with_parents(Path(source), Path(target))
        except FAILURES as error:
            raise to_storage_error("rename", source, error) from error

    def link_file(self, source: str, target: str) -> None:
        """Create a hard link to a file. ``flush`` puts the name on disk.

        Args:
            source: may be outside of ``bounds``.

        Raises:
            UnsupportedFeatureError: the file system does not support hard links, or the paths are on different file
                systems.
        """
        self._check_write("link", target)
        try:
            _with_parents(Path(target), lambda: Path(target).hardlink_to(Path(source).resolve()))
        except FAILURES as error:
            if is_one_of(error, _NO_HARD_LINKS | {errno.EXDEV}):
                raise UnsupportedFeatureError(
                    f"{source} cannot get a second name {target}: they are on two file systems, or on one without hard "
                    "links; copy the files"
                ) from error
            raise to_storage_error("link", source, error) from error

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file to a new path; the source may be outside of ``bounds``. ``flush`` puts it on disk."""
        self._check_write("copy", target)
        try:
            _with_parents(Path(target), lambda: shutil.copyfile(source, target))
        except FAILURES as error:
            raise to_storage_error("copy", source, error) from error

    def rename_dir(self, source: str, target: str) -> bool:
        """Rename a directory, atomically; it can replace only an empty directory.

        The source is not empty, so only one of several concurrent callers succeeds. A process that is killed before it
        writes the first file into a directory leaves an empty target.
        """
        self._check_write("rename", source)
        self._check_write("rename", target)
        try:
            if not stat.S_ISDIR(Path(source).stat().st_mode):  # a file would replace another one
                raise NotADirectoryError(errno.EINVAL, "it is not a directory")
            _rename_with_parents(Path(source), Path(target))
        except FAILURES as error:
            if is_one_of(error, _TAKEN) and Path(source).exists():
                return False
            raise to_storage_error("rename", source, error) from error
        self._sync_parent(target)
        return True

    def flush(self, files: Collection[str], *, root: str) -> None:
        """Flush files of ``open_output`` and ``rename_file`` to disk, with their parent directories up to ``root``.

        Does nothing unless ``durable``.
        """
        if self.durable:
            try:
                sync_tree(files, root)
            except FAILURES as error:
                raise to_storage_error("flush the files of", root, error, creating=True) from error

    def to_uri(self, path: str) -> str:
        """Return ``file:///...`` with special characters percent-encoded, as in Spark's file lists."""
        self._check_read("open", path)
        directory, _, name = path.rpartition("/")
        if not directory or name in {"", ".", ".."}:
            return Path(path).as_uri()
        return f"{Path(directory).as_uri()}/{quote(os.fsencode(name))}"

    def to_uris(self, directory: str, names: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Return URIs as ``FileIO.to_uris``; the directory is checked once."""
        text = "\n".join(names)
        if text.count("\n") == len(names) - 1 and _PLAIN_NAMES.fullmatch(text) and not _has_link(directory, names):
            return self.to_uri(f"{directory}/{names[0]}").rpartition("/")[0], names
        return FileIO.to_uris(self, directory, names)

    @property
    def is_local(self) -> bool:
        """True."""
        return True

    @property
    def is_durable(self) -> bool:
        """Whether writes are flushed to disk."""
        return self.durable

    def confined(self, root: str, *, readable: Sequence[str] = (), deletable: Sequence[str] = ()) -> LocalFileIO:
        """Return the storage with ``bounds``."""
        return replace(self, bounds=Bounds(root=root, readable=tuple(readable), deletable=tuple(deletable)))

    def unconfined(self) -> LocalFileIO:
        """Return the storage without ``bounds``."""
        return replace(self, bounds=None)

    def with_durability(self, *, durable: bool) -> LocalFileIO:
        """Return the storage with ``durable`` set."""
        return self if self.durable == durable else replace(self, durable=durable)

    def _check_read(self, action: str, path: str) -> None:
        if self.bounds is not None:
            self.bounds.check_read(action, path)

    def _check_write(self, action: str, path: str) -> None:
        if self.bounds is not None:
            self.bounds.check_write(action, path)

    def _write_temporary(self, path: str, data: bytes) -> Path:
        self._check_write("write", path)
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        try:
            _with_parents(temporary, lambda: self._create(temporary, data), durable=self.durable)
        except FAILURES as error:
            raise to_storage_error("write", path, error, creating=True) from error
        return temporary

    def _create(self, path: Path, data: bytes) -> None:
        """Create the file with its content; on failure it is removed. Raises ``FileExistsError``."""
        file = path.open("xb")
        try:
            with file:
                file.write(data)
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:
            _unlink_quietly(path)
            raise

    def _link(self, temporary: Path, path: str, data: bytes) -> bool:
        target = Path(path)
        try:
            target.hardlink_to(temporary)
        except FAILURES as error:
            # NFS repeats a request whose answer was lost, and then reports our own link as an existing file.
            if is_same_file(temporary, target):
                return True
            if is_one_of(error, {errno.EEXIST}):
                return False
            if is_one_of(error, _NO_HARD_LINKS):
                return self._create_in_place(target, data)
            raise to_storage_error("create", path, error, creating=True) from error
        return True

    def _create_in_place(self, target: Path, data: bytes) -> bool:
        try:
            self._create(target, data)
        except FileExistsError:
            return False
        except FAILURES as error:
            raise to_storage_error("create", str(target), error, creating=True) from error
        return True

    def _sync_parent(self, path: str) -> None:
        if self.durable:
            try:
                sync(Path(path).parent)
            except FAILURES as error:
                what = f"{path} (which is there, but a power cut may undo it)"
                raise to_storage_error("flush the directory of", what, error, creating=True) from error


def _with_parents(path: Path | str, create: Callable[[], T], *, durable: bool = False) -> T:
    """Run ``create``; only if the parent directory is missing, make it and retry, because it mostly exists."""
    for _ in range(_CREATE_TRIES - 1):
        try:
            return create()
        except FileNotFoundError:
            make_directory(Path(path).parent, durable=durable)
    return create()


def _rename_with_parents(source: Path, target: Path) -> None:
    """Rename; ``FileNotFoundError`` can mean a missing source or a missing parent directory of the target."""
    try:
        source.rename(target)
    except FileNotFoundError:
        source.stat()
        _with_parents(target, lambda: source.rename(target))


def _read_regular(path: str) -> bytes:
    # O_NONBLOCK: without it, opening a named pipe would wait for a writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        _check_regular(path, status.st_mode)
        if status.st_size > MAX_READ_BYTES:
            raise OSError(errno.EINVAL, f"it has {status.st_size} bytes, and no metadata file has {MAX_READ_BYTES}")
        return file.read()


def _check_regular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe, and only regular files are read", path)


def _status_of(base: str, entry: os.DirEntry[str], *, follow_links: bool) -> FileStatus | None:
    """Return the status of an entry; None if it was deleted meanwhile or is a circular link."""
    try:
        info = entry.stat(follow_symlinks=follow_links)
    except OSError as error:
        if error.errno in _LEFT_OUT:
            return None
        raise
    is_dir = stat.S_ISDIR(info.st_mode)
    return FileStatus(
        path=f"{base}/{entry.name}",
        size=0 if is_dir else info.st_size,
        modified_millis=info.st_mtime_ns // 1_000_000,
        is_dir=is_dir,
    )


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths exist and lead to the same file or directory."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _unlink_quietly(path: Path) -> None:
    # The result of the call is already decided; a remaining file has a temporary name.
    with contextlib.suppress(OSError):
        path.unlink()


# The system flushes several pending requests together; more threads do not reduce the waiting time
# (docs/robustness.md).
_THREADS: Final = 8
_FEW: Final = 2


def sync(path: Path) -> None:
    """Flush a file's content, or a directory's entries, to disk. Raises ``OSError``."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(files: Collection[str], root: str) -> None:
    """Flush files to disk, and their parent directories up to ``root``, each directory once.

    The flushes run in parallel, because ten take hardly longer than one. Their order does not matter, because no
    metadata refers to the files yet. Missing files are skipped.

    Args:
        files: paths below ``root``; of a path elsewhere only its own directory is flushed with it.

    Raises:
        OSError: a flush failed.
    """
    paths = [Path(file) for file in files]
    directories: set[Path] = set()
    for path in paths:
        directory = path.parent
        while directory not in directories:
            directories.add(directory)
            if str(directory) == root or not str(directory).startswith(f"{root}/"):
                break
            directory = directory.parent
    everything = [*paths, *sorted(directories, key=lambda each: len(each.parts), reverse=True)]
    if len(everything) <= _FEW:
        for path in everything:
            _sync_if_there(path)
    else:
        with ThreadPoolExecutor(min(_THREADS, len(everything)), thread_name_prefix="penstock-flush") as pool:
            list(pool.map(_sync_if_there, everything))


def make_directory(directory: Path, *, durable: bool) -> None:
    """Create a directory and its missing parents; with ``durable`` their entries are flushed to disk."""
    missing = []
    above = directory
    while durable and not above.exists():
        missing.append(above)
        above = above.parent
    directory.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync(made.parent)


def _has_link(directory: str, names: Sequence[str]) -> bool:
    """Whether some of the files in a directory are symbolic links.

    A list of the names says so without a look at each file, which costs 4 to 15 times as much.
    """
    if len(names) >= _MIN_LISTED:
        try:
            with os.scandir(directory) as listed:
                links = {entry.name for entry in islice(listed, 4 * len(names)) if entry.is_symlink()}
                if next(listed, None) is None:
                    return not links.isdisjoint(names)
        except FileNotFoundError:
            return False
        except OSError:
            pass  # it may be searched, but not listed
    return any(os.path.islink(f"{directory}/{name}") for name in names)  # noqa: PTH114 - a Path takes 3 times as long


def _sync_if_there(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        if error.errno not in ABSENT:
            raise
