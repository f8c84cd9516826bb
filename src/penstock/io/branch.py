"""Storage of a branch of a table: its own metadata, and the table's manifests and data files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.io.wrapper import WrappingFileIO

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO

# Directories that each branch has for itself, as in the reference; the last is Penstock's.
_OWN: Final = ("schema", "snapshot", "tag", "consumer", "changelog", ".penstock")


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFileIO(WrappingFileIO):
    """``FileIO`` that maps the metadata directories of the main branch to those of a branch.

    So code that reads or writes the table by its location reads or writes the branch.

    Attributes:
        location: the table's directory.
        root: the branch's directory.
        identity: of the branch that was loaded; another branch can get its name.
    """

    branch: str
    location: str
    root: str
    identity: str = ""

    def real(self, path: str) -> str:
        """Return the path in the branch for a path of the table."""
        rest = path.removeprefix(f"{self.location}/")
        if rest != path and rest.partition("/")[0] in _OWN:
            return f"{self.root}/{rest}"
        return path

    @property
    def branch_name(self) -> str | None:
        """The branch."""
        return self.branch

    @property
    def branch_identity(self) -> str:
        """Identity of the branch that was loaded."""
        return self.identity

    @property
    def main(self) -> FileIO:
        """The storage without the branch."""
        return self.inner

    def metadata_root(self, location: str) -> str:  # noqa: ARG002 - of a table without a branch
        """Return the branch's directory."""
        return self.root
