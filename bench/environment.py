"""The environment of a result: enough to judge it, nothing that identifies the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from bench.settings import ROOT

PACKAGES: Final = ("penstock", "pyspark", "pyarrow", "fastavro", "numpy", "tpchgen-cli")


def describe_machine() -> dict[str, str]:
    """Return processor, cores, memory and system."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.machine()}",
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the compared software."""
    found = {"python": platform.python_version(), "java": _java()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def describe_code() -> str:
    """Return the revision that was measured, ``-dirty`` if it had changes that can have a say in what is measured."""
    revision = _run("git", "describe", "--always", "--tags").strip()
    if not revision:
        return "unknown"
    # Results that were kept a moment ago, and the page that is made of them, have none.
    changed = _run("git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results", ":!docs")
    return f"{revision}-dirty" if changed else revision


def load_average() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = re.search(r'version "([^"]+)"', _run(f"{home}/bin/java" if home else "java", "-version"))
    return found[1] if found else "none"


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
