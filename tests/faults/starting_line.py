"""Processes that begin at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_together(program: str, arguments: Sequence[Sequence[str]]) -> list[Any]:
    """Run a program once for each list of arguments, all from the same moment on; return the JSON that each prints.

    Args:
        program: prints ``ready``, reads from its standard input the monotonic time at which it begins, and prints JSON.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for each in arguments
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        start = time.monotonic() + 0.05
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{start}\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
