"""What a process counts is what it did, and what is exported can be drawn."""

from __future__ import annotations

import json
import logging
import re
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import penstock
from penstock import metrics
from penstock.metrics import METRICS, MetricKind
from penstock.table.commit.committer import TableCommitter

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]


@pytest.fixture
def table(tmp_path: Path) -> penstock.Table:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", "id BIGINT", options={"bucket": 1, "bucket-key": "id"})


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def export(table: penstock.Table, registry: CollectorRegistry) -> Iterator[penstock.MetricsExport]:
    made = penstock.export_metrics(table, registry=registry)
    yield made
    made.close()


@pytest.mark.usefixtures("export")
def test_commits_are_counted_with_their_rows_and_files(table: penstock.Table, registry: CollectorRegistry) -> None:
    for _ in range(5):
        table.append([{"id": 1}, {"id": 2}])
    table.compact(strategy="full")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"penstock_{name}", {"table": "shop.orders", **labels})

    assert value("commits_total", kind="APPEND") == 5
    assert value("rows_added_total", kind="APPEND") == 10
    assert value("files_added_total", kind="APPEND") == 5
    assert value("commits_total", kind="COMPACT") == 1
    assert value("files_removed_total", kind="COMPACT") == 5
    assert value("files_added_total", kind="COMPACT") == 1
    assert value("bytes_added_total", kind="COMPACT") == table.inspect.summary().bytes
    assert value("commit_seconds_count") == 6


@pytest.mark.usefixtures("export")
def test_the_state_of_a_table_is_read_when_it_is_asked_for(table: penstock.Table, registry: CollectorRegistry) -> None:
    table.append([{"id": 1}, {"id": 2}])
    table.maintenance.reset_consumer("nightly", 1)
    labels = {"table": "shop.orders"}
    assert registry.get_sample_value("penstock_table_rows", labels) == 2
    assert registry.get_sample_value("penstock_table_snapshot_id", labels) == 1
    reader = {**labels, "reader": "nightly"}
    assert registry.get_sample_value("penstock_reader_rows_behind", reader) == 2
    table.append([{"id": 3}])
    assert registry.get_sample_value("penstock_reader_rows_behind", reader) == 3
    assert registry.get_sample_value("penstock_reader_snapshots_behind", reader) == 2


@pytest.mark.usefixtures("export")
def test_a_dropped_table_is_down_and_the_others_are_exported(
    table: penstock.Table, registry: CollectorRegistry, tmp_path: Path
) -> None:
    penstock.Catalog(tmp_path).drop_table(table.name)
    assert registry.get_sample_value("penstock_table_up", {"table": "shop.orders"}) == 0


@pytest.mark.usefixtures("export")
def test_a_lost_race_is_counted_and_logged(
    table: penstock.Table,
    registry: CollectorRegistry,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put = TableCommitter._put_in_time
    other = penstock.Table.at(table.location)

    def overtaken(committer: TableCommitter, *given: Any) -> Any:
        monkeypatch.undo()
        other.append([{"id": 9}])
        return put(committer, *given)

    monkeypatch.setattr(TableCommitter, "_put_in_time", overtaken)
    with caplog.at_level(logging.INFO, "penstock"):
        snapshot = table.append([{"id": 1}])
    assert snapshot is not None
    assert snapshot.id == 2
    assert registry.get_sample_value("penstock_commit_retries_total", {"table": "shop.orders"}) == 1
    assert "another writer committed snapshot 1 first" in caplog.text


def test_a_sink_that_fails_fails_no_commit(table: penstock.Table, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def record(self, *_: object) -> None:
            raise RuntimeError("no space")

    sink = Broken()
    metrics.add_sink(sink)
    try:
        snapshot = table.append([{"id": 1}])
    finally:
        metrics.remove_sink(sink)
    assert snapshot is not None
    assert "no space" in caplog.text


def test_without_an_export_nothing_is_counted(table: penstock.Table) -> None:
    assert not metrics.is_counting()
    table.append([{"id": 1}])


def test_two_exports_in_one_registry_are_refused(export: penstock.MetricsExport, registry: CollectorRegistry) -> None:
    assert export is not None
    with pytest.raises(penstock.InvalidOptionError, match=r"close\(\) the other export first"):
        penstock.export_metrics(registry=registry)


def test_an_export_that_is_closed_leaves_its_registry_empty(registry: CollectorRegistry) -> None:
    penstock.export_metrics(registry=registry).close()
    assert generate_latest(registry) == b""
    penstock.export_metrics(registry=registry).close()


def test_events_are_logged_at_the_levels_of_the_documentation(
    table: penstock.Table, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "penstock"):
        for _ in range(3):
            table.append([{"id": 1}])
        table.compact(strategy="full")
        table.expire_snapshots(retain_max=1, retain_min=1)
    found = {(record.name, record.levelname) for record in caplog.records}
    assert found >= {("penstock.commit", "DEBUG"), ("penstock.compaction", "INFO"), ("penstock.expiration", "INFO")}


def test_without_configuration_a_commit_prints_nothing(
    table: penstock.Table, capfd: pytest.CaptureFixture[str]
) -> None:
    table.append([{"id": 1}])
    table.compact(strategy="full")
    assert capfd.readouterr() == ("", "")


def test_metrics_are_served_to_prometheus(table: penstock.Table, registry: CollectorRegistry) -> None:
    table.append([{"id": 1}])
    export = penstock.export_metrics(table, registry=registry, port=0)
    try:
        assert export.port is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{export.port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        export.close()
    assert 'penstock_table_rows{table="shop.orders"} 1.0' in text


def test_the_dashboard_names_only_metrics_that_exist() -> None:
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text("utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    named = {name for text in expressions for name in re.findall(r"penstock_\w+", text)}
    exported = set()
    for metric in METRICS:
        parts = ("_bucket", "_sum", "_count") if metric.kind is MetricKind.HISTOGRAM else ("",)
        exported |= {metric.name + part for part in parts}
    assert named <= exported
    assert len(named) >= 15


def test_the_page_on_monitoring_lists_every_metric() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
    listed = re.findall(r"^\| `(penstock_\w+)` \| (\w+) \| ([\w, ]*) \|", page, re.MULTILINE)
    assert listed == [(each.name, str(each.kind), ", ".join(each.labels)) for each in METRICS]
