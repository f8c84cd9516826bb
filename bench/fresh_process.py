"""Run ``subprocess_worker`` in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from bench.settings import ROOT


def ask_fresh(*arguments: str) -> dict[str, Any]:
    """Return the output of a step.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-m", "bench.subprocess_worker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        message = f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}"
        raise RuntimeError(message)
    return json.loads(done.stdout)
