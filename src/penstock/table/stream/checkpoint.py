"""Where a Spark query stands, from its checkpoint.

Source:
    Spark ``OffsetSeqLog``: ``offsets/<batch>`` holds a version, the batch's metadata, then a line a source with where
    the batch ends; ``commits/<batch>`` is there once the batch is done.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import FormatError, NotFoundError
from penstock.table.stream.offset import decode_offset

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.stream.offset import StreamOffset


def load_delivered(file_io: FileIO, checkpoint: str) -> tuple[StreamOffset, ...]:
    """Load what the query's sources have delivered, as far as they read tables of ours, in the query's order.

    Returns:
        Where the last batch that is done ended; where the first one began when none is.

    Raises:
        NotFoundError: there is no checkpoint, or no batch was begun with it.
        FormatError: it is damaged.
    """
    begun, done = (_batches(file_io, f"{checkpoint}/{part}") for part in ("offsets", "commits"))
    if not begun:
        raise NotFoundError(f"{checkpoint} is no checkpoint of a query that has run: it holds no offsets/0")
    batch = max(begun & done, default=None)
    path = f"{checkpoint}/offsets/{min(begun) if batch is None else batch}"
    offsets = _decode(file_io.read(path), path)
    return offsets if batch is not None else tuple(replace(offset, position=offset.start) for offset in offsets)


def _batches(file_io: FileIO, directory: str) -> set[int]:
    names = (status.name for status in file_io.list(directory) if not status.is_dir)
    return {int(name) for name in names if name.isascii() and name.isdigit()}


def _decode(data: bytes, path: str) -> tuple[StreamOffset, ...]:
    try:
        lines = data.decode().splitlines()
    except ValueError as error:
        raise FormatError(f"{path} is damaged ({error}); start the query, which says whether it can go on") from error
    values = (_parse(line) for line in lines)
    return tuple(decode_offset(value) for value in values if isinstance(value, dict) and _is_ours(value))


def _parse(line: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(line)
    except ValueError:
        return None  # the version, a dash for a source without data, or another source's text


def _is_ours(value: dict[str, Any]) -> bool:
    return value.get("unresolved") is True or {"version", "table", "position"} <= value.keys()
