"""Storage that counts what each commit asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO

READS = (Operation.READ, Operation.OPEN_INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReads:
    """What was asked between one snapshot and the next.

    Attributes:
        manifests: that were read, lists left out.
        calls: to the storage, of every kind.
    """

    manifests: int
    calls: int


class CountedFileIO(RecordingFileIO):
    """Adds an entry to ``commits`` whenever a snapshot lands; copies that go to tasks count for themselves."""

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self.commits: list[CommitReads] = []

    def __getstate__(self) -> dict[str, Any]:
        # A log that travels with every task would be a slope of its own.
        return {**super().__getstate__(), "commits": [], "_calls": []}

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Pass on, and close the account where a snapshot has landed."""
        landed = super().put_if_absent(path, data)
        if landed and "/snapshot/snapshot-" in path:
            manifests = [name for name in self.paths(*READS) if is_manifest(name)]
            self.commits.append(CommitReads(manifests=len(manifests), calls=len(self.calls)))
            self.forget()
        return landed


def is_manifest(path: str) -> bool:
    """Whether a file lists data files, which a manifest list does not."""
    return "/manifest/manifest-" in path and "/manifest-list-" not in path
