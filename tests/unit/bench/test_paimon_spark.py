"""Paimon's connector on another Spark: how its process is asked, timed and left out. No JVM."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest
from bench import page, paimon_spark
from bench.child import Answer, Child
from bench.jars import peer_jars
from bench.measure import Contender, race
from bench.result import OURS, PAIMON, PARQUET_35, Section, to_json
from bench.settings import TOY
from bench.spark_job import PLAIN, PeerSet, find_peers
from bench.spark_session import SparkJob, load_job
from tests.interop.engines import UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

ECHO = "tests.unit.bench.echo_child"


class Recorded:
    """Stands for the child: notes what it is asked, and says that everything takes 42 seconds."""

    def __init__(self, log: list[str], value: object) -> None:
        self.log = log
        self.value = value

    def ask(self, op: str, table: str, **_request: Any) -> Answer:
        self.log.append(f"{table} {op}")
        return Answer(value=self.value, seconds=42.0)


def test_a_child_answers_with_its_seconds_whatever_its_libraries_print() -> None:
    with Child("Echo", sys.executable, ECHO) as child:
        answers = [child.ask("add", numbers=[number, 1]) for number in range(3)]
    assert [answer.value for answer in answers] == [1, 2, 3]
    assert all(answer.seconds >= 0 for answer in answers)


def test_what_a_child_refuses_is_an_error_and_it_goes_on() -> None:
    with Child("Echo", sys.executable, ECHO) as child:
        with pytest.raises(RuntimeError, match="Echo, refuse: ValueError: no such table"):
            child.ask("refuse", why="no such table")
        assert child.ask("add", numbers=[2, 3]).value == 5


def test_a_child_that_ends_is_an_error() -> None:
    with Child("Echo", sys.executable, ECHO) as child, pytest.raises(RuntimeError, match="its process ended"):
        child.ask("leave")


def test_the_other_spark_takes_its_turn_in_each_round_and_its_clock_counts() -> None:
    log: list[str] = []
    other = paimon_spark.OtherTable(Recorded(log, [7]), "paimon")
    ours = Contender(name=OURS, run=lambda: log.append("ours"), verify=lambda: 7)
    series = race("append", [ours, other.appends("folder")], rounds=2)
    turn = ["paimon create", "paimon append", "paimon drop"]
    verified = ["paimon create", "paimon append", "paimon query", "paimon drop"]
    assert log == [*verified, "ours", "ours", *turn, *turn, "ours"]
    assert [each.contender for each in series] == [OURS, PAIMON]
    assert series[1].seconds == (42.0, 42.0)
    assert max(series[0].seconds) < 42


def test_sums_are_verified_to_two_digits() -> None:
    contender = paimon_spark.OtherTable(Recorded([], [1.004, 3]), "parquet").sums(("sum(price)", "sum(sales)"))
    contender.run()
    assert contender.verify
    assert contender.verify() == (1.0, 3)
    assert contender.name == PARQUET_35


def test_what_cannot_be_fetched_is_left_out_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[str, str]:
        raise UnavailableError("Spark 3.5's packages: no network")

    monkeypatch.setattr(paimon_spark, "install", refuse)
    found, notes = find_peers("append", replace(TOY, peers=("paimon",)))
    assert found == (PeerSet(name=PLAIN),)
    assert notes == ("paimon is left out: Spark 3.5's packages: no network",)


def test_jobs_that_it_has_no_part_in_do_not_fetch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paimon_spark, "install", lambda: ("python", "connector.jar"))
    settings = replace(TOY, peers=("paimon",))
    assert find_peers("dml", settings) == ((PeerSet(name=PLAIN),), ())
    assert find_peers("scan", settings) == ((PeerSet(name="paimon", other=("python", "connector.jar")),), ())


def test_a_job_with_another_spark_survives_json() -> None:
    job = SparkJob(
        kind="scan", peer="paimon", jars=(), folder="f", settings=TOY, arguments={}, other=("python", "connector.jar")
    )
    assert load_job(json.dumps(asdict(job))) == job


def test_its_pins_name_one_jar_and_one_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paimon_spark, "fetch_peer", lambda _peer: (tmp_path / "connector.jar",))
    monkeypatch.setattr(paimon_spark, "install_environment", lambda *_how, **_more: tmp_path)
    assert paimon_spark.install() == (f"{tmp_path}/bin/python", f"{tmp_path}/connector.jar")
    assert paimon_spark.spark_version().startswith("3.5.")
    assert [jar.artifact.split(":")[1] for jar in peer_jars("paimon")] == ["paimon-spark-3.5"]


def test_the_page_shows_it_with_its_versions_where_a_result_has_it(tmp_path: Path) -> None:
    other = paimon_spark.OtherTable(Recorded([], [7]), "paimon")
    contenders = [Contender(name=OURS, run=int), other.sums(("count(*)",))]
    series = race("scan", contenders, rounds=1, warm_ups=0, session="paimon", rows=1)
    run = {
        "date": "2026-01-01",
        "code": "abc",
        "machine": {"processor": "p", "cores": "2", "memory": "24 GB"},
        "load_average": "0.1 - 0.2",
        "versions": {"pyspark": "4.2.1", "paimon": "group:connector:0.9.0", "pyspark of paimon": "3.5.8"},
        "sections": [to_json(Section(name="scan", title="Scan", series=series))],
    }
    (tmp_path / "2026-01-01-scan.json").write_text(json.dumps(run))
    files = page.render(page.newest(tmp_path))
    assert "PySpark 4.2.1, group:connector:0.9.0 on PySpark 3.5.8" in files["benchmarks.md"]
    assert f"{PAIMON} (paimon)" in files["img/bench-scan.svg"]
