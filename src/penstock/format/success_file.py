"""The file ``_SUCCESS``, which marks a partition as done, or a tag as created.

Source:
    Paimon ``core:partition/file/SuccessFile.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.format.text.json import decode_json, encode_json

_CREATION_TIME: Final = "creationTime"
_MODIFICATION_TIME: Final = "modificationTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessFile:
    """First and last time at which a partition or tag was marked.

    Attributes:
        creation_millis: first time, ms since 1970-01-01 UTC.
        modification_millis: last time, ms since 1970-01-01 UTC.
    """

    creation_millis: int
    modification_millis: int


def decode_success_file(data: bytes, path: str) -> SuccessFile:
    """Decode a success file; other keys are ignored.

    Args:
        data: the whole file.
        path: only for messages.
    """
    json = decode_json(data, "success file", path)
    return SuccessFile(
        creation_millis=json.integer(_CREATION_TIME), modification_millis=json.integer(_MODIFICATION_TIME)
    )


def encode_success_file(success: SuccessFile) -> bytes:
    """Encode a success file."""
    return encode_json({_CREATION_TIME: success.creation_millis, _MODIFICATION_TIME: success.modification_millis})
