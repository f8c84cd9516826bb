"""A writer that is paused at a call to storage, while others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.table.commit_tables import append, committer, rows

from penstock.table.expire.snapshots import SnapshotExpirer
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


class PausedFileIO(RecordingFileIO):
    """Runs what others do before, or after, the first put or deletion of a file whose path ends so."""

    def __init__(
        self,
        inner: FileIO,
        path_end: str,
        *,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(inner)
        self._path_end = path_end
        self._before = before
        self._after = after
        self.was_paused = False

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Put, with a pause."""
        if self.was_paused or not path.endswith(self._path_end):
            return super().put_if_absent(path, data)
        self.was_paused = True
        self._before()
        done = super().put_if_absent(path, data)
        self._after()
        return done

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete, with a pause."""
        if self.was_paused or not path.endswith(self._path_end):
            return super().delete(path, recursive=recursive)
        self.was_paused = True
        self._before()
        done = super().delete(path, recursive=recursive)
        self._after()
        return done


def commit_rows(ref: TableRef, *counts: int) -> None:
    """Make a snapshot for each count, by a committer of its own."""
    for count in counts:
        assert committer(ref).commit(append(rows(count))) is not None


def expire_to(ref: TableRef, kept: int) -> None:
    """Let all but the newest snapshots go."""
    expirer = SnapshotExpirer(ref, MetadataStore(ref))
    expirer.run(expirer.rules(retain_min=kept, retain_max=kept, older_than=4_000_000_000_000))
