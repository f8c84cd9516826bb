"""The child process's side: one JSON request per line, one response per line, with its duration in seconds.

Needs only Python, as it runs in the environments of peers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def serve(steps: Mapping[str, Callable[[dict[str, Any]], object]]) -> None:
    """Handle requests with the step that their ``op`` names, until standard input ends."""
    # The output of libraries must not mix with the responses.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        started = time.perf_counter()
        try:
            result = {"ok": steps[request["op"]](request)}
        except Exception as error:  # noqa: BLE001 - whatever happened is the answer
            result = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps({**result, "seconds": time.perf_counter() - started}) + "\n")
