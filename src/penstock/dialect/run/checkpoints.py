"""Where streaming inserts keep their checkpoints."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.dialect.settings import Settings

_UNSAFE: Final = re.compile(r"[^\w.-]+")


def checkpoint_for(settings: Settings, table: str, query: str) -> str:
    """Return the checkpoint of a streaming insert.

    Under the directory that the settings name, it is the query's name, else one made of the target and the query's
    text: the same statement goes on where it stopped. Without a directory it is a temporary one, gone with the process.
    """
    if settings.checkpoints is None:
        folder = tempfile.mkdtemp(prefix="penstock-sql-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    words = " ".join(query.split())
    name = settings.name or f"{table}-{zlib.crc32(words.encode()):08x}"
    return f"{settings.checkpoints.rstrip('/')}/{_UNSAFE.sub('_', name)}"
