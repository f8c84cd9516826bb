"""Random histories by several writers, held against a model of the table."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.model import ModelRow, ModelSnapshot, TableModel, by_group

import penstock
from penstock.catalog.changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from penstock.format.row.bucket import bucket_of
from penstock.format.snapshot import CommitKind, Snapshot
from penstock.format.types.data_types import BIGINT
from penstock.io.memory import MemoryFileIO
from penstock.table.actions.changes import open_committer
from penstock.table.commit.cleanup import commit_or_discard
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.read.live import load_live_entries
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from penstock.table.commit.committer import TableCommitter

KEY, NUMBER, PART = 0, 1, 2  # field ids of k, v, p
NAMES: Final = ("c0", "c1", "c2")
HANDLES: Final = 3
MACHINES = itertools.count()

PARTS = st.sampled_from(["a", "b", "", None])
WHICH = st.integers(0, HANDLES - 1)
PLACES = st.integers(0, 99)
# Key, partition, and a number for the further columns.
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 9)), PARTS, st.integers(0, 9)), max_size=6)
MANIFEST_OPTIONS = st.fixed_dictionaries(
    {
        "manifest.target-file-size": st.sampled_from(["1 b", "3 kb", "8 mb"]),
        "manifest.merge-min-count": st.sampled_from(["2", "3", "30"]),
        "manifest.full-compaction-threshold-size": st.sampled_from(["1 b", "9 kb", "16 mb"]),
    }
)


class TableMachine(RuleBasedStateMachine):
    """A table and its model. Column v numbers the rows, so that each is told from every other."""

    @initialize(
        buckets=st.sampled_from([-1, 1, 3]),
        is_partitioned=st.booleans(),
        file_rows=st.sampled_from(["2", "1000"]),
        manifests=MANIFEST_OPTIONS,
    )
    def create(self, *, buckets: int, is_partitioned: bool, file_rows: str, manifests: dict[str, str]) -> None:
        self.buckets = buckets
        self.is_partitioned = is_partitioned
        self.store_name = f"machine-{next(MACHINES)}"
        self.catalog = penstock.Catalog(f"memory://{self.store_name}")
        self.catalog.create_database("db")
        # The model has no merges, so appends make none.
        no_merges = {"compaction.min.file-num": "1000"}
        options = {"bucket": str(buckets), "target-file-row-num": file_rows, **no_merges, **manifests}
        if buckets > 1:
            options["bucket-key"] = "k"
        partition_by = ["p"] if is_partitioned else []
        self.catalog.create_table("db.t", "k BIGINT, v INT, p STRING", partition_by=partition_by, options=options)
        self.model = TableModel(schemas=[{"k": KEY, "v": NUMBER, "p": PART}])
        self.types: dict[int, pa.DataType] = {KEY: pa.int64(), NUMBER: pa.int32(), PART: pa.string()}
        self.numbers = itertools.count()
        self.names = itertools.count()
        self.handles = [self.catalog.load_table("db.t") for _ in range(HANDLES)]
        self.committers: dict[int, TableCommitter] = {}

    def teardown(self) -> None:
        if hasattr(self, "store_name"):
            for snapshot in self.model.snapshots:
                self.check_read(self.fresh(), snapshot, snapshot_id=snapshot.id)
            MemoryFileIO(self.store_name).discard()

    # Writing

    @rule(which=WHICH, rows=ROWS)
    def append(self, which: int, rows: list[Any]) -> None:
        table, added = self.make_rows(which, rows)
        self.check_snapshot(self.handles[which].append(table), self.model.append(added))

    @rule(order=st.permutations(range(HANDLES)), rows=ROWS)
    def append_in_turns(self, order: list[int], rows: list[Any]) -> None:
        for which in [*order, order[0]]:
            self.append(which, rows)

    @rule(which=WHICH, rows=ROWS, watermark=st.one_of(st.none(), st.integers(0, 1_000)))
    def append_with_watermark(self, which: int, rows: list[Any], watermark: int | None) -> None:
        table, added = self.make_rows(which, rows)
        ref = self.handles[which]._ref
        committer = self.committers.setdefault(which, open_committer(ref))
        request = CommitRequest(
            commit_user=new_commit_user(),
            kind=CommitKind.APPEND,
            messages=write_arrow(ref, table),
            watermark=watermark,
        )
        self.check_snapshot(commit_or_discard(committer, request), self.model.append(added, watermark=watermark))

    @rule(which=WHICH, rows=ROWS)
    def overwrite_touched_partitions(self, which: int, rows: list[Any]) -> None:
        table, added = self.make_rows(which, rows)
        touched = {row.get(PART) for row in added}
        found = self.handles[which].overwrite(table)
        if self.is_partitioned and not added:
            assert found is None
        else:
            is_replaced = self.in_parts(touched) if self.is_partitioned else lambda _: True
            self.check_snapshot(found, self.model.overwrite(added, is_replaced))

    @precondition(lambda self: self.is_partitioned)
    @rule(which=WHICH, rows=ROWS, part=PARTS)
    def overwrite_one_partition(self, which: int, rows: list[Any], part: str | None) -> None:
        table, added = self.make_rows(which, [(key, part, other) for key, _, other in rows])
        found = self.handles[which].overwrite(table, partition={"p": part})
        self.check_snapshot(found, self.model.overwrite(added, self.in_parts({part})))

    @rule(which=WHICH, rows=st.one_of(st.none(), ROWS))
    def overwrite_everything_or_truncate(self, which: int, rows: list[Any] | None) -> None:
        if rows is None:
            self.check_snapshot(self.handles[which].truncate(), self.model.overwrite((), lambda _: True))
        else:
            table, added = self.make_rows(which, rows)
            found = self.handles[which].overwrite(table, partition={})
            self.check_snapshot(found, self.model.overwrite(added, lambda _: True))

    @precondition(lambda self: self.is_partitioned)
    @rule(which=WHICH, parts=st.sets(PARTS, min_size=1, max_size=2))
    def drop_partitions(self, which: int, parts: set[str | None]) -> None:
        found = self.handles[which].drop_partitions(*({"p": part} for part in parts))
        self.check_snapshot(found, self.model.overwrite((), self.in_parts(parts)))

    # Columns

    @rule(name=st.sampled_from(NAMES), data_type=st.sampled_from(["INT", "STRING"]))
    def add_column(self, name: str, data_type: str) -> None:
        if name not in self.model.columns:
            field_id = max(self.types) + 1
            self.types[field_id] = pa.int32() if data_type == "INT" else pa.string()
            self.catalog.alter_table("db.t", AddColumn(column=name, type=data_type))
            self.model.evolve({**self.model.columns, name: field_id})

    @rule(name=st.sampled_from(NAMES))
    def drop_column(self, name: str) -> None:
        # A renamed column of row numbers too has to stay: the rows are told apart by it.
        if self.model.columns.get(name, NUMBER) != NUMBER:
            self.catalog.alter_table("db.t", DropColumn(column=name))
            self.model.evolve({key: value for key, value in self.model.columns.items() if key != name})

    @rule(field_id=st.sampled_from([NUMBER, 3, 4, 5]), new_name=st.sampled_from(["v", *NAMES]))
    def rename_column(self, field_id: int, new_name: str) -> None:
        names = {value: key for key, value in self.model.columns.items()}
        if field_id in names and new_name not in self.model.columns:
            self.catalog.alter_table("db.t", RenameColumn(column=names[field_id], new_name=new_name))
            columns = self.model.columns.items()
            self.model.evolve({new_name if value == field_id else key: value for key, value in columns})

    @rule(field_id=st.sampled_from([NUMBER, 3, 4, 5]))
    def widen_column(self, field_id: int) -> None:
        names = {value: key for key, value in self.model.columns.items()}
        if field_id in names and self.types[field_id] == pa.int32():
            self.catalog.alter_table("db.t", UpdateColumnType(column=names[field_id], type="BIGINT"))
            self.types[field_id] = pa.int64()
            self.model.evolve(dict(self.model.columns))

    # History

    @rule(which=WHICH)
    def load_again(self, which: int) -> None:
        self.handles[which] = self.fresh()
        self.committers.pop(which, None)

    @precondition(lambda self: self.model.snapshots)
    @rule(which=WHICH, place=PLACES)
    def create_tag(self, which: int, place: int) -> None:
        name = f"tag-{next(self.names)}"
        snapshot = self.model.snapshots[place % len(self.model.snapshots)]
        self.handles[which].create_tag(name, snapshot_id=snapshot.id)
        self.model.tags[name] = snapshot

    @precondition(lambda self: self.model.tags)
    @rule(which=WHICH, place=PLACES)
    def delete_tag(self, which: int, place: int) -> None:
        name = sorted(self.model.tags)[place % len(self.model.tags)]
        self.handles[which].versions.delete_tag(name)
        del self.model.tags[name]

    @precondition(lambda self: self.model.snapshots)
    @rule(which=WHICH, back=st.integers(0, 3))
    def roll_back(self, which: int, back: int) -> None:
        target = self.model.snapshots[max(0, len(self.model.snapshots) - 1 - back)]
        self.handles[which].rollback_to(snapshot_id=target.id)
        self.model.roll_back(target)

    @precondition(lambda self: self.model.tags)
    @rule(which=WHICH, place=PLACES)
    def roll_back_to_tag(self, which: int, place: int) -> None:
        name = sorted(self.model.tags)[place % len(self.model.tags)]
        self.handles[which].rollback_to(tag=name)
        self.model.roll_back(self.model.tags[name])

    # Reading

    @precondition(lambda self: self.model.snapshots)
    @rule(which=WHICH, is_fresh=st.booleans(), place=PLACES)
    def read_snapshot(self, which: int, is_fresh: bool, place: int) -> None:  # noqa: FBT001 - hypothesis names it
        snapshot = self.model.snapshots[place % len(self.model.snapshots)]
        handle = self.fresh() if is_fresh else self.handles[which]
        self.check_read(handle, snapshot, snapshot_id=snapshot.id)

    @precondition(lambda self: self.model.tags)
    @rule(which=WHICH, place=PLACES)
    def read_tag(self, which: int, place: int) -> None:
        name = sorted(self.model.tags)[place % len(self.model.tags)]
        self.check_read(self.handles[which], self.model.tags[name], tag=name)

    @rule(which=WHICH)
    def read_latest_through_a_stale_handle(self, which: int) -> None:
        handle = self.handles[which]
        try:
            found = handle.to_arrow()
        except penstock.SchemaMismatchError:
            # Files of a wider type are there; values that the older type cannot hold are refused, not cut.
            types = {field.id: field.type for field in self.fresh().schema.fields}
            assert any(types.get(field.id, field.type) != field.type for field in handle.schema.fields)
            return
        self.check_rows(found, self.model.read(self.model.latest, handle.schema.id), handle.schema.id)

    @invariant()
    def the_latest_rows_and_the_history_are_the_models(self) -> None:
        handle = self.fresh()
        latest = len(self.model.schemas) - 1
        assert handle.schema.id == latest
        assert handle._store.list_snapshot_ids() == tuple(each.id for each in self.model.snapshots)
        assert set(handle._store.list_tags()) == set(self.model.tags)
        self.check_rows(handle.to_arrow(), self.model.read(self.model.latest, latest), latest)
        if self.buckets > 0:
            self.check_numbers(handle)

    # Helpers

    def fresh(self) -> penstock.Table:
        return self.catalog.load_table("db.t")

    def in_parts(self, parts: set[Any]) -> Callable[[ModelRow], bool]:
        return lambda row: row.get(PART) in parts

    def make_rows(self, which: int, rows: list[Any]) -> tuple[pa.Table, list[ModelRow]]:
        """Rows as a writer with that handle's schema gives them, and as the model keeps them."""
        handle = self.handles[which]
        columns = self.model.schemas[handle.schema.id]
        made: list[ModelRow] = []
        for key, part, other in rows:
            values: dict[int, object] = {KEY: key, NUMBER: next(self.numbers), PART: part}
            for name, field_id in columns.items():
                if field_id not in values:
                    values[field_id] = (
                        other if pa.types.is_integer(handle.arrow_schema.field(name).type) else str(other)
                    )
            made.append(values)
        names = {name: [row[field_id] for row in made] for name, field_id in columns.items()}
        return pa.table(names, schema=handle.arrow_schema), made

    def check_snapshot(self, found: Snapshot | None, expected: ModelSnapshot | None) -> None:
        if expected is None or found is None:
            assert found is expected
            return
        assert (found.id, found.commit_kind, found.schema_id) == (expected.id, expected.kind, expected.schema_id)
        assert found.total_record_count == len(expected.rows)
        assert found.delta_record_count == expected.delta_record_count
        assert found.watermark == expected.watermark

    def check_read(self, handle: penstock.Table, snapshot: ModelSnapshot, **position: Any) -> None:
        self.check_rows(handle.to_arrow(**position), self.model.read(snapshot), snapshot.schema_id)

    def check_rows(self, found: pa.Table, expected: list[dict[str, object]], schema_id: int) -> None:
        columns = self.model.schemas[schema_id]
        assert found.column_names == list(columns)
        (number,) = (name for name, field_id in columns.items() if field_id == NUMBER)
        rows = found.to_pylist()
        if self.buckets < 0:
            assert sorted(rows, key=lambda row: row[number]) == sorted(expected, key=lambda row: row[number])  # type: ignore[arg-type,return-value]
        else:
            assert by_group(rows, self.bucket) == by_group(expected, self.bucket)

    def check_numbers(self, handle: penstock.Table) -> None:
        """Sequence numbers of a bucket are dense, since nothing was compacted."""
        snapshot = handle.latest_snapshot()
        entries = load_live_entries(handle._store, snapshot).values() if snapshot else ()
        ends: dict[tuple[bytes, int], int] = {}
        for entry in sorted(entries, key=lambda each: each.file.min_sequence_number):
            key = (entry.partition, entry.bucket)
            assert entry.file.min_sequence_number == ends.get(key, 0)
            ends[key] = entry.file.max_sequence_number + 1

    def bucket(self, row: Mapping[str, object]) -> Hashable:
        return (row["p"] if self.is_partitioned else None, bucket_of([row["k"]], [BIGINT], self.buckets))


# A step costs some 20 ms, so far fewer examples than of a pure function's law.
TableMachine.TestCase.settings = settings(
    settings.get_profile(settings._current_profile),
    max_examples=max(5, settings().max_examples // 2),
    stateful_step_count=25,
    deadline=None,
)
TestTableMachine = TableMachine.TestCase
