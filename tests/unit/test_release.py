"""What is published: versions agree, and workflows and templates are what their readers expect."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from penstock.spark.versions.facts import TESTED, text_of

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_citation_has_the_version_of_the_package() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION


def test_the_readme_names_the_versions_of_spark_that_are_supported() -> None:
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    first, *others, last = map(text_of, TESTED)
    versions = ", ".join((first, *others))
    assert f"installs the newest PySpark from {first} on; Penstock is tested with {versions} and {last}." in readme
    assert f"any session of PySpark {versions} or {last}:" in readme
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"pyspark>={first}" in extras["spark"]


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_templates_are_yaml_and_call_targets_that_exist(path: Path) -> None:
    text = path.read_text()
    assert isinstance(yaml.safe_load(text), dict)
    makefile = (ROOT / "Makefile").read_text()
    for line in text.splitlines():
        _, make, target = line.partition("run: make ")
        assert not make or f"\n{target.split()[0]}:" in makefile


def test_every_action_is_pinned_by_the_hash_of_a_commit() -> None:
    used = [line for path in GITHUB.rglob("*.yml") for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    for line in used:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_only_the_publishing_job_may_ask_for_a_token() -> None:
    release = yaml.safe_load((GITHUB / "workflows/release.yml").read_text())
    assert release["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in release["jobs"].items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }
