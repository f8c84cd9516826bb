"""Location of a table's metadata, with or without a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.format.avro.values import DEFAULT_LIMITS
from penstock.format.layout import TableLayout

if TYPE_CHECKING:
    from penstock.format.avro.values import AvroLimits
    from penstock.io.file_io import FileIO


class HasLocation(Protocol):
    """Location, storage, name and limits of a table, as ``MetadataStore`` needs them; a ``TableRef`` has them."""

    @property
    def file_io(self) -> FileIO:
        """Storage of the location."""
        ...

    @property
    def location(self) -> str:
        """The table's directory, without a slash at the end."""
        ...

    @property
    def layout(self) -> TableLayout:
        """Paths of the table's files."""
        ...

    @property
    def name(self) -> str:
        """``db.table`` for messages."""
        ...

    @property
    def limits(self) -> AvroLimits:
        """Size limits for metadata files."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLocation:
    """A table whose schema is not loaded yet."""

    file_io: FileIO
    location: str
    name: str

    @property
    def layout(self) -> TableLayout:
        """Paths of the table's files."""
        return TableLayout(self.location)

    @property
    def limits(self) -> AvroLimits:
        """The default limits, as the table's options are not known yet."""
        return DEFAULT_LIMITS
