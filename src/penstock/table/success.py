"""Reading and writing success files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import FormatError, NotFoundError
from penstock.format.success_file import SuccessFile, decode_success_file, encode_success_file

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO


def find_success(file_io: FileIO, path: str) -> SuccessFile | None:
    """Load a success file; None if there is none, or if another program wrote it.

    Hadoop's jobs leave empty files of that name, which do not describe this table.
    """
    try:
        return decode_success_file(file_io.read(path), path)
    except (NotFoundError, FormatError):
        return None


def write_success(file_io: FileIO, path: str, now_millis: int) -> SuccessFile:
    """Write a success file; if there is one already, keep its creation time and set its modification time.

    Source:
        Paimon ``core:partition/actions/SuccessFileMarkDoneAction.java``.
    """
    known = find_success(file_io, path)
    created = now_millis if known is None else known.creation_millis
    success = SuccessFile(creation_millis=created, modification_millis=now_millis)
    file_io.write(path, encode_success_file(success))
    return success
