"""Names in SQL text and of files: those in metadata must be a single file in a known directory, never a path.

Other writers can write metadata to the storage. With ``..`` or ``/`` in a file name, a user who can write one
manifest could choose a file outside of the table that a reader opens or an expiration deletes.

Source:
    Paimon ``core:utils/FileStorePathFactory.java`` and ``core:io/DataFilePathFactory.java``, which join each of
    these names to a directory; all names from Paimon consist of a prefix, a UUID, numbers and extensions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError

if TYPE_CHECKING:
    from penstock.errors import TableStoreError


# No separator of any system, no NUL, no control character (C0, DEL, C1).
_FILE_NAME: Final = re.compile(r"[^/\\\x00-\x1f\x7f-\x9f]+")
_MAX_BYTES: Final = 255
_MAX_NAME_BYTES: Final = 200


def check_length(name: str, what: str, error: type[TableStoreError] = InvalidOptionError) -> None:
    """Check that a name is short enough to become a part of the name of a file.

    File systems allow 255 bytes, and storages first write a file under a longer name.

    Args:
        what: first words of the error message.
        error: the class of the error to raise.
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > _MAX_NAME_BYTES:
        raise error(f"{what} with a name of {size} bytes: it has at most {_MAX_NAME_BYTES} bytes; choose a shorter one")


def check_file_name(name: str) -> str:
    """Return the name if it is a valid name of a file in a directory."""
    if _FILE_NAME.fullmatch(name) is None or name in {".", ".."}:
        raise ValueError(f"states the file name {name[:100]!r}, which is not the name of one file")
    if len(name) > _MAX_BYTES:
        raise ValueError(f"states a file name of {len(name)} characters, which no file can have")
    return name


def check_file_names(names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the checked names, () for None."""
    return tuple(check_file_name(name) for name in names) if names else ()


def quoted(name: str) -> str:
    """Return a name in backquotes, in which SQL and Spark's ``F.col`` accept any name."""
    return "`" + name.replace("`", "``") + "`"
