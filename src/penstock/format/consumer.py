"""The consumer file ``consumer/consumer-<id>``: the next snapshot of a streaming reader.

Source:
    Paimon ``core:consumer/Consumer.java``; docs/spec/format.md section 3.2.
"""

from __future__ import annotations

from typing import Final

from penstock.format.text.json import decode_json, encode_json

_NEXT_SNAPSHOT: Final = "nextSnapshot"


def decode_consumer(data: bytes, path: str) -> int:
    """Decode a consumer file; return the id of the first snapshot that is not consumed yet.

    Args:
        data: the whole file; it is overwritten in place, so a reader may see a partial file and should retry.
        path: only for messages.
    """
    name = path.rpartition("/consumer-")[2]
    cure = (
        "restore the file from a copy, or set the consumer's position or delete it: penstock consumer reset TABLE "
        f"{name}, penstock consumer delete TABLE {name}"
    )
    return decode_json(data, "consumer file", path, cure).integer(_NEXT_SNAPSHOT)


def encode_consumer(next_snapshot: int) -> bytes:
    """Encode a consumer file; ``next_snapshot`` is the first one not consumed yet."""
    return encode_json({_NEXT_SNAPSHOT: next_snapshot})
