"""Run one of our steps in a fresh process and print how long it took, without imports.

``python -m bench.subprocess_worker plan LOCATION [FILTER]``, ``... commit LOCATION`` ``... scale LOCATION WORK`` or
``... catalog LOCATION SMALL FILTER [DIRECTORY]``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final

from bench import catalog_plan
from bench.catalog_plan import peak_bytes
from bench.history import append_once, open_recorded
from bench.scale_works import WORKS
from penstock.catalog.place import load_location
from penstock.predicate.parse import parse_filter
from penstock.table.read.query import plan_query
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def plan(location: str, filter: str | None = None) -> dict[str, Any]:
    """Plan a read in a fresh process."""
    before = peak_bytes("self")
    started = time.perf_counter()
    ref = load_location(location)
    query = plan_query(ref, MetadataStore(ref), None if filter is None else parse_filter(filter))
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "files": query.plan.file_count,
        "peak_bytes": peak_bytes("self"),
        "peak_bytes_before": before,
    }


def commit(location: str) -> dict[str, Any]:
    """Append once in a fresh process."""
    started = time.perf_counter()
    recorded = open_recorded(load_location(location))
    append_once(recorded.committer)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "manifests": recorded.manifests_read()}


def scale(location: str, work: str, *arguments: str) -> dict[str, Any]:
    """Do a work of ``bench.scale`` in a fresh process, plans a second time with what is cached then."""
    ref = load_location(location)
    answer: dict[str, Any] = {}
    for name in ("cold", "warm") if work == "plan" else ("cold",):
        started = time.process_time()
        answer["files"] = WORKS[work](ref, *arguments)
        answer[name] = time.process_time() - started
    return answer | {"peak_bytes": peak_bytes("self")}


STEPS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "plan": plan,
    "commit": commit,
    "scale": scale,
    "catalog": catalog_plan.plan,
}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
