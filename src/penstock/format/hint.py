"""The hint files ``snapshot/LATEST`` and ``snapshot/EARLIEST``.

Source:
    Paimon ``core:utils/HintFileUtils.java``; docs/spec/format.md section 3.1.
"""

from __future__ import annotations


def decode_hint(data: bytes) -> int | None:
    """Decode a hint file; None where it is unusable, since a hint is overwritten in place and may be seen half-way."""
    text = data.decode("ascii", "replace").strip()
    # 19 digits hold every 64-bit id.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None


def encode_hint(snapshot_id: int) -> bytes:
    """Encode a hint file: decimal digits, no line break."""
    return str(snapshot_id).encode("ascii")
