"""Storage of a branch of a table: its own metadata, and the table's manifests and data files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.io.file_io import FileIO, FileStatus

# Directories that each branch has for itself, as in the reference; the last is Penstock's.
_OWN: Final = ("schema", "snapshot", "tag", "consumer", "changelog", ".penstock")


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFileIO:
    """``FileIO`` that maps the metadata directories of the main branch to those of a branch.

    So code that reads or writes the table by its location reads or writes the branch.

    Attributes:
        location: the table's directory.
        root: the branch's directory.
    """

    inner: FileIO
    branch: str
    location: str
    root: str

    def read(self, path: str) -> bytes:
        """Delegate."""
        return self.inner.read(self.real(path))

    def write(self, path: str, data: bytes) -> None:
        """Delegate."""
        self.inner.write(self.real(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Delegate."""
        return self.inner.put_if_absent(self.real(path), data)

    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401 - as the protocol has it
        """Delegate."""
        return self.inner.open_input(self.real(path))

    def open_output(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Delegate."""
        return self.inner.open_output(self.real(path))

    def list(self, path: str) -> Sequence[FileStatus]:
        """Delegate; the returned paths are in the form that the other methods take."""
        real = self.real(path)
        found = self.inner.list(real)
        return found if real == path else [replace(each, path=f"{path.rstrip('/')}/{each.name}") for each in found]

    def exists(self, path: str) -> bool:
        """Delegate."""
        return self.inner.exists(self.real(path))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delegate."""
        return self.inner.delete(self.real(path), recursive=recursive)

    def rename_file(self, source: str, target: str) -> None:
        """Delegate."""
        self.inner.rename_file(self.real(source), self.real(target))

    def rename_dir(self, source: str, target: str) -> bool:
        """Delegate."""
        return self.inner.rename_dir(self.real(source), self.real(target))

    def to_uri(self, path: str) -> str:
        """Delegate."""
        return self.inner.to_uri(self.real(path))

    def real(self, path: str) -> str:
        """Return the path in the branch for a path of the table."""
        rest = path.removeprefix(f"{self.location}/")
        if rest != path and rest.partition("/")[0] in _OWN:
            return f"{self.root}/{rest}"
        return path


def branch_of(file_io: FileIO) -> str | None:
    """Return the branch of a storage; None for the main branch."""
    return file_io.branch if isinstance(file_io, BranchFileIO) else None
