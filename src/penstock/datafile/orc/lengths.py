"""Check the lengths of texts, bytes, lists and maps in an ORC file before pyarrow reads it.

pyarrow's ORC library sums lengths without a check, and crashes the process if a damaged one is negative (ORC-2166,
ORC-2192). Lengths are in separate, small streams, whose runs can mostly be checked by their headers.

Source:
    The ORC specification, version 1, sections "Column Encodings" and "Run Length Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.datafile.orc.rle import check_unsigned
from penstock.datafile.orc.tail import (
    LENGTH_STREAM,
    OrcKind,
    OrcTail,
    has_known_codec,
    read_part,
    read_streams,
    uncompress,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

_MOST_LENGTH: Final = 2**31 - 1
_WITH_LENGTHS: Final = frozenset(
    {OrcKind.STRING, OrcKind.BINARY, OrcKind.VARCHAR, OrcKind.CHAR, OrcKind.LIST, OrcKind.MAP}
)


def types_with_lengths(tail: OrcTail, names: Collection[str]) -> frozenset[int]:
    """Return the ids of the types that have lengths, in the columns with these names."""
    root = tail.types[0]
    waiting = [child for name, child in zip(root.names, root.children, strict=True) if name in names]
    seen: set[int] = set()
    while waiting:
        type_id = waiting.pop()
        if type_id not in seen:
            seen.add(type_id)
            waiting += tail.types[type_id].children
    return frozenset(type_id for type_id in seen if tail.types[type_id].kind in _WITH_LENGTHS)


def check_lengths(source: pa.NativeFile, tail: OrcTail, stripe: int, type_ids: Collection[int]) -> None:
    """Check the lengths of some types in a stripe; nothing for LZO, which only pyarrow can uncompress.

    Raises:
        FormatError: a length is negative or has more than 31 bits, or the stripe is damaged.
    """
    if not type_ids or not has_known_codec(tail):
        return
    for stream in read_streams(source, tail, stripe):
        if stream.kind == LENGTH_STREAM and stream.type_id in type_ids:
            data = uncompress(read_part(source, stream.start, stream.size), tail.codec)
            check_unsigned(data, most=_MOST_LENGTH, is_version_2=stream.is_version_2)
