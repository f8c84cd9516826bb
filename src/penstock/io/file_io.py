"""The seam between Penstock and storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """What a listing says of one entry.

    Attributes:
        path: full path, in the form that the other calls take.
        size: bytes; 0 for a directory.
        modified_millis: ms since 1970-01-01 UTC by the storage's clock; 0 where it has none.
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
    Every failure except "not there" is a ``StorageError``; "not there" is a ``NotFoundError``.
    """

    def read(self, path: str) -> bytes:
        """Return the whole object. Raises ``NotFoundError``."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace: a concurrent reader sees the old bytes or the new, never a mixture."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create only: two callers, in any two processes, never both get True; no reader sees half of it."""
        ...

    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401 - pyarrow.NativeFile where the storage has one
        """Open for random reading: a seekable file object that pyarrow accepts. The caller closes it."""
        ...

    def open_output(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Open a new object for sequential writing, making directories on the way. The caller closes it.

        The path is fresh (it holds a UUID), so nothing is replaced.
        """
        ...

    def list(self, path: str) -> Sequence[FileStatus]:
        """Direct children of a directory, sorted by name; empty when it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or a directory is there."""
        ...

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file, or with ``recursive`` a directory and all below; False when nothing was there."""
        ...

    def rename_file(self, source: str, target: str) -> None:
        """Move a file to a fresh path (it holds a UUID), making directories on the way. Raises ``NotFoundError``.

        A reader sees the target whole or not at all.
        """
        ...

    def rename_dir(self, source: str, target: str) -> bool:
        """Move a directory; False, and nothing moved, when something is at the target. Raises ``NotFoundError``.

        An empty directory counts as nothing; the source has something in it.
        """
        ...

    def to_uri(self, path: str) -> str:
        """Return the path as a URI that Spark's readers accept (``file:///...``, ``s3a://...``)."""
        ...
