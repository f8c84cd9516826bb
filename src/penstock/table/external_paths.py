"""Data files outside of a table's directory: used only if the table declares their directory and the user allows it.

A manifest can name any path of the machine, so the table alone must not decide which files are opened. The table's
option ``data-file.external-paths`` declares where its writers put files. The options ``penstock.external-paths.read``
and ``.delete``, set on the catalog or for one handle, say which of those directories this process may use
(design/0017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import TableStoreError, UnsupportedFeatureError
from penstock.io.resolve import resolve
from penstock.options import LayoutOptions
from penstock.options.external import ExternalPathOptions

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPaths:
    """Which external paths of one table this process may read and delete.

    Attributes:
        name: of the table, for messages.
        file_io: storage of the table; external files are opened with it, so they must lie on the same storage.
        stated: external directories declared by the table's option.
        allowed: the directories that the user allows.
    """

    name: str
    file_io: FileIO
    stated: tuple[str, ...]
    allowed: ExternalPathOptions

    @staticmethod
    def of(ref: TableRef) -> ExternalPaths:
        """Return the external paths of a table; the user's keys are ignored if they are stored with the table."""
        return ExternalPaths(
            name=ref.name,
            file_io=ref.file_io,
            stated=ref.parsed(LayoutOptions).external_paths,
            allowed=ExternalPathOptions.parse(dict(ref.dynamic_options), table=ref.name),
        )

    def readable(self, path: str) -> str:
        """Return an external path in the form that the storage takes.

        Raises:
            UnsupportedFeatureError: the table does not declare its directory, or the user does not allow it.
        """
        found = self._find(path)
        if found is None or not _is_in(found, self.stated):
            raise UnsupportedFeatureError(
                f"table {self.name}: the data file {ascii(path)[:200]} is outside of the table, and in none of the "
                "directories of its option 'data-file.external-paths'; it was not opened. Roll the table back to a "
                "snapshot without it, or copy it to the table's directory"
            )
        if not _is_in(found, self.allowed.readable):
            raise UnsupportedFeatureError(
                f"table {self.name}: the data file {ascii(path)[:200]} is outside of the table and was not opened; "
                "if you trust who wrote the table, give the catalog or this read the option "
                f"'penstock.external-paths.read' = '{found.rpartition('/')[0]}'"
            )
        return found

    def deletable(self, path: str) -> str | None:
        """Return an external path in the form that the storage takes; None if the file must not be deleted."""
        found = self._find(path)
        is_free = found is not None and _is_in(found, self.stated) and _is_in(found, self.allowed.deletable)
        return found if is_free else None

    def _find(self, path: str) -> str | None:
        found = _resolved(path)
        if found is None or type(found[0]) is not type(self.file_io.storage):
            return None
        return found[1]


def _is_in(path: str, directories: tuple[str, ...]) -> bool:
    known = (_resolved(directory) for directory in directories)
    return any(each is not None and path.startswith(f"{each[1].rstrip('/')}/") for each in known)


def _resolved(path: str) -> tuple[FileIO, str] | None:
    """Return storage and normalized path; None unless it is an absolute path or a URI of a built-in storage."""
    if (not path.startswith("/") and ":" not in path) or any(character < " " for character in path):
        return None
    try:
        return resolve(path.strip())
    except TableStoreError:
        return None
