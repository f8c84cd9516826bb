"""All tags of a table, which are read again only if they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import NotFoundError
from penstock.format.layout import TableLayout, tag_name_of
from penstock.format.tag import decode_tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.tag import Tag
    from penstock.io.file_io import Directories, FileIO, FileStatus

# A recreated tag has another modification time, unless both are too recent to be distinguished.
_SURE_AFTER_MILLIS: Final = 60_000


class TagReader:
    """Loads the tags of one table; caches those that have not changed for a while.

    Args:
        clock_millis: now, ms since 1970-01-01 UTC.
    """

    def __init__(self, file_io: FileIO, location: str, *, clock_millis: Callable[[], int] | None = None) -> None:
        self._file_io = file_io
        self._location = location
        self._clock_millis = clock_millis or utc_millis
        self._known: dict[FileStatus, Tag] = {}

    def load(self, directories: Directories | None = None) -> dict[str, Tag]:
        """Return tags by name, sorted.

        Args:
            directories: in which the tags are listed; None for the storage.

        Raises:
            FormatError: a tag is damaged; callers need all tags.
        """
        known, self._known = self._known, {}
        tags: dict[str, Tag] = {}
        sure_before = self._clock_millis() - _SURE_AFTER_MILLIS
        for status in (directories or self._file_io).list(TableLayout(self._location).tag_directory):
            name = tag_name_of(status.name)
            if name is None or status.is_dir:
                continue
            tag = known.get(status)
            if tag is None:
                try:
                    tag = decode_tag(self._file_io.read(status.path), status.path)
                except NotFoundError:
                    continue  # deleted since it was listed
            tags[name] = tag
            if 0 < status.modified_millis < sure_before:
                self._known[status] = tag
        return tags
