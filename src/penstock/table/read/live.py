"""The live files of a snapshot, as commit and maintenance need them.

Source:
    Paimon ``core:manifest/FileEntry.java``; docs/spec/format.md section 5.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.format.manifest.entry import FileKind
from penstock.format.row.row import row_decoder
from penstock.predicate.tree import And, BoundPredicate, Compare, IsNull, Operator, Or
from penstock.table.read.prune import NO_FILTER, PartitionPruner
from penstock.table.read.scan import live_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from penstock.format.manifest.entry import EntryNumbers, FileIdentity, ManifestEntry
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore

# For more partitions, a filter on the manifests' statistics skips few manifests.
_MAX_PARTITIONS: Final = 64


def load_live_entries(
    store: MetadataStore,
    snapshot: Snapshot,
    keep: Callable[[bytes], bool],
    pruner: PartitionPruner | None = None,
) -> dict[FileIdentity, ManifestEntry]:
    """Load the live entries of the partitions that ``keep`` accepts, in manifest order.

    Args:
        keep: called once per distinct serialized partition.
        pruner: skips manifests that contain none of these partitions.
    """
    answers: dict[bytes, bool] = {}
    kept = []
    metas = [meta for meta in store.load_manifests(snapshot) if pruner is None or pruner.may_hold(meta)]
    for entries in store.iter_manifests(metas, snapshot_id=snapshot.id):
        for entry in entries:
            answer = answers.get(entry.partition)
            if answer is None:
                answer = answers[entry.partition] = keep(entry.partition)
            if answer:
                kept.append(entry)
    return {entry.identity: entry for entry in live_entries(kept)}


def load_live_of_partitions(
    store: MetadataStore, schema: TableSchema, snapshot: Snapshot, partitions: frozenset[bytes]
) -> dict[FileIdentity, ManifestEntry]:
    """Load the live entries of some serialized partitions.

    Manifests are in commit order, so for a table that is partitioned by time only the last few manifests are read,
    however many there are.
    """
    pruner = PartitionPruner(schema, _partition_filter(schema, partitions))
    return load_live_entries(store, snapshot, partitions.__contains__, pruner)


def load_live_numbers(
    store: MetadataStore, schema: TableSchema, snapshot: Snapshot, partitions: frozenset[bytes]
) -> Collection[ManifestEntry | EntryNumbers]:
    """Load only the fields of the live entries of some serialized partitions that sequence numbers need.

    This takes half the time of ``load_live_of_partitions``. Files are identified by name only, as names contain a UUID.
    """
    pruner = PartitionPruner(schema, _partition_filter(schema, partitions))
    live: dict[str, ManifestEntry | EntryNumbers] = {}
    metas = [meta for meta in store.load_manifests(snapshot) if pruner.may_hold(meta)]
    for entries in store.iter_entry_numbers(metas, snapshot_id=snapshot.id):
        for entry in entries:
            if entry.partition not in partitions:
                continue
            if entry.kind is FileKind.ADD:
                live[entry.file.file_name] = entry
            else:
                live.pop(entry.file.file_name, None)
    return live.values()


def _partition_filter(schema: TableSchema, partitions: frozenset[bytes]) -> BoundPredicate:
    if not schema.partition_keys or len(partitions) > _MAX_PARTITIONS:
        return NO_FILTER
    decode = row_decoder(tuple(field.type for field in schema.partition_fields))
    branches = tuple(
        And(
            operands=tuple(
                IsNull(column=name) if value is None else Compare(column=name, operator=Operator.EQ, value=value)
                for name, value in zip(schema.partition_keys, decode(partition), strict=True)
            )
        )
        for partition in partitions
    )
    return BoundPredicate(root=Or(operands=branches), fields=schema.partition_fields)
