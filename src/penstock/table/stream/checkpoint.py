"""Reads the progress of a Spark query from its checkpoint.

Source:
    Spark ``OffsetSeqLog``: ``offsets/<batch>`` holds a version, the batch's metadata, then one line per source with the
    end offset of the batch; ``commits/<batch>`` exists once the batch is done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import FormatError, NotFoundError
from penstock.table.stream.offset import decode_offset

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.stream.offset import StreamOffset


_POLICY: Final = "spark.sql.streaming.multipleWatermarkPolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnds:
    """The entry that Spark wrote to the checkpoint before a micro-batch ran.

    Attributes:
        sources: end offset of each source, in the query's order; None for a source that is not a Penstock table, and
            for one without data so far.
        spark_watermark: Spark's own watermark, ms of event time, from the batches before this one; None for none.
        takes_least: whether Spark takes the minimum of several watermarks; if not, the maximum.
        topics: of all sources that read Kafka.
    """

    sources: tuple[StreamOffset | None, ...]
    spark_watermark: int | None
    takes_least: bool
    topics: frozenset[str] = frozenset()


def decode_batch(data: bytes, path: str) -> BatchEnds:
    """Decode ``offsets/<batch>``."""
    values = [_parse(line) for line in _lines(data, path)[1:]]
    metadata = values[0] if values and isinstance(values[0], dict) else {}
    conf = metadata.get("conf")
    return BatchEnds(
        sources=tuple(_decode_ours(value) for value in values[1:]),
        spark_watermark=int(metadata.get("batchWatermarkMs", 0)) or None,
        takes_least=not isinstance(conf, dict) or conf.get(_POLICY, "min") == "min",
        topics=frozenset(topic for value in values[1:] if _is_kafkas(value) for topic in value),
    )


def decode_end(text: str) -> StreamOffset | None:
    """Decode the end offset of one source; None for a source that is not a Penstock table."""
    return _decode_ours(_parse(text))


def load_delivered(file_io: FileIO, checkpoint: str) -> tuple[StreamOffset, ...]:
    """Load the delivered offsets of a query's sources, in the query's order; only sources that read Penstock tables.

    Returns:
        The end offsets of the last completed batch; if none is completed, the start offsets of the first one.
    """
    begun, done = (_batches(file_io, f"{checkpoint}/{part}") for part in ("offsets", "commits"))
    if not begun:
        raise NotFoundError(f"{checkpoint} is not the checkpoint of a query that has run: it holds no offsets/0")
    batch = max(begun & done, default=None)
    path = f"{checkpoint}/offsets/{min(begun) if batch is None else batch}"
    offsets = _decode(file_io.read(path), path)
    return offsets if batch is not None else tuple(replace(offset, position=offset.start) for offset in offsets)


def _batches(file_io: FileIO, directory: str) -> set[int]:
    names = (status.name for status in file_io.list(directory) if not status.is_dir)
    return {int(name) for name in names if name.isascii() and name.isdigit()}


def _decode(data: bytes, path: str) -> tuple[StreamOffset, ...]:
    found = (_decode_ours(_parse(line)) for line in _lines(data, path))
    return tuple(offset for offset in found if offset is not None)


def _lines(data: bytes, path: str) -> list[str]:
    try:
        return data.decode().splitlines()
    except ValueError as error:
        raise FormatError(
            f"{path} is damaged ({error}); start the query, which reports whether it can continue"
        ) from error


def _decode_ours(value: Any) -> StreamOffset | None:  # noqa: ANN401 - whatever JSON holds
    return decode_offset(value) if isinstance(value, dict) and _is_ours(value) else None


def _parse(line: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(line)
    except ValueError:
        return None  # the line is the version, a dash for a source without data, or the text of another source


def _is_kafkas(value: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    """Whether a value holds an offset for each partition, by number, of each topic."""
    return isinstance(value, dict) and all(
        isinstance(offsets, dict) and all(number.isdigit() for number in offsets) for offsets in value.values()
    )


def _is_ours(value: dict[str, Any]) -> bool:
    return value.get("unresolved") is True or {"version", "table", "position"} <= value.keys()
