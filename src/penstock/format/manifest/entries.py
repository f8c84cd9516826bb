"""Merge the entries of several manifests.

Source:
    Paimon ``core:manifest/FileEntry.java``; docs/spec/format.md section 5.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import FormatError
from penstock.format.manifest.entry import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import FileIdentity, ManifestEntry


def merge_entries(entries: Iterable[ManifestEntry]) -> dict[FileIdentity, ManifestEntry]:
    """Cancel each ADD with the DELETE of the same file that follows it.

    Args:
        entries: in the order of the manifests, and of the entries in each.

    Returns:
        The remaining entries, in order of first occurrence. A remaining DELETE refers to a file that an older manifest
        adds; with all manifests of a snapshot as input there is none, unless the table is damaged.

    Raises:
        FormatError: a file is added twice.
    """
    merged: dict[FileIdentity, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        known = merged.get(identity)
        if known is None:
            merged[identity] = entry
        elif entry.kind is FileKind.ADD:
            raise FormatError(
                f"data file {entry.file.file_name} in bucket {entry.bucket} of partition {entry.partition.hex()} is "
                "added twice: the table's manifests are damaged; roll the table back to a snapshot before that"
            )
        elif known.kind is FileKind.ADD:
            del merged[identity]
        # A second DELETE changes nothing, and must not bring the file back.
    return merged
