"""The page of benchmarks is the one of the kept results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from bench import page
from bench.main import BENCHMARKS
from bench.measure import Series
from bench.result import BY_CONNECT, BY_THRIFT, IN_DRIVER, OURS, PARQUET, Section, to_json
from bench.settings import RESULTS

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    return page.render(page.newest(RESULTS))


def test_the_page_and_its_charts_are_those_of_the_kept_results(files: Mapping[str, str]) -> None:
    kept = {f"img/{path.name}" for path in (ROOT / "docs" / "img").glob("bench-*.svg")}
    assert kept | {"benchmarks.md"} == set(files)
    for name, text in files.items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, f"{name}: run python -m bench.page"


def test_every_chart_is_an_image_with_a_bar_for_each_contender(files: Mapping[str, str]) -> None:
    charts = {name: text for name, text in files.items() if name.endswith(".svg")}
    assert {"img/bench-append.svg", "img/bench-python.svg", "img/bench-stream-write.svg"} <= set(charts)
    for name, text in charts.items():
        image = ET.fromstring(text)  # noqa: S314 - our own
        bars = image.findall(".//{http://www.w3.org/2000/svg}rect")
        assert len(bars) >= 2
        assert all(float(bar.attrib["width"]) > 0 for bar in bars), name
        assert f"]({name})" in files["benchmarks.md"]


def test_the_raw_data_that_the_page_names_are_there(files: Mapping[str, str]) -> None:
    named = set(re.findall(r"\]\(\.\./(bench/results/[^)]+)\)", files["benchmarks.md"]))
    assert len(named) >= 10
    assert all((ROOT / name).is_file() for name in named)


def test_the_newest_result_of_a_benchmark_counts(tmp_path: Path) -> None:
    first = next(path for path in sorted(RESULTS.glob("*.json")) if '"sections"' in path.read_text())
    text = first.read_text()
    (tmp_path / "2026-01-01-old.json").write_text(text)
    (tmp_path / "2026-01-02-new.json").write_text(text)
    kept = page.newest(tmp_path)
    assert kept
    assert {each.file.name for each in kept} == {"2026-01-02-new.json"}
    assert page.write(tmp_path, tmp_path) == len(list((tmp_path / "img").iterdir()))


def test_the_front_page_gets_its_figures_from_the_first_table(tmp_path: Path) -> None:
    current = (ROOT / "docs" / "index.md").read_text("utf-8")
    (tmp_path / "index.md").write_text(re.sub(r"\d\.\d x", "0.0 x", current), "utf-8")
    page.write(RESULTS, tmp_path)
    assert (tmp_path / "index.md").read_text("utf-8") == current


def test_a_result_with_one_peer_leaves_older_ones_with_others_on_the_page(tmp_path: Path) -> None:
    run = max(RESULTS.glob("*-append.json")).read_text()
    both = json.loads(run)
    both["sections"] = [next(each for each in both["sections"] if each["name"] == "append")]
    one = json.loads(json.dumps(both))
    session = one["sections"][0]["series"][0]["session"]
    one["sections"][0]["series"] = [each for each in one["sections"][0]["series"] if each["session"] == session]
    (tmp_path / "2026-01-01-both.json").write_text(json.dumps(both))
    (tmp_path / "2026-01-02-one.json").write_text(json.dumps(one))
    assert [each.file.name for each in page.newest(tmp_path)] == ["2026-01-01-both.json", "2026-01-02-one.json"]
    assert page.write(tmp_path, tmp_path) == 2


def test_the_page_has_a_heading_for_every_benchmark() -> None:
    assert page._SECTIONS.keys() == BENCHMARKS.keys()


def test_the_page_names_one_revision_if_all_results_have_the_same(tmp_path: Path) -> None:
    first = next(path for path in sorted(RESULTS.glob("*.json")) if '"sections"' in path.read_text())
    (tmp_path / "2026-01-01-old.json").write_text(first.read_text())
    run = json.loads(first.read_text())
    text = page.render(page.newest(tmp_path))["benchmarks.md"]
    assert f"All results are of {run['date']} and of one revision of the code, {run['code']}." in text


def test_ratios_of_versions_are_a_table_with_a_column_for_each(tmp_path: Path) -> None:
    series = [
        Series(work="append", contender=name, session=session, seconds=(seconds,))
        for session, ours in (("Spark 3.5.9", 2.0), ("Spark 4.2.1", 1.0))
        for name, seconds in ((PARQUET, 1.0), ("Penstock bucket=-1", ours))
    ]
    run = json.loads(next(path for path in RESULTS.glob("*.json") if '"sections"' in path.read_text()).read_text())
    run["sections"] = [to_json(Section(name="versions", title="Versions", series=tuple(series)))]
    (tmp_path / "2026-01-01-versions.json").write_text(json.dumps(run))
    text = page.render(page.newest(tmp_path))["benchmarks.md"]
    assert "| times as fast as Parquet   | Spark 3.5.9 | Spark 4.2.1 |" in text
    assert "| append: Penstock bucket=-1 | 0.50        | 1.00        |" in text


def test_times_through_servers_are_a_table_next_to_those_of_parquet(tmp_path: Path) -> None:
    times = {
        f"{OURS} {IN_DRIVER}": (0.1, 0.2),
        f"{OURS} {BY_CONNECT}": (0.12, 0.24),
        f"{OURS} {BY_THRIFT}": (0.1, 0.2),
        f"{PARQUET} {IN_DRIVER}": (0.2, 0.2),
        f"{PARQUET} {BY_CONNECT}": (0.22, 0.22),
    }
    series = [Series(work="a key", contender=name, session="", seconds=seconds) for name, seconds in times.items()]
    run = json.loads(next(path for path in RESULTS.glob("*.json") if '"sections"' in path.read_text()).read_text())
    run["sections"] = [to_json(Section(name="servers", title="Servers", series=tuple(series)))]
    (tmp_path / "2026-01-01-servers.json").write_text(json.dumps(run))
    text = page.render(page.newest(tmp_path))["benchmarks.md"]
    assert "| time next to the driver's        | Penstock      | Spark Parquet |" in text
    assert "| a key, through Spark Connect     | 1.20 (+30 ms) | 1.10 (+20 ms) |" in text
    assert "| a key, through the Thrift server | 1.00 (+0 ms)  |               |" in text
