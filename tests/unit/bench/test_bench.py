"""Every benchmark runs at toy size, untimed, so that none rots between two measurements."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from bench import (
    commit,
    imports,
    plan,
    python_io,
    requests,
    result,
    scale,
    spark_dml,
    spark_scan,
    spark_sections,
    spark_select,
    spark_sort,
    versions,
)
from bench.main import _parser
from bench.many_files import FILE_ROWS, make_table
from bench.many_manifests import make_large_table
from bench.measure import Contender, DisagreementError, Series, race
from bench.result import Check, Section, faster_than, from_json, to_json, to_markdown
from bench.settings import ROOT, TOY

from penstock.table.read.query import plan_query
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.format.manifest.entry import ManifestEntry, ManifestFileMeta
    from penstock.table.ref import TableRef


def test_planning_finds_all_files_of_a_table_and_one_by_the_filter() -> None:
    section = plan.measure(TOY, with_spark=False)
    assert [each.work for each in section.series] == ["plan 50 live files", "plan 50 live files, selective filter"]
    assert all(check.value > 0 for check in section.checks)


def test_growth_is_measured_of_plans_and_commits() -> None:
    section = scale.measure(TOY, with_spark=False)
    names = [check.name for check in section.checks]
    assert "200 files, plan by key, warm" in names
    assert len(names) == 2 * len(scale.WORKS) + 3
    assert all(check.value > 0 for check in section.checks)


@pytest.mark.slow
def test_commits_are_timed_on_short_and_long_histories_of_both_kinds() -> None:
    section = commit.measure(TOY)
    assert {each.session for each in section.series} == {"fresh process", "living committer"}
    assert {each.work for each in section.series} == {
        f"{kind}, {snapshots} snapshots" for kind in commit.KINDS for snapshots in TOY.snapshots
    }
    assert sum("time next to 2 snapshots" in check.name for check in section.checks) == 4


@pytest.mark.slow
def test_reads_and_appends_without_spark_are_compared_with_pyarrow() -> None:
    section = python_io.measure(TOY, with_pypaimon=False)
    assert [check.name for check in section.checks] == [
        f"{work}: {result.OURS} vs {result.PYARROW}" for work in python_io.TARGETS
    ]


def test_requests_are_counted_and_timed_with_a_delay() -> None:
    total, serial, seconds = requests.run(requests.OPERATIONS[0], 0.005)
    assert total > serial > 1
    assert seconds > 0.005 * serial


def test_start_up_is_measured_in_fresh_interpreters() -> None:
    assert imports.import_seconds("json") > 0


@pytest.mark.bench
@pytest.mark.spark
def test_append_scan_and_compaction_run_in_a_spark_session_of_their_own() -> None:
    sections = (spark_sections.measure_append, spark_sections.measure_scan, spark_sections.measure_compact)
    for section in (measure(TOY) for measure in sections):
        assert section.series, section.notes
        assert section.checks


@pytest.mark.bench
@pytest.mark.spark
def test_versions_append_and_scan_next_to_their_own_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SPARKS", ())
    section = versions.measure(TOY)
    assert not section.notes, section.notes
    assert len(section.checks) == len(versions.WORKS)


def test_the_ratio_of_a_version_is_compared_with_that_of_another() -> None:
    series = [
        Series(work="w", contender=name, session=session, seconds=seconds)
        for name, session, seconds in (
            (result.PARQUET, "old", (1.0, 2.0)),
            ("ours", "old", (2.0, 4.0)),
            (result.PARQUET, "new", (1.0, 2.0)),
            ("ours", "new", (1.0, 2.0)),
        )
    ]
    old, new, compared = versions.compare("w", "ours", series, base="new")
    assert (old.value, new.value, compared.value) == (0.5, 1.0, 0.5)
    assert compared.verdict == "short by 47%"


@pytest.mark.bench
@pytest.mark.spark
def test_paimon_on_spark_3_5_appends_scans_and_selects_beside_us() -> None:
    settings = replace(TOY, peers=("paimon",))
    sections = [
        measure(settings)
        for measure in (spark_sections.measure_append, spark_sections.measure_scan, spark_sections.measure_select)
    ]
    left_out = [note for section in sections for note in section.notes if note.startswith("paimon is left out")]
    if left_out:
        pytest.skip(left_out[0])
    others = {(each.work, each.contender) for section in sections for each in section.series}
    for work in ("append orders (7 columns)", spark_scan.WORK, spark_select.ONE_PARTITION):
        assert {(work, result.PAIMON), (work, result.PARQUET_35)} <= others
    assert sum(f"vs {result.PAIMON}" in check.name for section in sections for check in section.checks) >= 3


@pytest.mark.bench
@pytest.mark.spark
def test_sorted_tables_are_scanned_by_every_order() -> None:
    section = spark_sections.measure_sort(TOY)
    assert section.series, section.notes
    scanned = {(each.work, each.contender) for each in section.series if each.work in spark_sort.FILTERS}
    ours = (spark_sort.UNSORTED, *(f"{result.OURS} {strategy}" for strategy in spark_sort.STRATEGIES))
    assert {(work, name) for work in spark_sort.FILTERS for name in ours} <= scanned
    files = [check.value for check in section.checks if "files read" in check.name]
    assert len(files) == len(scanned)


@pytest.mark.bench
@pytest.mark.spark
def test_rows_are_changed_next_to_delta() -> None:
    section = spark_sections.measure_dml(replace(TOY, peers=("delta",)))
    assert not section.notes, section.notes
    works = {each.work for each in section.series}
    assert works == {spark_dml.DELETE, spark_dml.UPDATE, spark_dml.MERGE}
    assert len(section.checks) == 6


@pytest.mark.bench
def test_the_command_prints_what_it_measured() -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--only", "import", "--rounds", "1", "--no-save"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "| import penstock" in done.stdout


def test_all_contenders_run_once_a_round_and_take_turns_at_being_first() -> None:
    order: list[str] = []
    contenders = [Contender(name=name, run=lambda name=name: order.append(name)) for name in "abc"]
    series = race("work", contenders, rounds=3, warm_ups=0)
    assert [order[start : start + 3] for start in (0, 3, 6)] == [list("abc"), list("bca"), list("cab")]
    assert [len(each.seconds) for each in series] == [3, 3, 3]


def test_contenders_that_do_not_do_the_same_are_found_out() -> None:
    contenders = [
        Contender(name=name, run=int, verify=lambda count=count: count) for count, name in enumerate(("a", "b"))
    ]
    with pytest.raises(DisagreementError, match="not the same work"):
        race("work", contenders, rounds=1)


def test_a_ratio_is_paired_round_by_round() -> None:
    ours = Series(work="w", contender="ours", session="", seconds=(1.0, 2.0, 4.0))
    peer = Series(work="w", contender="peer", session="", seconds=(2.0, 3.0, 4.0))
    check = faster_than(ours, peer, at_least=1.6)
    assert check.values == (2.0, 1.5, 1.0)
    assert check.verdict == "short by 6%"


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"at_least": 2.0}, "PASS"),
        ({"at_least": 2.5}, "short by 20%"),
        ({"at_most": 2.0}, "PASS"),
        ({"at_most": 1.6}, "short by 25%"),
        ({}, ""),
    ],
)
def test_a_figure_passes_or_says_by_how_much_it_falls_short(bounds: dict[str, float], verdict: str) -> None:
    assert Check(name="c", values=(2.0,), unit="x", **bounds).verdict == verdict


def test_a_section_survives_json_and_prints_as_tables() -> None:
    section = Section(
        name="s",
        title="Title",
        series=(Series(work="w", contender="c", session="t", seconds=(0.5, 0.25), rows=1_000_000),),
        checks=(Check(name="f", values=(1.25,), unit="x", at_least=1.0),),
        notes=("a note",),
    )
    assert from_json(json.loads(json.dumps(to_json(section)))) == section
    text = to_markdown(section)
    assert "| w    | c" in text
    assert "| 2.67 M" in text
    assert "PASS" in text
    assert "* a note" in text


def test_benchmarks_are_named_with_commas_or_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert _parser().parse_args(["--only", "append,scan", "--only", "import"]).only == ["append", "scan", "import"]
    with pytest.raises(SystemExit):
        _parser().parse_args(["--only", "append,nothing"])
    assert "no benchmark is named 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize("buckets", [-1, 8])
def test_tables_written_as_bytes_have_the_files_of_those_that_are_committed(tmp_path: Path, buckets: int) -> None:
    def entries(ref: TableRef) -> list[ManifestEntry]:
        planned = plan_query(ref, MetadataStore(ref)).plan
        assert planned.snapshot is not None
        assert planned.snapshot.total_record_count == 300 * FILE_ROWS
        assert len({entry.file.file_name for entry in planned.entries}) == 300
        return [replace(each, file=replace(each.file, file_name="x")) for each in planned.entries]

    written = make_large_table(str(tmp_path / "written"), 300, buckets)
    assert entries(written) == entries(make_table(str(tmp_path / "committed"), 300, buckets))
    assert [len(entries) for entries in MetadataStore(written).iter_manifests(_metas(written))] == [15] * 19 + [14, 1]


def _metas(ref: TableRef) -> tuple[ManifestFileMeta, ...]:
    store = MetadataStore(ref)
    return store.load_manifests(store.load_snapshot(1))
