"""The protocol between Penstock and storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence


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


@runtime_checkable
class FileIO(Protocol):
    """Storage that holds tables. Implementations are picklable values without open handles.

    Paths are strings with ``/`` between components: absolute local paths for ``LocalFileIO``, full URIs elsewhere.
    A missing file or directory is reported as ``NotFoundError``, every other failure as ``StorageError``.
    """

    def read(self, path: str) -> bytes:
        """Return the whole object. Raises ``NotFoundError``."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically: a concurrent reader sees the old bytes or the new, never a mixture."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file only if it does not exist.

        Of several concurrent callers, in any processes, at most one gets True. No reader sees a partial file.
        """
        ...

    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401 - pyarrow.NativeFile where the storage has one
        """Open for random reading: return a seekable file object that pyarrow accepts. The caller closes it."""
        ...

    def open_output(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Open a new object for sequential writing; missing parent directories are created. The caller closes it.

        The path is unique (it holds a UUID), so no file is replaced.
        """
        ...

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children of a directory, sorted by name; empty when it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Whether the path is an existing file or directory."""
        ...

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file, or with ``recursive`` a directory and its content; return False if the path did not exist."""
        ...

    def rename_file(self, source: str, target: str) -> None:
        """Move a file to a unique path (it holds a UUID); missing parents are created. Raises ``NotFoundError``.

        A reader sees the complete target or none.
        """
        ...

    def rename_dir(self, source: str, target: str) -> bool:
        """Move a directory; return False, and move nothing, if the target exists. Raises ``NotFoundError``.

        An empty target directory does not count as existing; the source must not be empty.
        """
        ...

    def to_uri(self, path: str) -> str:
        """Return the path as a URI that Spark's readers accept (``file:///...``, ``s3a://...``)."""
        ...
