"""Facts on versions of Spark: what is refused, and in which words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import types as spark_types
from scripts import test_matrix
from scripts.test_matrix import SPARKS, version_of_turn

import penstock
from penstock.errors import UnsupportedFeatureError
from penstock.spark.versions import facts, python_api
from penstock.spark.versions.facts import FEATURES, TESTED, check_version, class_here, interfaces_here, text_of

CATALOG = "org.apache.spark.sql.connector.catalog."


def test_every_feature_is_lacking_in_a_version_that_is_tested_and_says_what_to_use() -> None:
    for feature in FEATURES:
        assert TESTED[0] < feature.since <= TESTED[-1]
        assert feature.instead


def test_a_missing_feature_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "INSTALLED", (4, 1))
    with pytest.raises(UnsupportedFeatureError) as raised:
        facts.STREAM_READS_OF_FORMAT.check("table d.t")
    text = str(raised.value)
    assert text.startswith('table d.t: readStream.format("penstock") needs Spark 4.2 or newer, this is ')
    assert text.endswith(": use Table.read_stream, or readStream.table after penstock.attach")
    facts.STREAM_WRITES_OF_FORMAT.check("table d.t")


def test_older_versions_are_refused_and_newer_ones_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "INSTALLED", (3, 4))
    with pytest.raises(UnsupportedFeatureError, match=f"works with Spark {text_of(TESTED[0])} and newer"):
        check_version()
    monkeypatch.setattr(facts, "INSTALLED", (5, 0))
    with pytest.warns(UserWarning, match="was never tested with Spark") as found:
        check_version()
    assert found[0].filename == __file__


def test_interfaces_and_classes_have_the_names_of_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{CATALOG}StagingTableCatalog", f"{CATALOG}RelationCatalog"]
    assert interfaces_here(names)[0] == names[0]
    moved = "org.apache.spark.sql.classic.SparkSession"
    monkeypatch.setattr(facts, "INSTALLED", (3, 5))
    assert class_here(moved) == "org.apache.spark.sql.SparkSession"
    monkeypatch.setattr(facts, "INSTALLED", (4, 0))
    assert class_here(moved) == moved


def test_a_class_that_pyspark_does_not_have_can_be_inherited() -> None:
    module = python_api._Module("pyspark.sql.no_such_module")
    kind = type("Reader", (module.Reader, module.Limits), {})
    assert isinstance(kind(1), python_api.Absent)
    assert python_api.types.StringType is spark_types.StringType
    assert not isinstance(spark_types.StringType(), module.AnyType)


def test_each_version_is_that_of_the_lock_file_or_of_the_matrix() -> None:
    tried = {".".join(version.split(".")[:2]) for version in SPARKS} | {"4.2"}
    assert tried == set(map(text_of, TESTED))
    assert SPARKS[0].startswith(text_of(TESTED[0]))


def test_each_version_has_its_turn() -> None:
    commits = (f"{number:040x}" for number in range(30))
    turns = [version_of_turn(SPARKS[1:], commit) for commit in commits]
    assert {version: turns.count(version) for version in SPARKS[1:]} == dict.fromkeys(SPARKS[1:], 10)


def test_a_version_that_fails_leaves_the_others_of_the_matrix_running(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tried(version: str, *_: object) -> str:
        if version == SPARKS[1]:
            sys.exit("2 failed")
        return f"{version}: 3 passed"

    monkeypatch.setattr(test_matrix, "build_twice", lambda folder: folder)
    monkeypatch.setattr(test_matrix, "try_spark", tried)
    monkeypatch.setattr(sys, "argv", ["test_matrix", "--python", "none"])
    with pytest.raises(SystemExit, match=f"failed: PySpark {SPARKS[1]}$"):
        test_matrix.main()
    *lines, last = capsys.readouterr().out.splitlines()
    outcomes = [f"{each}: {'2 failed' if each == SPARKS[1] else '3 passed'}" for each in SPARKS]
    assert lines == [f"PySpark {outcome}" for outcome in outcomes]
    assert last == "0 minutes in all"


def test_no_other_module_asks_for_a_version() -> None:
    src = Path(penstock.__file__).parent
    asking = {path.name for path in src.rglob("*.py") if "pyspark.__version__" in path.read_text("utf-8")} - {
        "facts.py"
    }
    assert asking == set()
