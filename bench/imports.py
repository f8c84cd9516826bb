"""Start-up: ``import penstock`` and ``penstock --help``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Contender, Series, race
from bench.result import OURS, Check, Section

if TYPE_CHECKING:
    from bench.settings import Settings

MAX_IMPORT_SECONDS = 0.15
MAX_HELP_SECONDS = 0.25
IMPORTS = {
    "import penstock": "penstock",
    "import pyarrow, alone": "pyarrow",
    "import numpy, alone": "numpy",
}


def measure(settings: Settings) -> Section:
    """Start a fresh interpreter each time; imports are timed inside it, the command from outside."""
    rounds = 2 * settings.rounds + 1
    seconds: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for round_number in range(-settings.warm_ups, rounds):
        for name, module in IMPORTS.items():
            taken = import_seconds(module)
            if round_number >= 0:
                seconds[name].append(taken)
    imports = [
        Series(work=name, contender=OURS if name == "import penstock" else "", session="", seconds=tuple(times))
        for name, times in seconds.items()
    ]
    command = [str(Path(sys.executable).with_name("penstock")), "--help"]
    commands = race(
        "process from start to end",
        [
            Contender(name="penstock --help", run=lambda: _run(command)),
            Contender(name="python -c pass", run=lambda: _run([sys.executable, "-c", "pass"])),
        ],
        rounds=rounds,
        warm_ups=settings.warm_ups,
    )
    checks = (
        Check(name="import penstock", values=imports[0].seconds, unit="s", at_most=MAX_IMPORT_SECONDS),
        Check(name="penstock --help", values=commands[0].seconds, unit="s", at_most=MAX_HELP_SECONDS),
    )
    return Section(name="import", title="Start-up", series=(*imports, *commands), checks=checks)


def import_seconds(module: str) -> float:
    """Return how long a fresh interpreter takes to import a module."""
    code = f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{Path(command[0]).name} {' '.join(command[1:])} failed:\n{done.stderr[-2000:]}"
        raise RuntimeError(message)
