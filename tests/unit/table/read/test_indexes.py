"""Index files of Java Paimon 1.4.2 beside their data files: they skip files, and never a row.

Each of the six files of the golden table has a Bloom filter of ``b``, bitmaps of ``m``, a range bitmap of ``r``, and an
index of ``n`` of a kind that is not used (``bsi``); the statistics of ``b`` and ``m`` exclude no file.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.counted_requests import counted_requests, memory_store

import penstock
from penstock.clocks import utc_millis
from penstock.format.file_index import decode_index_places
from penstock.table.metadata_cache import clear_metadata_cache
from penstock.table.read import indexes as index_files
from penstock.table.store import MetadataStore
from penstock.table.stream.files import TaskPlanner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock import Table
    from penstock.predicate.tree import Predicate

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "data" / "warehouse" / "java142.db" / "file_index_beside"
FILES: Final = 6
B, M, ID = penstock.col("b"), penstock.col("m"), penstock.col("id")
OFF: Final = {"file-index.read.enabled": "false"}


def table_at(location: Path) -> Table:
    return penstock.Catalog(location.parents[1]).load_table(f"{location.parent.stem}.{location.name}")


@pytest.fixture(scope="module")
def table() -> Table:
    return table_at(GOLDEN)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "d.db" / "t"))


def indexes(location: Path) -> list[Path]:
    return sorted(location.rglob("*.index"))


def files(table: Table, where: Predicate) -> int:
    return int(table.explain_values(where)["files"])


def test_java_wrote_what_the_table_is_for() -> None:
    kinds = {column: set(kinds) for column, kinds in decode_index_places(indexes(GOLDEN)[0].read_bytes()).items()}
    assert kinds == {"b": {"bloom-filter"}, "m": {"bitmap"}, "n": {"bsi"}, "r": {"range-bitmap"}}
    assert len(indexes(GOLDEN)) == FILES


def test_keys_and_values_are_looked_up_in_few_files(table: Table) -> None:
    rows = table.to_arrow()
    keys = [key for key in rows["b"].to_pylist() if key is not None]
    opened = sum(files(table, B == key) for key in keys)
    assert len(keys) <= opened < 2 * len(keys)
    assert files(table, M == "m3") == 1
    assert files(table, (M == "m3") | (M == "m4")) == 2
    assert files(table, (M == "m3") & (B == "k5x")) <= 1
    assert files(table.with_options(OFF), M == "m3") == FILES


def test_explain_names_the_step_and_its_cost(table: Table) -> None:
    text = table.explain(M == "m3")
    assert "after file indexes: 1 partition, 1 bucket, 1 file" in text
    size = sum(path.stat().st_size for path in indexes(GOLDEN))
    values = table.explain_values(M == "m3")
    assert (values["index_files"], values["index_bytes"]) == (FILES, size)
    assert "index files read: 6" in text


@pytest.mark.parametrize("where", [None, B.is_not_null(), B > "k", penstock.col("n") == 500, ID == -1])
def test_filters_that_no_index_can_answer_read_none(table: Table, where: Predicate | None) -> None:
    assert table.explain_values(where)["index_files"] == 0


def test_only_files_that_statistics_keep_are_asked(table: Table) -> None:
    assert table.explain_values((ID == 5) & (M == "m3"))["index_files"] == 1


def texts(table: Table, column: str) -> list[str | None]:
    return [*table.to_arrow()[column].unique().to_pylist()]


@st.composite
def filters(draw: st.DrawFn) -> Predicate:
    table = table_at(GOLDEN)
    column, name = draw(st.sampled_from([(B, "b"), (M, "m")]))
    known = st.sampled_from([value for value in texts(table, name) if value is not None])
    value = known | st.text(max_size=7)
    leaf = draw(st.sampled_from(["=", "in", "null", "not", "id"]))
    if leaf == "=":
        return column == draw(value)
    if leaf == "in":
        return column.isin(draw(st.lists(value, min_size=1, max_size=3)))
    if leaf == "null":
        return column.is_null()
    return column != draw(value) if leaf == "not" else ID < draw(st.integers(0, 240))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(one=filters(), two=filters(), is_and=st.booleans())
def test_no_filter_loses_a_row(table: Table, one: Predicate, two: Predicate, is_and: bool) -> None:  # noqa: FBT001
    where = one & two if is_and else one | two
    assert table.to_arrow(filter=where).equals(table.with_options(OFF).to_arrow(filter=where))


def test_streams_plan_as_reads_do(table: Table) -> None:
    ref = table._ref
    store = MetadataStore(ref)
    snapshots = [store.load_snapshot(number) for number in range(1, FILES + 1)]
    units = [entry for snapshot in snapshots for entry in store.load_delta(snapshot)]
    planner = TaskPlanner(ref, store, M == "m3")
    assert [index for index, _ in planner.kept(units, None)] == [3]
    clear_metadata_cache()
    assert [index for index, _ in planner.kept(units[2:5], None)] == [1]
    assert list(TaskPlanner(table.with_options(OFF)._ref, store, M == "m3").kept(units, None)) == [*enumerate(units)]


def test_a_missing_index_file_keeps_its_file_and_is_logged_once(copied: Path, caplog: pytest.LogCaptureFixture) -> None:
    lost = indexes(copied)[:2]
    for path in lost:
        path.unlink()
    table = table_at(copied)
    assert files(table, M == "nothing") == 2
    [record] = [each for each in caplog.records if each.name == index_files.__name__]
    assert "d.t" in record.getMessage()
    assert ".index" in record.getMessage()
    expected = table.with_options(OFF).to_arrow(filter=M == "m3")
    assert table.to_arrow(filter=M == "m3").equals(expected)


@pytest.mark.parametrize("keep", [0, 3, 16, 40, 150, -1])
def test_a_damaged_index_file_keeps_its_file(copied: Path, keep: int) -> None:
    for path in indexes(copied):
        path.write_bytes(path.read_bytes()[:keep])
    table = table_at(copied)
    for key in texts(table, "b")[:12]:
        where = B.is_null() if key is None else B == key
        assert table.to_arrow(["id"], where).num_rows > 0
    for path in indexes(copied):
        path.write_bytes(b"something else" * 100)
    assert files(table, M == "nothing") == FILES


def test_a_truncated_filter_is_not_asked(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a Bloom filter would answer with other bits."""
    monkeypatch.setattr(index_files, "_HEAD_BYTES", 150)
    for path in indexes(copied):
        place = decode_index_places(path.read_bytes())["b"]["bloom-filter"]
        path.write_bytes(path.read_bytes()[: place.start + place.length - 2])
    table = table_at(copied)
    assert files(table, B == "k5x") == FILES


def test_a_renamed_column_is_asked_by_its_old_name(copied: Path) -> None:
    renamed = penstock.Catalog(copied.parents[1]).alter_table(
        "d.t", penstock.RenameColumn(column=("m",), new_name="kind")
    )
    assert files(renamed, penstock.col("kind") == "m3") == 1


@pytest.mark.parametrize(("most", "kept"), [("0 b", FILES), ("8 kb", 5), ("17 kb", 4), ("1 mb", 0)])
def test_a_plan_reads_no_more_than_it_may(table: Table, most: str, kept: int) -> None:
    limited = table.with_options({"penstock.file-index.read.max-size": most})
    assert files(limited, M == "nothing") == kept


def test_an_index_that_is_larger_than_its_file_is_not_read(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(index_files._MAX_INDEX_BYTES, "bitmap", 4)
    assert files(table, M == "nothing") == FILES


@pytest.fixture
def bucket() -> Iterator[Table]:
    file_io = memory_store(f"indexes-{uuid.uuid4()}")
    root = file_io.settings.address.root
    for path in GOLDEN.rglob("*"):
        if path.is_file():
            file_io.write(f"{root}/w/d.db/t/{path.relative_to(GOLDEN)}", path.read_bytes())
    clear_metadata_cache()
    yield penstock.Catalog(f"{root}/w", dict(file_io.settings.options)).load_table("d.t")
    clear_metadata_cache()


@pytest.mark.filterwarnings("ignore::penstock.errors.OtherEngineWarning")
@pytest.mark.parametrize(("head_bytes", "rounds"), [(8_192, 1), (150, 2)])
def test_on_object_stores_all_files_take_one_request_or_two_in_a_row(
    bucket: Table, monkeypatch: pytest.MonkeyPatch, head_bytes: int, rounds: int
) -> None:
    monkeypatch.setattr(index_files, "_HEAD_BYTES", head_bytes)
    with counted_requests(bucket._ref.file_io) as plain:
        assert files(bucket.with_options(OFF), M == "m3") == FILES
    clear_metadata_cache()
    with counted_requests(bucket._ref.file_io) as counts:
        assert files(bucket, M == "m3") == 1
    requests = [name for name in counts.names if ".index" in name]
    assert len(requests) == rounds * FILES
    assert counts.serial <= plain.serial + rounds
    with counted_requests(bucket._ref.file_io) as again:
        assert files(bucket, M == "m3") == 1
    assert not [name for name in again.names if ".index" in name]


def test_upkeep_keeps_and_deletes_index_files_with_their_data_files(copied: Path) -> None:
    table = table_at(copied)
    assert not table.inspect.fsck().findings
    stray = indexes(copied)[0].with_name("data-none-0.parquet.index")
    stray.write_bytes(b"x")
    table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert not stray.exists()
    assert len(indexes(copied)) == FILES
    lost = indexes(copied)[0]
    data = lost.read_bytes()
    lost.unlink()
    [finding] = table.inspect.fsck().findings
    assert finding.path == str(lost)
    lost.write_bytes(data)
    table.versions.create_branch("b1", snapshot_id=FILES)
    table.delete("id < 40")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert len(indexes(copied)) == FILES  # the branch uses all of them
    branch = penstock.Catalog(copied.parents[1]).load_table("d.t$branch_b1")
    assert files(branch, M == "m3") == 1
    table.versions.delete_branch("b1")
    table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert {path.with_suffix("") for path in indexes(copied)} <= {*copied.rglob("*.parquet")}


def test_renaming_the_table_moves_its_index_files(copied: Path) -> None:
    catalog = penstock.Catalog(copied.parents[1])
    catalog.rename_table("d.t", "d.u")
    assert files(catalog.load_table("d.u"), M == "m3") == 1


def test_a_merge_of_files_indexes_the_new_ones(copied: Path) -> None:
    table = table_at(copied)
    table.compact(strategy="full", options={"compaction.min.file-num": "2"})
    assert table.explain_values(M == "m3")["index_files"] == 1
    assert files(table, M == "m3") == 1
    assert files(table, M == "nothing") == 0
    table.expire_snapshots(retain_max=1, retain_min=1)
    [beside] = indexes(copied)
    kinds = {column: set(kinds) for column, kinds in decode_index_places(beside.read_bytes()).items()}
    assert kinds == {"b": {"bloom-filter"}, "m": {"bitmap"}, "r": {"range-bitmap"}}  # those of other kinds are lost


def test_files_of_equal_names_have_their_own_indexes(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paimon's ``rewrite_file_index`` adds them to files of an adopted directory, too, which keep their names."""
    table = table_at(copied)
    query = table._handle.plan(None, None, {})
    entry = next(each for part in query.plan.partitions for each in part.entries)
    predicate = table._handle.plan(B == "k1", None, {}).plan.predicate
    other = replace(entry, bucket=1)
    pruner = index_files.FileIndexPruner(query.ref, table._store.load_schema)
    monkeypatch.setattr(index_files.IndexFiles, "ask", lambda _, files, __: [False] * len(files))
    assert pruner.kept([(entry, predicate)], pruner.new_budget()) == [False]
    monkeypatch.setattr(index_files.IndexFiles, "ask", lambda _, files, __: [True] * len(files))
    assert pruner.kept([(other, predicate)], pruner.new_budget()) == [True]
