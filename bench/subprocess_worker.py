"""Run one of our steps in a fresh process and print how long it took, without imports.

``python -m bench.subprocess_worker plan LOCATION [FILTER]`` or ``... commit LOCATION``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.history import append_once, open_recorded
from penstock.catalog.place import load_location
from penstock.table.read.query import plan_query
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from typing import Any


def plan(location: str, filter: str | None = None) -> dict[str, Any]:
    """Plan a read in a fresh process."""
    before = _peak_bytes()
    started = time.perf_counter()
    ref = load_location(location)
    query = plan_query(ref, MetadataStore(ref), filter)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "files": query.plan.file_count,
        "peak_bytes": _peak_bytes(),
        "peak_bytes_before": before,
    }


def commit(location: str) -> dict[str, Any]:
    """Append once in a fresh process."""
    started = time.perf_counter()
    recorded = open_recorded(load_location(location))
    append_once(recorded.committer)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "manifests": recorded.manifests_read()}


def _peak_bytes() -> int:
    """Peak of resident memory. ``getrusage`` would include the parent's, from before the exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


STEPS = {"plan": plan, "commit": commit}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
