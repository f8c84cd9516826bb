"""The storage of a table: bound to its directory, and durable as its options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.io.settings import confine, with_durability
from penstock.options import CommitOptions
from penstock.options.external import ExternalPathOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO


def storage_of_table(
    file_io: FileIO, location: str, stored: Mapping[str, str], given: Mapping[str, str], table: str
) -> FileIO:
    """Return the storage of a table: it goes to its directory and to what the user allows, and waits for the disk.

    Args:
        location: the table's directory.
        stored: options of the table.
        given: of the catalog and of one use; they win, and they alone allow anything.
        table: its name, for messages.

    Raises:
        InvalidOptionError: an option is none.
    """
    allowed = ExternalPathOptions.parse(given, table=table)
    is_durable = CommitOptions.parse(stored, given, table=table).durable
    bounded = confine(file_io, location, readable=allowed.readable, deletable=allowed.deletable)
    return with_durability(bounded, durable=is_durable)
