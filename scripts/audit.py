"""Check the installed packages: each licence is one that we accept, each version the one pinned in ``uv.lock``.

Needs no network: licences are those stated in package metadata. A person reads a new licence, then adds it here.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = "penstock"
# SPDX identifiers, and the spellings of older packages; in lower case.
ACCEPTED = frozenset(
    {
        *("0bsd", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "isc", "mit", "mit-0", "psf-2.0", "zlib"),
        *(
            "3-clause bsd license",
            "apache 2.0",
            "apache license 2.0",
            "apache software license",
            "bsd 2-clause license",
            "bsd 3-clause license",
            "bsd license",
        ),
        *("cc0", "isc license", "isc license (iscl)", "mit license", "python software foundation license"),
    }
)
# File-level copyleft: used unmodified, for tests and tools only, and not in the wheel.
FOR_DEVELOPMENT = {
    "certifi": "mpl-2.0",
    "hypothesis": "mpl-2.0",
    "pathspec": "mozilla public license 2.0 (mpl 2.0)",
    # Permissive, with a clause about trademarks.
    "waitress": "zpl 2.1",
}
# Their metadata is less precise than their licence files (a choice of Apache-2.0 or BSD-3-Clause) or than the bill of
# materials in their wheels (Apache-2.0).
READ_BY_HAND = {"python-dateutil": "dual license", "hdfs-native": "not stated"}


def main() -> None:
    """Print each problem; return 1 if there is any."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
    installed = sorted(distributions(), key=_name)
    problems = [problem for each in installed for problem in (license_problem(each), _version_problem(each, lock))]
    found = [*filter(None, problems), *_without_hash(lock)]
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"{len(installed)} packages: licences and versions are as expected")


def license_problem(each: Distribution) -> str | None:
    """Return what is wrong with the licence of a package."""
    stated = stated_licenses(each) or ["not stated"]
    known = {FOR_DEVELOPMENT.get(_name(each)), READ_BY_HAND.get(_name(each))}
    if any(accepts(text) for text in stated) or known & {text.lower() for text in stated}:
        return None
    return f"{_name(each)} {each.version}: licence {' or '.join(stated)} is not in scripts/audit.py"


def stated_licenses(each: Distribution) -> list[str]:
    """Return the licence that a package states: the expression; without one, the field, else its classifiers."""
    # A missing field is None, despite the declared types.
    fields = dict(each.metadata.items())
    expression = fields.get("License-Expression")
    if expression:
        return [expression]
    field = fields.get("License", "").strip()
    # Old packaging tools write UNKNOWN if the field is not set.
    if field and field != "UNKNOWN" and "\n" not in field:
        return [field]
    classifiers = each.metadata.get_all("Classifier") or []
    return [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")]


def accepts(expression: str) -> bool:
    """Whether we accept a licence, or an SPDX expression: one side of each OR, both of each AND."""
    if expression.lower() in ACCEPTED:
        return True
    if "(" in expression:
        # No package has needed more yet: all classifiers must be accepted.
        return all(accepts(part) for part in re.split(r" (?:AND|OR) ", re.sub(r"[()]", "", expression)))
    ways = expression.split(" OR ")
    return any(all(part.strip().lower() in ACCEPTED for part in way.split(" AND ")) for way in ways)


def _version_problem(each: Distribution, lock: list[dict[str, str]]) -> str | None:
    pinned = [package["version"] for package in lock if package["name"] == _name(each)]
    if _name(each) == PROJECT or each.version in pinned:
        return None
    return f"{_name(each)} {each.version} is installed; uv.lock has {', '.join(pinned) or 'none'}: make setup"


def _without_hash(lock: list[dict[str, object]]) -> list[str]:
    problems = []
    for package in lock:
        files = [package[kind] for kind in ("sdist",) if kind in package] + list(package.get("wheels", []))
        if package["name"] != PROJECT and not (files and all("hash" in file for file in files)):
            problems.append(f"{package['name']} {package['version']}: uv.lock has no hash of it")
    return problems


def _name(each: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()


if __name__ == "__main__":
    main()
