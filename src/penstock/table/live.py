"""The live files of a snapshot, for the commit's own needs.

Source:
    Paimon ``core:manifest/FileEntry.java``; spec/format.md section 5.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.table.scan import live_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spec.manifest import FileIdentity, ManifestEntry
    from penstock.spec.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def load_live_entries(
    store: MetadataStore, snapshot: Snapshot, keep: Callable[[bytes], bool]
) -> dict[FileIdentity, ManifestEntry]:
    """Load the live entries of the partitions that ``keep`` accepts, in manifest order.

    Args:
        keep: asked once per distinct serialized partition.
    """
    answers: dict[bytes, bool] = {}
    kept = []
    for meta in store.load_manifests(snapshot):
        for entry in store.load_manifest(meta.file_name, meta.file_size, snapshot_id=snapshot.id):
            answer = answers.get(entry.partition)
            if answer is None:
                answer = answers[entry.partition] = keep(entry.partition)
            if answer:
                kept.append(entry)
    return {entry.identity: entry for entry in live_entries(kept)}
