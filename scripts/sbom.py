"""The bill of materials of the wheel, from ``uv.lock``, in CycloneDX format; deterministic for a given lock.

    python scripts/sbom.py [FILE]

It lists the packages of an installation with every extra, in the versions pinned for development; development tools are
omitted. ``scripts/hatch_build.py`` adds it to each wheel, according to PEP 770.

Source:
    CycloneDX 1.6, JSON; the package URL specification, type pypi.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PROJECT = "penstock"
NAME = "penstock.cdx.json"

Package = dict[str, Any]


def render(lock: str) -> str:
    """Return the bill of materials for the text of a lock file."""
    packages: list[Package] = tomllib.loads(lock)["package"]
    project = next(package for package in packages if package["name"] == PROJECT)
    parts = sorted(_closure(packages, project), key=lambda package: (package["name"], package["version"]))
    digest = hashlib.sha256(lock.encode()).hexdigest()
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # No clock and no randomness: the same lock gives the same file.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "component": {**_identity(project), "licenses": [{"license": {"id": "Apache-2.0"}}]},
            "properties": [{"name": "penstock:uv.lock:sha256", "value": digest}],
        },
        "components": [_component(package) for package in parts],
        "dependencies": [
            {"ref": _purl(package), "dependsOn": sorted(_purl(each) for each in _needed(packages, package))}
            for package in [project, *parts]
        ],
    }
    return json.dumps(bill, indent=1) + "\n"


def _closure(packages: list[Package], project: Package) -> list[Package]:
    """Return the dependencies of the project with its extras, and theirs."""
    found: dict[str, Package] = {}
    waiting = list(_needed(packages, project))
    while waiting:
        package = waiting.pop()
        if _purl(package) not in found:
            found[_purl(package)] = package
            waiting += _needed(packages, package)
    return list(found.values())


def _needed(packages: list[Package], package: Package) -> Iterator[Package]:
    extras = package.get("optional-dependencies", {}) if package["name"] == PROJECT else {}
    for wanted in [*package.get("dependencies", []), *(each for names in extras.values() for each in names)]:
        for each in packages:
            if each["name"] == wanted["name"] and wanted.get("version", each["version"]) == each["version"]:
                yield each


def _component(package: Package) -> dict[str, object]:
    files = [package[kind] for kind in ("sdist",) if kind in package] or package.get("wheels", [])[:1]
    return {
        **_identity(package),
        "externalReferences": [
            {
                "type": "distribution",
                "url": file["url"],
                "hashes": [{"alg": "SHA-256", "content": file["hash"].removeprefix("sha256:")}],
            }
            for file in files
        ],
    }


def _identity(package: Package) -> dict[str, object]:
    return {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": _purl(package),
    }


def _purl(package: Package) -> str:
    return f"pkg:pypi/{package['name']}@{package['version']}"


def main() -> None:
    """Write the bill of materials to a file, or print it."""
    text = render((ROOT / "uv.lock").read_text("utf-8"))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
