"""Truncate the bounds of a column's range, so that long values do not fill the manifests.

Source:
    Paimon ``common:statistics/TruncateSimpleColStatsCollector.java``; docs/spec/format.md section 7.1.
"""

from __future__ import annotations

from typing import Final

_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def truncate_min(value: object, length: int) -> object:
    """Return the first ``length`` code points of a string or bytes of a binary; other values unchanged."""
    return value[:length] if isinstance(value, str | bytes) else value


def truncate_max(value: object, length: int) -> object:
    """Return an upper bound of ``value`` with at most ``length`` code points or bytes.

    Returns:
        The bound; None if there is none; values that are neither strings nor bytes unchanged.
    """
    match value:
        case str() if len(value) > length:
            return _raise_text(value[:length])
        case bytes() if len(value) > length:
            return _raise_bytes(value[:length])
        case _:
            return value


def _raise_text(prefix: str) -> str | None:
    for place in reversed(range(len(prefix))):
        following = ord(prefix[place]) + 1
        if following in _SURROGATES:
            # Java writes the surrogate, which UTF-8 cannot encode, so its maximum has '?' instead and is too low.
            following = _SURROGATES.stop
        if following <= _LAST_CODE_POINT:
            return prefix[:place] + chr(following)
    return None


def _raise_bytes(prefix: bytes) -> bytes | None:
    for place in reversed(range(len(prefix))):
        if prefix[place] < 0xFF:
            return prefix[:place] + bytes((prefix[place] + 1,))
    return None
