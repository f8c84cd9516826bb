"""Preview of the data that a drop or an overwrite would remove, without changing the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, NotFoundError
from penstock.printable import Result
from penstock.table.partition_scope import WrittenPartitions, partition_test, scope_of_specs
from penstock.table.read.live import load_live_entries, pruner_of_scope
from penstock.table.write.assign import Assigner
from penstock.table.write.rolling import plan_buckets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Removal(Result):
    """Amount of live data that would be removed.

    Attributes:
        snapshot_id: the latest snapshot, which the numbers are for; None when nothing was ever committed.
    """

    snapshot_id: int | None
    partitions: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0


def preview_drop(ref: TableRef, store: MetadataStore, specs: Sequence[Mapping[str, object]]) -> Removal:
    """Return what dropping partitions would remove."""
    if not specs or any(not spec for spec in specs):
        raise InvalidOptionError(f"table {ref.name}: name the partitions, such as dt=2026-01-01")
    return preview_removal(ref, store, scope_of_specs(ref, specs))


def existing_specs(
    ref: TableRef, store: MetadataStore, specs: Sequence[Mapping[str, object]], *, may_miss: bool
) -> tuple[Mapping[str, object], ...]:
    """Return those of the partitions that have rows."""
    there = tuple(spec for spec in specs if preview_drop(ref, store, [spec]).partitions)
    if len(there) < len(specs) and not may_miss:
        missing = next(spec for spec in specs if spec not in there)
        text = ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in missing.items())
        raise NotFoundError(f"table {ref.name} has no partition with {text}; nothing was dropped")
    return there


def preview_removal(
    ref: TableRef, store: MetadataStore, scope: OverwriteScope, batches: Iterable[pa.RecordBatch] = ()
) -> Removal:
    """Return what an overwrite of a scope would remove.

    Args:
        batches: the rows to write, with the table's canonical schema; read only if the scope depends on them.
    """
    snapshot = store.load_latest_snapshot()
    touched = written_partitions(ref, batches) if isinstance(scope, WrittenPartitions) else frozenset[bytes]()
    if snapshot is None:
        return Removal(snapshot_id=None)
    goes = partition_test(scope, touched=touched, ref=ref)
    going = load_live_entries(store, snapshot, goes, pruner_of_scope(ref.schema, scope, touched)).values()
    return Removal(
        snapshot_id=snapshot.id,
        partitions=len({entry.partition for entry in going}),
        files=len(going),
        rows=sum(entry.file.row_count for entry in going),
        bytes=sum(entry.file.file_size for entry in going),
    )


def written_partitions(ref: TableRef, batches: Iterable[pa.RecordBatch]) -> frozenset[bytes]:
    """Return the serialized partitions of the rows."""
    assigner = Assigner(ref.schema, plan_buckets(ref))
    for batch in batches:
        assigner.assign(batch)
    return frozenset(group.partition for group in assigner.groups)
