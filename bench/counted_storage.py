"""Storage that counts the calls of each commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO

READS = (Operation.READ, Operation.OPEN_INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReads:
    """Calls between one snapshot and the next.

    Attributes:
        manifests: number read, without manifest lists.
        calls: to the storage, of all kinds.
    """

    manifests: int
    calls: int


class CountedFileIO(RecordingFileIO):
    """Adds an entry to ``commits`` for every committed snapshot; copies in tasks have their own counts."""

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self.commits: list[CommitReads] = []

    def __getstate__(self) -> dict[str, Any]:
        # A log that is sent with every task would itself slow down later tasks.
        return {**super().__getstate__(), "commits": [], "_calls": []}

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Delegate; finish the counts of a commit if a snapshot was committed."""
        landed = super().put_if_absent(path, data)
        if landed and "/snapshot/snapshot-" in path:
            manifests = [name for name in self.paths(*READS) if is_manifest(name)]
            self.commits.append(CommitReads(manifests=len(manifests), calls=len(self.calls)))
            self.forget()
        return landed


def is_manifest(path: str) -> bool:
    """Whether a file is a manifest, not a manifest list."""
    return "/manifest/manifest-" in path and "/manifest-list-" not in path
