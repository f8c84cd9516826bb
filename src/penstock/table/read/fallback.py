"""``scan.fallback-branch``: partitions that are missing in the current branch are read from another branch.

Source:
    Paimon ``core:table/FallbackReadFileStoreTable.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.table.read.branch import at_branch
from penstock.table.read.live import load_live_entries
from penstock.table.read.scan import plan_scan
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.read.scan import Funnel, FunnelStage, ScanPlan
    from penstock.table.ref import TableRef

KEY: Final = "scan.fallback-branch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The state of the other branch that a read uses.

    Attributes:
        ref: the branch, with the options of the read.
        snapshot: its latest snapshot; None if it has none.
        here: serialized partitions of the current branch, which are not read from the other one.
    """

    ref: TableRef
    snapshot: Snapshot | None
    here: frozenset[bytes]

    def add_to(
        self, store: MetadataStore, plan: ScanPlan, predicate: Predicate | None, *, with_vectors: bool
    ) -> ScanPlan:
        """Return a plan extended by the partitions of the other branch that are missing in the current one.

        Args:
            store: of the current branch, whose columns are read.

        Raises:
            UnsupportedFeatureError: the schema of a file differs between the branches.
        """
        other = MetadataStore(self.ref)
        found = plan_scan(other, self.ref, self.snapshot, predicate, with_vectors=with_vectors)
        added = tuple(each for each in found.partitions if each.data not in self.here)
        _check_schemas(store, other, chain.from_iterable(each.entries for each in added))
        vectors = {**found.vectors, **plan.vectors}
        return replace(
            plan,
            snapshot=plan.snapshot or found.snapshot,
            partitions=(*plan.partitions, *added),
            funnel=_sum_of(plan.funnel, found.funnel),
            vectors=vectors,
        )


def pin_fallback(ref: TableRef, store: MetadataStore, snapshot: Snapshot | None, *, is_latest: bool) -> Fallback | None:
    """Return the state of the fallback branch in the table's options; None if there is none.

    Args:
        snapshot: the state of the current branch.
        is_latest: whether the read is of the latest state.

    Raises:
        NotFoundError: there is no such branch.
        InvalidOptionError: the branch name is invalid.
        UnsupportedFeatureError: the read is not of the latest state.
    """
    name = ref.options.get(KEY, "").strip()
    if not name:
        return None
    if not is_latest:
        raise UnsupportedFeatureError(
            f"table {ref.name}: '{KEY}' = '{name}' adds partitions to a read of the latest state only; leave out the "
            f"position, or set the option to an empty text for this read"
        )
    try:
        branch = at_branch(ref, name)
    except (NotFoundError, InvalidOptionError) as error:
        raise type(error)(f"'{KEY}' = '{name}': {error}") from error
    branch = replace(ref, name=branch.name, file_io=branch.file_io)
    live = load_live_entries(store, snapshot, lambda _: True) if snapshot is not None else {}
    here = frozenset(entry.partition for entry in live.values())
    return Fallback(ref=branch, snapshot=MetadataStore(branch).load_latest_snapshot(), here=here)


def _check_schemas(store: MetadataStore, other: MetadataStore, entries: Iterable[ManifestEntry]) -> None:
    """Refuse files whose schema id has other columns in this branch: a reader resolves columns by schema id."""
    known = set(store.list_schema_ids())
    for schema_id in {entry.file.schema_id for entry in entries}:
        if schema_id not in known or store.load_schema(schema_id).fields != other.load_schema(schema_id).fields:
            raise UnsupportedFeatureError(
                f"table {store.name}: '{KEY}' names {other.name}, which has files of a schema {schema_id} that "
                "differs here; give both branches the same columns in the same steps, or read the branch by its name"
            )


def _sum_of(one: Funnel, two: Funnel) -> Funnel:
    if not one.stages or not two.stages:
        return one if one.stages else two
    return replace(
        one,
        manifests_total=one.manifests_total + two.manifests_total,
        manifests_read=one.manifests_read + two.manifests_read,
        files_total=one.files_total + two.files_total,
        rows_total=None if one.rows_total is None or two.rows_total is None else one.rows_total + two.rows_total,
        stages=_sum_of_stages(one.stages, two.stages),
        index_files=one.index_files + two.index_files,
        index_bytes=one.index_bytes + two.index_bytes,
    )


def _sum_of_stages(one: Sequence[FunnelStage], two: Sequence[FunnelStage]) -> tuple[FunnelStage, ...]:
    """Add up stages; for steps that a branch lacks, its last stage is used."""
    most = max(len(one), len(two))
    pairs = [(one[min(place, len(one) - 1)], two[min(place, len(two) - 1)]) for place in range(most)]
    longer = one if len(one) == most else two
    return tuple(replace(_stage_of(*pair), name=stage.name) for pair, stage in zip(pairs, longer, strict=True))


def _stage_of(one: FunnelStage, two: FunnelStage) -> FunnelStage:
    return replace(
        one,
        partitions=one.partitions + two.partitions,
        buckets=one.buckets + two.buckets,
        files=one.files + two.files,
        bytes=one.bytes + two.bytes,
        rows=one.rows + two.rows,
    )
