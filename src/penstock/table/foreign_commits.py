"""A check for commits of other engines on object stores.

Penstock creates a snapshot by a conditional put, so only one of several writers succeeds. Paimon without a lock checks
whether the snapshot exists, writes a temporary file, and renames it by copying, which replaces a snapshot that was
created meanwhile: in 45 of 400 races it replaced one of Penstock's. So if another engine created the latest snapshot,
it may be about to commit the next one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from penstock.errors import OtherEngineWarning, UnsupportedFeatureError, warn
from penstock.options import CommitOptions

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef

WRITER_VERSION: Final = "penstock"
"""``writer_version`` of the snapshots that Penstock makes."""

ALLOW_KEY: Final = "penstock.object-store.allow-other-engines"


class _Warned:
    """The tables about which this process has warned."""

    def __init__(self) -> None:
        self.locations: set[str] = set()
        self.lock = threading.Lock()

    def is_first(self, location: str) -> bool:
        with self.lock:
            is_new = location not in self.locations
            self.locations.add(location)
            return is_new


_WARNED: Final = _Warned()


def check_other_engines(ref: TableRef, latest: Snapshot | None) -> None:
    """Refuse to commit on an object store if another engine created the latest snapshot."""
    if latest is not None and _is_foreign(ref, latest):
        raise UnsupportedFeatureError(
            f"table {ref.name}: another engine created snapshot {latest.id} (commit user {latest.commit_user}), and on "
            "an object store its next commit could replace one of Penstock, or be replaced by it; nothing was "
            f"committed: make sure that no other engine commits to the table any more, then set '{ALLOW_KEY}' = 'true' "
            "for one commit"
        )


def warn_other_engines(ref: TableRef, latest: Snapshot | None) -> None:
    """Warn once for each table on an object store whose latest snapshot another engine created."""
    if latest is not None and _is_foreign(ref, latest) and _WARNED.is_first(ref.location):
        warn(
            f"table {ref.name}: another engine created snapshot {latest.id}; reading is safe, but while it commits to "
            "the table on this object store Penstock must not",
            OtherEngineWarning,
        )


def _is_foreign(ref: TableRef, latest: Snapshot) -> bool:
    if latest.writer_version == WRITER_VERSION or not ref.file_io.is_object_store:
        return False
    return not ref.parsed(CommitOptions).allow_other_engines
