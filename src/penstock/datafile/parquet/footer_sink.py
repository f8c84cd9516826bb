"""Change the footer of a Parquet file while pyarrow writes it.

Source:
    The Parquet format's ``parquet.thrift`` for the field numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.datafile.thrift import ThriftStruct, decode_struct, encode_struct

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_TAIL_BYTES: Final = 8  # footer length and magic
# Fields of ``Statistics``: max, min, max_value, min_value, is_max_value_exact, is_min_value_exact.
_RANGE_FIELDS: Final = (1, 2, 5, 6, 7, 8)


class FooterSink:
    """File object that pyarrow writes to; it buffers the footer from ``expect_footer`` on, and ``finish`` edits it."""

    closed = False

    def __init__(self, target: Any) -> None:  # noqa: ANN401 - whatever FileIO.open_output gives
        self._target = target
        self._footer: bytearray | None = None
        self._size = 0

    def write(self, data: bytes | memoryview) -> int:
        """Forward bytes to the target, or buffer them."""
        size = memoryview(data).nbytes
        if self._footer is None:
            self._target.write(data)
            self._size += size
        else:
            self._footer += data
        return size

    def tell(self) -> int:
        """Return the number of bytes so far, as pyarrow counts them."""
        return self._size + len(self._footer or b"")

    def flush(self) -> None:
        """Do nothing: only the footer is buffered."""

    def close(self) -> None:
        """Do nothing: the code that opened the target closes it."""

    def expect_footer(self) -> None:
        """Buffer the following bytes, up to ``finish``: they are the footer."""
        self._footer = bytearray()

    def finish(self, changes: Sequence[Callable[[ThriftStruct], None]]) -> int:
        """Apply the changes to the footer's ``FileMetaData`` and write it; return the size of the file."""
        footer = bytes(self._footer or b"")
        self._footer = None
        if changes:
            length = int.from_bytes(footer[-_TAIL_BYTES:-4], "little")
            start = len(footer) - _TAIL_BYTES - length
            metadata = decode_struct(footer[start:-_TAIL_BYTES])
            for change in changes:
                change(metadata)
            changed = encode_struct(metadata)
            footer = footer[:start] + changed + len(changed).to_bytes(4, "little") + footer[-4:]
        self.write(footer)
        return self._size


def drop_ranges(footer: ThriftStruct, columns: Collection[int]) -> None:
    """Remove minima and maxima of physical columns from every row group; null counts are kept."""
    for row_group in footer.get(4).items:
        for column in columns:
            stats = row_group.get(1).items[column].get(3).get(12)
            for field_id in _RANGE_FIELDS if stats is not None else ():
                stats.fields.pop(field_id, None)
