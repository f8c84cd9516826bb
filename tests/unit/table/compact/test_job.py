"""Dedicated compaction, from plan to snapshots."""

from __future__ import annotations

import datetime as dt
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.clocks import local_wall_millis
from penstock.errors import InvalidFilterError, NotFoundError, StorageError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind
from penstock.predicate.tree import col
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.compact.job import CompactionResult, merge_in_threads, merge_one, plan_only, run_compaction
from penstock.table.compact.plan import CompactStrategy, plan_compaction, scope_of_filter
from penstock.table.compact.task import MergedFiles
from penstock.table.compact.write import compact_written
from penstock.table.partition_scope import scope_of_specs
from penstock.table.store import MetadataStore
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.api.table import Table
    from penstock.table.compact.plan import CompactionPlan
    from penstock.table.compact.task import CompactTask
    from penstock.table.ref import TableRef

_NUMBERS = itertools.count()
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


def table_of(**options: str) -> Table:
    catalog = Catalog(f"memory://jobs-{next(_NUMBERS)}")
    catalog.create_database("db")
    return catalog.create_table("db.t", "id BIGINT, dt DATE", partition_by=["dt"], options=options)


def fill(table: Table, *counts: int) -> Table:
    """Commit one row at a time, as many as ``counts`` says for each day."""
    writer = table.with_options({"compaction.min.file-num": "1000"})  # which merges nothing by itself
    for day, count in zip(DAYS, counts, strict=False):
        for number in range(count):
            writer.append(
                pa.table({"id": pa.array([number], pa.int64()), "dt": pa.array([dt.date.fromisoformat(day)])})
            )
    return table


def ref_of(table: Table) -> TableRef:
    return table._ref


def plan(table: Table, **arguments: Any) -> CompactionPlan:
    return plan_compaction(ref_of(table), MetadataStore(ref_of(table)), **arguments)


def run(table: Table, **arguments: Any) -> CompactionResult:
    ref = ref_of(table)
    return run_compaction(
        plan(table, **arguments),
        open_committer(ref),
        lambda tasks: merge_in_threads(tasks, partial(merge_one, ref=ref), threads=2, ref=ref),
        commit_user="compactor",
    )


def files_of(table: Table) -> dict[str, int]:
    rows = table.partitions().to_pylist()
    return {str(row["partition"]): row["file_count"] for row in rows}


def summary(result: CompactionResult) -> dict[str, tuple[int, int, str | None]]:
    return {row.partition.strip("/"): (row.files_in, row.files_out, row.skipped) for row in result.partitions}


def test_a_minor_compaction_of_a_scalable_table_leaves_too_few_files_alone() -> None:
    table = fill(table_of(), 6, 3)
    result = run(table, strategy=CompactStrategy.MINOR)
    assert [snapshot.commit_kind for snapshot in result.snapshots] == [CommitKind.COMPACT]
    assert summary(result) == {"dt=2026-01-01": (6, 1, None), "dt=2026-01-02": (0, 0, "too few small files")}
    assert table.to_arrow().num_rows == 9


def test_a_full_compaction_of_a_scalable_table_merges_two_small_files() -> None:
    table = fill(table_of(), 6, 2, 1)
    result = run(table, strategy=CompactStrategy.FULL)
    assert [row[:2] for row in summary(result).values()] == [(6, 1), (2, 1), (0, 0)]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 0, 0, 1, 1, 2, 3, 4, 5]


def test_a_full_compaction_makes_one_file_where_a_minor_one_leaves_several_that_are_small() -> None:
    table = table_of(**{"target-file-size": "1 mb", "source.split.open-file-cost": "500 kb"})
    fill(table, 12)
    assert summary(run(table, strategy=CompactStrategy.MINOR)) == {"dt=2026-01-01": (10, 2, None)}
    assert summary(run(table)) == {"dt=2026-01-01": (4, 1, None)}


def test_a_queue_keeps_its_order() -> None:
    table = fill(table_of(bucket="1", **{"bucket-key": "id"}), 4, 6)
    before = table.to_arrow()
    assert [row[:2] for row in summary(run(table, strategy=CompactStrategy.MINOR)).values()] == [(0, 0), (6, 1)]
    assert [row[:2] for row in summary(run(table)).values()] == [(4, 1), (0, 0)]
    assert table.to_arrow().equals(before)


def test_nothing_to_do_makes_no_snapshot() -> None:
    table = table_of()
    assert run(table) == CompactionResult(snapshots=(), partitions=())
    fill(table, 1)
    assert run(table).snapshots == ()


def test_only_the_partitions_in_scope_are_merged() -> None:
    table = fill(table_of(), 6, 6, 6)
    run(table, scope=scope_of_specs(ref_of(table), [{"dt": DAYS[0]}]))
    run(table, scope=scope_of_filter(ref_of(table), col("dt") > "2026-01-02"))
    assert sorted(files_of(table).values()) == [1, 1, 6]
    with pytest.raises(InvalidFilterError, match="partition columns alone"):
        scope_of_filter(ref_of(table), col("id") == 1)


def test_partitions_that_are_written_to_can_be_left_out() -> None:
    table = fill(table_of(), 6)
    assert summary(run(table, idle_ms=3_600_000)) == {"dt=2026-01-01": (0, 0, "written to within the idle time")}
    assert summary(run(table, idle_ms=0)) == {"dt=2026-01-01": (6, 1, None)}


def test_a_merge_neither_hides_that_rows_came_nor_counts_as_rows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    with monkeypatch.context() as patch:
        patch.setattr("penstock.table.write.rolling.local_wall_millis", lambda: local_wall_millis() - 10 * 86_400_000)
        fill(table, 3, 3)
    fill(table, 1)
    assert len(run(table).snapshots) == 1
    assert set(files_of(table).values()) == {1}
    skipped = {partition.name.strip("/"): partition.skipped for partition in plan(table, idle_ms=3_600_000).partitions}
    assert skipped == {"dt=2026-01-01": "written to within the idle time", "dt=2026-01-02": "too few small files"}


def test_a_dry_run_says_what_would_be_merged() -> None:
    table = fill(table_of(), 6, 1)
    (first, second) = plan_only(plan(table)).partitions
    assert (first.files_in, first.bytes_in, first.files_out) == (6, first.bytes_before, 0)
    assert (second.files_in, second.skipped) == (0, "too few small files")
    assert table.snapshots().num_rows == 7


def test_what_others_replaced_meanwhile_is_reported_and_leaves_no_file() -> None:
    table = fill(table_of(), 6, 6)
    ref = ref_of(table)

    def late(tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        done = [merge_one(task, ref) for task in tasks]
        table.drop_partitions({"dt": DAYS[0]})
        yield from done

    result = run_compaction(plan(table), open_committer(ref), late, commit_user="compactor")
    assert summary(result) == {
        "dt=2026-01-01": (0, 0, "another commit replaced the files meanwhile"),
        "dt=2026-01-02": (6, 1, None),
    }
    assert table.to_arrow().num_rows == 6


def test_a_missing_live_file_is_reported() -> None:
    table = fill(table_of(), 6, 6)
    ref = ref_of(table)
    job = plan(table)
    ref.file_io.delete(f"{ref.location}/dt=20454/bucket-0/{job.tasks[0].files[3].file_name}")
    with pytest.raises(NotFoundError, match="is missing"):
        run_compaction(job, open_committer(ref), partial(_merge_all, ref=ref), commit_user="compactor")
    assert sorted(files_of(table).values()) == [1, 6]


def test_a_file_that_was_replaced_and_has_expired_is_an_ordinary_loss() -> None:
    table = fill(table_of(), 6)
    ref = ref_of(table)
    job = plan(table)
    table.truncate()
    table.expire_snapshots(retain_min=1, older_than=4_000_000_000_000)
    result = run_compaction(job, open_committer(ref), partial(_merge_all, ref=ref), commit_user="compactor")
    (row,) = result.partitions
    assert (row.files_in, row.dropped, row.skipped) == (0, 1, "another commit replaced the files meanwhile")


def _merge_all(tasks: Sequence[CompactTask], ref: TableRef) -> Iterator[MergedFiles]:
    return (merge_one(task, ref) for task in tasks)


def test_a_rewrite_that_fails_is_reported_when_the_others_are_committed() -> None:
    table = fill(table_of(), 6, 6, 6)
    ref = ref_of(table)
    job = plan(table)

    def failing(tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        yield MergedFiles(task=tasks[0], message=None, error=StorageError("disk full"), seconds=0.0)
        for task in tasks[1:]:
            yield merge_one(task, ref)

    with pytest.raises(StorageError, match="disk full"):
        run_compaction(job, open_committer(ref), failing, commit_user="compactor")
    assert sorted(files_of(table).values()) == [1, 1, 6]
    assert table.to_arrow().num_rows == 18


def test_a_job_that_ends_early_leaves_no_file() -> None:
    table = fill(table_of(), 6, 6)
    ref = ref_of(table)
    made: list[str] = []

    def ending(tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        done = merge_one(tasks[0], ref)
        assert done.message is not None
        made.extend(file.file_name for file in done.message.compact_after)
        yield done
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_compaction(plan(table), open_committer(ref), ending, commit_user="compactor")
    left = [status.name for status in ref.file_io.list(f"{ref.location}/dt=20454/bucket-0")]
    assert made
    assert set(made).isdisjoint(left)
    assert table.to_arrow().num_rows == 12


def test_a_callback_of_merges_that_fails_leaves_no_file_behind() -> None:
    table = fill(table_of(), 6)
    ref = ref_of(table)

    def fail(_: MergedFiles) -> None:
        raise RuntimeError("the bar is broken")

    with pytest.raises(RuntimeError, match="the bar is broken"):
        run_compaction(
            plan(table), open_committer(ref), partial(_merge_all, ref=ref), commit_user="compactor", on_done=fail
        )
    assert len(ref.file_io.list(f"{ref.location}/dt=20454/bucket-0")) == 6


@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")  # options of other engines are among them
def test_tables_that_keep_their_files_in_levels_are_refused() -> None:
    table = table_of(**{"clustering.incremental": "true", "clustering.columns": "id"})
    with pytest.raises(UnsupportedFeatureError, match="in levels"):
        plan(table)


def test_a_commit_merges_what_the_partitions_have_that_it_wrote() -> None:
    table = fill(table_of(bucket="1", **{"bucket-key": "id"}), 6, 6)
    ref = ref_of(table)
    day = pa.array([dt.date.fromisoformat(DAYS[0])])
    messages = write_arrow(ref, pa.table({"id": pa.array([9], pa.int64()), "dt": day}))
    commit_append(open_committer(ref, MetadataStore(ref)), messages)
    assert compact_written(ref.with_options({"write-only": "true"}), messages, commit_user="u") is None
    done = compact_written(ref, messages, commit_user="q-compact")
    assert done is not None
    (snapshot,) = done.snapshots
    assert (snapshot.commit_user, snapshot.commit_kind) == ("q-compact", CommitKind.COMPACT)
    (first,) = done.partitions
    assert first.files_in >= 5
    assert table.to_arrow(filter=f"dt = DATE '{DAYS[0]}'")["id"].to_pylist() == [0, 1, 2, 3, 4, 5, 9]
    assert compact_written(ref, (), commit_user="u") is None


def test_a_merge_after_a_commit_that_fails_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = fill(table_of(), 6)
    messages = write_arrow(ref_of(table), table.to_arrow())

    def fail(*_: object, **__: object) -> None:
        raise StorageError("no answer")

    monkeypatch.setattr("penstock.table.compact.write.plan_compaction", fail)
    assert compact_written(ref_of(table), messages, commit_user="u") is None
    assert "small files were not merged; the rows are committed: no answer" in caplog.text
