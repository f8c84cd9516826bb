"""The hint files ``snapshot/LATEST`` and ``snapshot/EARLIEST``.

Source:
    Paimon ``core:utils/HintFileUtils.java``; docs/spec/format.md section 3.1.
"""

from __future__ import annotations


def decode_hint(data: bytes) -> int | None:
    """Decode a hint file; None if it is unusable: it is overwritten in place, so a reader may see a partial file."""
    text = data.decode("ascii", "replace").strip()
    # 19 digits suffice for every 64-bit id.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None


def encode_hint(snapshot_id: int) -> bytes:
    """Encode a hint file: decimal digits without a line break."""
    return str(snapshot_id).encode("ascii")
