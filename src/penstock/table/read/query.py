"""Planning of a batch read from its options: the state or the changes to read, the columns, the files.

With ``scan.fallback-branch``, partitions that are missing in the current branch are read from another branch.

Source:
    Paimon ``flink:FlinkConnectorOptions.java``, ``flink:lookup/PartitionLoader.java`` for ``scan.partitions``;
    ``core:table/FallbackReadFileStoreTable.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.row.row import row_decoder
from penstock.format.text.partitions import parse_partition, partition_text
from penstock.format.types.data_types import with_nullability
from penstock.format.types.text import format_sql_type
from penstock.options import ReadOptions, check_reads
from penstock.predicate.tree import And
from penstock.table.assumptions import check_same_table, warn_other_engines
from penstock.table.partition_scope import filter_of_specs
from penstock.table.read.branch import at_branch
from penstock.table.read.incremental import plan_changes, reads_changes
from penstock.table.read.live import load_partitions
from penstock.table.read.origins import load_origins
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import value_order
from penstock.table.read.travel import at_snapshot, newest_by_time, parse_local_time, resolve_read
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import FileKey
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.format.types.data_types import DataType
    from penstock.predicate.tree import Predicate
    from penstock.table.read.scan import Funnel, FunnelStage, ScanPartition, ScanPlan
    from penstock.table.read.travel import ReadPoint
    from penstock.table.ref import TableRef


KEY: Final = "scan.fallback-branch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The state of the other branch that a read uses.

    Attributes:
        ref: the branch, with the options of the read and the columns of the state.
        snapshot: the state; None if the branch has none.
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
            store: of the current branch, whose schemas describe the added files, too.
        """
        other = MetadataStore(self.ref)
        found = plan_scan(other, self.ref, self.snapshot, predicate, with_vectors=with_vectors)
        schemas = _SchemaIds(store, other)
        added = tuple(schemas.translated(each) for each in found.partitions if each.data not in self.here)
        # A branch shares files with the one from which it was created, and rows may be deleted in one of them only.
        vectors = {key: place for key, place in found.vectors.items() if key.partition not in self.here}
        return replace(
            plan,
            snapshot=plan.snapshot or found.snapshot,
            partitions=(*plan.partitions, *added),
            funnel=_sum_of(plan.funnel, found.funnel),
            vectors={**vectors, **plan.vectors},
        )


class _SchemaIds:
    """Ids of schemas of the current branch, by those of another one: readers look up the columns of files by them.

    The two differ where an option was changed in one branch only.
    """

    def __init__(self, store: MetadataStore, other: MetadataStore) -> None:
        self._store = store
        self._other = other
        self._ids: dict[int, int] = {}

    def translated(self, partition: ScanPartition) -> ScanPartition:
        """Return a partition of the other branch with ids of the current one. Raises ``UnsupportedFeatureError``."""
        entries = tuple(
            replace(entry, file=replace(entry.file, schema_id=self._id_of(entry.file.schema_id)))
            for entry in partition.entries
        )
        return replace(partition, entries=entries)

    def _id_of(self, schema_id: int) -> int:
        if schema_id not in self._ids:
            self._ids[schema_id] = self._find(schema_id)
        return self._ids[schema_id]

    def _find(self, schema_id: int) -> int:
        wanted = _columns_of(self._other.load_schema(schema_id))
        for each in sorted(self._store.list_schema_ids(), key=lambda found: (found != schema_id, found)):
            if _columns_of(self._store.load_schema(each)) == wanted:
                return each
        raise UnsupportedFeatureError(
            f"table {self._store.name}: '{KEY}' names {self._other.name}, which has files of schema {schema_id}, and "
            "no schema here has the same columns; change the columns of both branches in the same steps, or read the "
            "branch by its name"
        )


def pin_fallback(
    ref: TableRef, store: MetadataStore, point: ReadPoint | None, *, keeps_columns: bool = False
) -> Fallback | None:
    """Return the state of the fallback branch in the table's options; None if there is no branch, or no past state.

    For a past state, this is the newest snapshot of the branch that was committed no later, or its tag of the same
    name.

    Args:
        ref: with the columns of the read.
        point: the state of the current branch; None for a read of changes.
        keeps_columns: take the latest columns of the branch, not those of the state.
    """
    name = fallback_of(ref.options)
    if name is None:
        return None
    if point is None or point.created_from_millis is not None:
        raise UnsupportedFeatureError(
            f"table {ref.name}: '{KEY}' = '{name}' adds partitions to a read of a state, not to one of changes or of "
            "new files; set the option to an empty text for this read"
        )
    try:
        branch = at_branch(ref, name)
    except (NotFoundError, InvalidOptionError) as error:
        raise type(error)(f"'{KEY}' = '{name}': {error}; ALTER TABLE ... RESET ('{KEY}') removes the option") from error
    branch = replace(ref, name=branch.name, file_io=branch.file_io, schema=branch.schema)
    other = MetadataStore(branch)
    there = other.load_latest_snapshot() if point.is_latest else _past_of(ref, other, point)
    if not point.is_latest:
        if there is None:
            return None
        branch = branch if keeps_columns else at_snapshot(branch, other, there)
    _check_columns(ref, branch)
    return Fallback(ref=branch, snapshot=there, here=_partitions_of(store, point.snapshot))


def fallback_of(options: Mapping[str, str]) -> str | None:
    """Return the name of the fallback branch; None if there is none."""
    return options.get(KEY, "").strip() or None


def _past_of(ref: TableRef, other: MetadataStore, point: ReadPoint) -> Snapshot | None:
    """Return the state of the other branch that belongs to a past state.

    Source:
        Paimon ``FallbackReadFileStoreTable.rewriteOtherOptions``: a snapshot id becomes its commit time, and the names
        of tags and timestamps are passed on.
    """
    options = ref.parsed(ReadOptions)
    tag = options.tag_name or options.version
    if tag is not None and tag in other.list_tags():
        return other.load_tag(tag).snapshot
    latest = other.load_latest_snapshot()
    if latest is None or point.snapshot is None:
        return None
    millis = point.snapshot.time_millis
    if options.timestamp is not None:
        millis = parse_local_time(options.timestamp, "scan.timestamp", ref.name)
    elif options.timestamp_millis is not None:
        millis = options.timestamp_millis
    return newest_by_time(other, latest, millis, or_equal=True)


def _check_columns(ref: TableRef, branch: TableRef) -> None:
    here, there = (_columns_of(each.schema) for each in (ref, branch))
    is_same = [column[1:] for column in here] == [column[1:] for column in there]
    if not is_same or ref.schema.partition_keys != branch.schema.partition_keys:
        raise UnsupportedFeatureError(
            f"table {ref.name}: '{KEY}' names {branch.name}, whose columns differ: "
            f"{_text_of(ref)} here, {_text_of(branch)} there; change the columns of both in the same steps, or "
            "read the branch by its name"
        )


def _text_of(ref: TableRef) -> str:
    keys = ", ".join(ref.schema.partition_keys)
    return f"({', '.join(f'{field.name} {format_sql_type(field.type)}' for field in ref.schema.fields)}) by ({keys})"


def _columns_of(schema: TableSchema) -> list[tuple[int, str, DataType]]:
    return [(field.id, field.name, with_nullability(field.type, nullable=True)) for field in schema.fields]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A planned batch read.

    Attributes:
        ref: the table with the columns to read: those of the past state if one is read, else the latest.
        pinned: the read, to plan it again with more filters.
    """

    ref: TableRef
    plan: ScanPlan
    pinned: PinnedRead


def read_ref(ref: TableRef, store: MetadataStore) -> TableRef:
    """Return the table with the columns of a read with its options."""
    check_reads(ref.options, ref.name, of_batch_read=True)
    options = ref.parsed(ReadOptions)
    if reads_changes(options, ref.name):
        return ref
    point = resolve_read(store, options)
    return ref if point.is_latest or point.snapshot is None else at_snapshot(ref, store, point.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRead:
    """A batch read with a fixed state, so that all its plans have the same rows.

    Attributes:
        ref: as for ``Query``.
        point: the state; None for an incremental read, whose range each plan resolves.
        fallback: the state of the branch from which missing partitions are read.
        predicate: a filter that is combined with that of every plan.
    """

    ref: TableRef
    point: ReadPoint | None
    fallback: Fallback | None = None
    predicate: Predicate | None = None

    @property
    def state(self) -> str:
        """The state as a text, which differs between any two states of a table."""
        if self.point is None:
            return "changes"
        return _state_of(self.point.snapshot) + (
            f" with {self.fallback.ref.name} {_state_of(self.fallback.snapshot)}" if self.fallback else ""
        )

    def plan(self, store: MetadataStore, predicate: Predicate | None = None, *, with_vectors: bool = False) -> ScanPlan:
        """Plan the read, but without a check that the table still exists."""
        ref, point = self.ref, self.point
        text = ref.options.get(_KEY)
        named = None if text is None else _filter_of_partitions(ref, text, partial(self._partitions, store))
        predicate = _both(_both(self.predicate, predicate), named)
        if point is None:
            return plan_changes(store, ref, ref.parsed(ReadOptions), predicate)
        plan = plan_scan(
            store,
            ref,
            point.snapshot,
            predicate,
            created_from_millis=point.created_from_millis,
            with_vectors=with_vectors,
        )
        return self.fallback.add_to(store, plan, predicate, with_vectors=with_vectors) if self.fallback else plan

    def load_origins(self, store: MetadataStore, plan: ScanPlan) -> dict[FileKey, Snapshot]:
        """Return the snapshots that added the files of a plan, as far as they are known."""
        keys = {entry.key for entry in plan.entries}
        if self.fallback is None:
            return load_origins(store, plan.snapshot, keys)
        there = {key for key in keys if key.partition not in self.fallback.here}
        found = load_origins(MetadataStore(self.fallback.ref), self.fallback.snapshot, there)
        return found | load_origins(store, None if self.point is None else self.point.snapshot, keys - there)

    def _partitions(self, store: MetadataStore) -> frozenset[bytes]:
        """Load the serialized partitions of the state, for a read of changes those of the latest one."""
        if self.fallback is not None:
            return self.fallback.here | _partitions_of(MetadataStore(self.fallback.ref), self.fallback.snapshot)
        return _partitions_of(store, store.load_latest_snapshot() if self.point is None else self.point.snapshot)


def pin_read(ref: TableRef, store: MetadataStore, *, keeps_columns: bool = False) -> PinnedRead:
    """Fix the state that the table's options name.

    Args:
        keeps_columns: read the columns of ``ref``, the latest ones, not those of the state.
    """
    check_reads(ref.options, ref.name, of_batch_read=True)
    options = ref.parsed(ReadOptions)
    check_same_table(ref)
    if reads_changes(options, ref.name):
        pin_fallback(ref, store, None)
        return PinnedRead(ref=ref, point=None)
    point = resolve_read(store, options)
    if point.is_latest:
        warn_other_engines(ref, point.snapshot)
    elif point.snapshot is not None and not keeps_columns:
        ref = at_snapshot(ref, store, point.snapshot)
    fallback = pin_fallback(ref, store, point, keeps_columns=keeps_columns)
    return PinnedRead(ref=ref, point=point, fallback=fallback)


def plan_query(
    ref: TableRef, store: MetadataStore, predicate: Predicate | None = None, *, with_vectors: bool = False
) -> Query:
    """Plan the read that the table's options define.

    Args:
        with_vectors: as for ``plan_scan``.
    """
    pinned = replace(pin_read(ref, store), predicate=predicate)
    return Query(ref=pinned.ref, plan=pinned.plan(store, with_vectors=with_vectors), pinned=pinned)


def _state_of(snapshot: Snapshot | None) -> str:
    return "empty" if snapshot is None else str(snapshot.id)


def _partitions_of(store: MetadataStore, snapshot: Snapshot | None) -> frozenset[bytes]:
    return frozenset() if snapshot is None else load_partitions(store, snapshot)


def _both(one: Predicate | None, other: Predicate | None) -> Predicate | None:
    if one is None or other is None:
        return other if one is None else one
    return And(operands=(one, other))


_KEY: Final = "scan.partitions"
_GREATEST: Final = {"max_pt()": 1, "max_two_pt()": 2}


def _filter_of_partitions(ref: TableRef, text: str, load: Callable[[], Iterable[bytes]]) -> Predicate | None:
    """Return a filter that selects the partitions named by the option.

    Args:
        text: ``dt=2026-01-01,hr=5;dt=2026-01-02,hr=0``, ``max_pt()`` or ``max_two_pt()``.
        load: loads the partitions of which the greatest ones are selected.

    Returns:
        None if the greatest partitions are requested and the table has no partitions yet.
    """
    keys = ref.schema.partition_keys
    if not keys:
        raise InvalidOptionError(f"table {ref.name}: option '{_KEY}' = '{text}': it has no partitions; leave it out")
    count = _GREATEST.get(text.strip().lower())
    if count is not None:
        specs = _greatest(ref, load(), count)
        return filter_of_specs(ref, specs) if specs else None
    named = [parse_partition(part.strip()) for part in text.split(";") if part.strip()]
    for spec in named:
        # The reference uses NULL for columns that are left out, which is hardly ever intended.
        if set(spec) != set(keys):
            raise InvalidOptionError(
                f"table {ref.name}: option '{_KEY}' = '{text}': expected partitions such as "
                f"'{','.join(f'{key}=...' for key in keys)}', with semicolons between them, or max_pt(), max_two_pt()"
            )
    if not named:
        raise InvalidOptionError(f"table {ref.name}: option '{_KEY}' = '{text}' names no partition; leave it out")
    return filter_of_specs(ref, named)


def _greatest(ref: TableRef, partitions: Iterable[bytes], count: int) -> list[Mapping[str, str | None]]:
    fields = ref.schema.partition_fields
    decode = row_decoder(tuple(field.type for field in fields))
    rows = sorted(map(decode, partitions), key=value_order)
    return [
        {
            field.name: None if value is None else partition_text(field, value, legacy_name=False)
            for field, value in zip(fields, row, strict=True)
        }
        for row in rows[-count:]
    ]
