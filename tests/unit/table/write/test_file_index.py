"""New data files have the indexes that the options ask for, whoever writes them, and filters skip files by them."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock.clocks import utc_millis
from penstock.errors import InvalidOptionError, StorageError, UnsupportedFeatureError
from penstock.format.file_index import WRITTEN, decode_index_places
from penstock.table.commit.cleanup import delete_job_files
from penstock.table.read.indexes import has_index
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.table.write.file_index import FileIndexWriter, plan_indexes
from penstock.table.write.writer import TableWriter, new_job_id
from penstock.testing.file_io import FailingFileIO, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock import Table
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.ref import TableRef

BLOOM: Final = {"file-index.bloom-filter.columns": "k", "file-index.bloom-filter.k.items": "100"}
BITMAP: Final = {"file-index.bitmap.columns": "s"}
BESIDE: Final = {"file-index.in-manifest-threshold": "0 b"}
OFF: Final = {"file-index.read.enabled": "false"}


def create(path: Path, columns: str, options: dict[str, str], **more: Any) -> Table:
    catalog = penstock.Catalog(path)
    catalog.create_database("d", if_not_exists=True)
    return catalog.create_table("d.t", columns, options=options, **more)


def filled(path: Path, options: dict[str, str]) -> Table:
    """Return a table of five files of ten keys each; their ranges overlap, so that only indexes tell them apart."""
    table = create(path, "k BIGINT, s STRING, n INT", options)
    for number in range(5):
        keys = [number + 5 * each for each in range(10)]
        table.append(pa.table({"k": keys, "s": [f"s{number}", None] * 5, "n": pa.array(keys, pa.int32())}))
    return table


def live_files(table: Table) -> list[DataFileMeta]:
    store = MetadataStore(table._ref)
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    return [entry.file for entry in load_live_entries(store, snapshot).values()]


def stored(path: Path) -> set[str]:
    return {each.name for each in path.rglob("data-*")}


@pytest.mark.parametrize("where", [{}, BESIDE])
def test_a_key_opens_only_the_file_that_has_it(tmp_path: Path, where: dict[str, str]) -> None:
    table = filled(tmp_path, {**BLOOM, **BITMAP, **where})
    assert len([*tmp_path.rglob("*.index")]) == (5 if where else 0)
    assert sum(table.explain_values(penstock.col("k") == key)["files"] for key in range(50)) < 75
    assert table.explain_values(penstock.col("s") == "s3")["files"] == 1
    assert table.with_options(OFF).explain_values(penstock.col("k") == 17)["files"] == 5
    assert table.to_arrow(filter=penstock.col("k") == 22)["s"].to_pylist() == ["s2"]
    assert not table.inspect.fsck().findings


CHANGES: Final[dict[str, Callable[[Table], object]]] = {
    "compact": lambda table: table.compact(options={"compaction.min.file-num": "2"}),
    "delete": lambda table: table.delete("k < 7"),
    "update": lambda table: table.update({"s": "new"}, "k = 3"),
    "merge": lambda table: table.merge(
        [{"k": 3, "s": "new", "n": 3}, {"k": 99, "s": "x", "n": 1}],
        "k",
        matched=penstock.MergeUpdate(set={"s": "new"}),
        not_matched=penstock.MergeInsert(),
    ),
    "overwrite": lambda table: table.overwrite(pa.table({"k": [1], "s": ["a"], "n": pa.array([1], pa.int32())})),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rewritten_files_have_indexes(tmp_path: Path, change: str) -> None:
    table = filled(tmp_path, {**BLOOM, **BITMAP, **BESIDE})
    CHANGES[change](table)
    table = penstock.Catalog(tmp_path).load_table("d.t")
    assert all(map(has_index, live_files(table)))
    where = penstock.col("k") == 3
    assert table.to_arrow(filter=where) == table.with_options(OFF).to_arrow(filter=where)
    table.expire_snapshots(retain_max=1, retain_min=1)
    names = [name for file in live_files(table) for name in (file.file_name, *file.extra_files)]
    assert stored(tmp_path) == set(names)
    assert not table.inspect.fsck().findings


def test_an_aborted_write_leaves_no_index_file(tmp_path: Path) -> None:
    table = create(tmp_path, "k BIGINT, p INT", {**BLOOM, **BESIDE}, partition_by=["p"])
    rows = pa.table({"k": [1, 2], "p": pa.array([1, 2], pa.int32())}).to_batches()[0]
    with TableWriter(table._ref) as writer:
        writer.write(rows)
        assert len(writer.prepare_commit()) == 2
        written = stored(tmp_path)
        assert len(written) == 4
        writer.write(rows)
        writer._write_waiting()
        for group in writer._writers.values():
            group.finish_file()
        assert len(stored(tmp_path)) == 8
    assert stored(tmp_path) == written


def write_and_fail(ref: TableRef, rows: pa.RecordBatch) -> None:
    with TableWriter(ref) as writer:
        writer.write(rows)
        for group in writer._writers.values():
            group.finish_file()
        raise StorageError("something else failed", False)  # noqa: FBT003 - not retryable


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.ANSWER_LOST])
def test_a_failed_append_leaves_nothing(tmp_path: Path, number: int, fault: Fault) -> None:
    table = create(tmp_path, "k BIGINT, s STRING, n INT", {**BLOOM, **BESIDE})
    ref = replace(table._ref, file_io=FailingFileIO(table._ref.file_io, fault, number))
    with pytest.raises(StorageError):
        write_and_fail(ref, pa.table({"k": [1], "s": ["a"], "n": pa.array([1], pa.int32())}).to_batches()[0])
    assert not stored(tmp_path)


@pytest.mark.parametrize("column", ["k", "s"])
def test_an_index_that_cannot_be_encoded_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    def fail(_: FileIndexWriter) -> bytes:
        raise MemoryError

    monkeypatch.setattr(FileIndexWriter, "encode", fail)
    table = create(tmp_path, "k BIGINT, s STRING, n INT", {"file-index.bloom-filter.columns": column})
    rows = pa.table({"k": [1], "s": ["a"], "n": pa.array([1], pa.int32())})
    with pytest.raises(Exception, match="memory"):
        table.append(rows)
    assert not stored(tmp_path)


def test_indexes_of_finished_files_take_no_memory(tmp_path: Path) -> None:
    table = create(tmp_path, "k BIGINT, p INT", BLOOM, partition_by=["p"])
    rows = pa.table({"k": range(40), "p": pa.array(range(40), pa.int32())}).to_batches()[0]
    with TableWriter(table._ref) as writer:
        writer.write(rows)
        writer._write_waiting()
        for group in writer._writers.values():
            group.finish_file()
        assert len(writer._writers) >= 10
        assert not [group for group in writer._writers.values() if group._index is not None]


def test_orphans_and_files_of_lost_jobs_go_with_their_index_files(tmp_path: Path) -> None:
    table = filled(tmp_path, {**BLOOM, **BESIDE})
    kept = stored(tmp_path)
    with TableWriter(table._ref) as writer:
        writer.write(pa.table({"k": [1], "s": ["a"], "n": pa.array([1], pa.int32())}).to_batches()[0])
        writer.prepare_commit()
    assert len(stored(tmp_path)) == len(kept) + 2
    table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert stored(tmp_path) == kept


def test_files_of_a_job_that_are_kept_keep_their_index_files(tmp_path: Path) -> None:
    table = create(tmp_path, "k BIGINT", {**BLOOM, **BESIDE})
    job_id = new_job_id()
    messages = []
    for _ in range(2):
        with TableWriter(table._ref, job_id=job_id) as writer:
            writer.write(pa.table({"k": [1]}).to_batches()[0])
            messages += writer.prepare_commit()
    [kept] = messages[0].new_files
    delete_job_files(table._ref, job_id, keep={kept.file_name})
    assert stored(tmp_path) == {kept.file_name, *kept.extra_files}


@pytest.mark.parametrize(
    ("columns", "options", "error"),
    [
        ("k BOOLEAN", {"file-index.bloom-filter.columns": "k"}, UnsupportedFeatureError),
        ("k DECIMAL(9, 2)", {"file-index.bloom-filter.columns": "k"}, UnsupportedFeatureError),
        ("k DECIMAL(9, 2)", {"file-index.bitmap.columns": "k"}, UnsupportedFeatureError),
        ("k BYTES", {"file-index.bitmap.columns": "k"}, UnsupportedFeatureError),
        ("k ARRAY<INT>", {"file-index.bitmap.columns": "k"}, UnsupportedFeatureError),
        ("k BYTES", {"file-index.range-bitmap.columns": "k"}, UnsupportedFeatureError),
        ("k DECIMAL(19, 2)", {"file-index.range-bitmap.columns": "k"}, UnsupportedFeatureError),
        ("k TIMESTAMP(9)", {"file-index.range-bitmap.columns": "k"}, UnsupportedFeatureError),
        ("k INT", {"file-index.bitmap.columns": "k", "file-index.bitmap.k.version": "3"}, InvalidOptionError),
        ("k INT, n INT", {"file-index.bitmap.columns": "n", "file-index.bitmap.k.version": "1"}, InvalidOptionError),
        ("k INT", {"file-index.bitmap.columns": "k,"}, InvalidOptionError),
        ("k INT", {**BLOOM, "file-index.bloom-filter.k.fpp": "1.5"}, InvalidOptionError),
        ("k INT", {**BLOOM, "file-index.bloom-filter.k.items": "2000000000"}, InvalidOptionError),
    ],
)
def test_what_java_refuses_is_refused(
    tmp_path: Path, columns: str, options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"table d\.t.*k"):
        create(tmp_path, columns, options)
    table = create(tmp_path, columns, {})
    with pytest.raises(error, match=r"table d\.t.*k"):
        penstock.Catalog(tmp_path).alter_table("d.t", *map(set_option, options.items()))
    with pytest.raises(error, match=r"table d\.t.*k"):
        plan_indexes(table._ref.with_options(options))


def set_option(pair: tuple[str, str]) -> penstock.SetOption:
    return penstock.SetOption(key=pair[0], value=pair[1])


def test_keys_of_maps_are_left_out_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = create(tmp_path, "k BIGINT, m MAP<STRING, INT>", {"file-index.bitmap.columns": "k,m[a]"})
    for _ in range(2):
        table.append([{"k": 1, "m": {"a": 1}}])
    [record] = [each for each in caplog.records if "m[a]" in each.getMessage()]
    assert "d.t" in record.getMessage()
    [one, _] = live_files(table)
    assert [*decode_index_places(one.embedded_file_index or b"")] == ["k"]


VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "TINYINT": st.integers(-128, 127),
    "INT": st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5, float("inf")]),
    "STRING": st.text(max_size=40),
    "CHAR(3)": st.text("ab", max_size=3),
    "BYTES": st.binary(max_size=40),
    "BOOLEAN": st.booleans(),
    "DECIMAL(18, 2)": st.decimals(-(10**15), 10**15, places=2),
    "DATE": st.dates(),
    "TIMESTAMP(3)": st.datetimes().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": st.datetimes(),
    "TIMESTAMP_LTZ(6)": st.datetimes(dt.datetime(1900, 1, 1), timezones=st.just(dt.UTC)),  # noqa: DTZ001 - zones are added
}
NOT_IN: Final = {
    "BOOLEAN": {"bloom-filter"},
    "BYTES": {"bitmap", "range-bitmap"},
    "DECIMAL(18, 2)": {"bloom-filter", "bitmap"},
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, dict[str, str], list[list[Any]]]:
    """Draw a type, the options of its indexes, and the values of a few files."""
    sql = draw(st.sampled_from([*VALUES]))
    kinds = draw(st.sets(st.sampled_from(sorted(WRITTEN - NOT_IN.get(sql, set()))), min_size=1))
    options = {f"file-index.{kind}.columns": "c" for kind in kinds}
    options["file-index.in-manifest-threshold"] = draw(st.sampled_from(["0 b", "500 b", "1 mb"]))
    if "bloom-filter" in kinds:
        options["file-index.bloom-filter.c.items"] = draw(st.sampled_from(["1", "50"]))
        options["file-index.bloom-filter.c.fpp"] = draw(st.sampled_from(["0.5", "0.001"]))
    if "bitmap" in kinds:
        options["file-index.bitmap.c.version"] = draw(st.sampled_from(["1", "2"]))
        options["file-index.bitmap.c.index-block-size"] = draw(st.sampled_from(["1 b", "100 b", "16 kb"]))
    if "range-bitmap" in kinds:
        options["file-index.range-bitmap.c.chunk-size"] = draw(st.sampled_from(["0 b", "9 b", "16 kb"]))
    pool = draw(st.lists(VALUES[sql], min_size=1, max_size=8))
    values = st.lists(st.none() | st.sampled_from(pool), min_size=1, max_size=20)
    return sql, options, draw(st.lists(values, min_size=1, max_size=4))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=tables(), seed=st.integers(0, 10**6))
def test_no_filter_loses_a_row(drawn: tuple[str, dict[str, str], list[list[Any]]], seed: int) -> None:
    sql, options, files = drawn
    source = random.Random(seed)  # noqa: S311 - not for secrets
    catalog = penstock.Catalog(f"memory://indexes-{uuid.uuid4()}/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", f"c {sql}", options={**options, "metadata.stats-mode": "none"})
    for values in files:
        table.append([{"c": value} for value in values])
    assert all(map(has_index, live_files(table)))
    column = penstock.col("c")
    known = [value for values in files for value in values]
    for value in {source.choice(known), source.choice(known)}:
        for where in (column.is_null() if value is None else column == value, column.is_not_null()):
            assert table.to_arrow(filter=where) == table.with_options(OFF).to_arrow(filter=where)
