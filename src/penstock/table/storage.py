"""The storage of a table: restricted to its directory, with the durability that its options set."""

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
    """Return the storage of a table, restricted to its directory and to the external paths that the user allows.

    If the commit options ask for durability, the storage also flushes written files to disk.

    Args:
        location: the table's directory.
        stored: options of the table.
        given: options of the catalog and of one use; they override those of the table, and only they allow external
            paths.
        table: its name, for messages.

    Raises:
        InvalidOptionError: an option has an invalid value.
    """
    allowed = ExternalPathOptions.parse(given, table=table)
    is_durable = CommitOptions.parse(stored, given, table=table).durable
    bounded = confine(file_io, location, readable=allowed.readable, deletable=allowed.deletable)
    return with_durability(bounded, durable=is_durable)
