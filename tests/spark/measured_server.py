"""Run ``penstock`` with the arguments of this program; write what its process holds to a file at each SIGUSR1.

The first argument is the file, which gets one JSON object. Its numbers are taken after collections in both heaps.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from py4j.finalizer import ThreadSafeFinalizer
from pyspark import SparkContext

from penstock.cli.main import main
from penstock.table.metadata_cache import clear_metadata_cache

_ROUNDS: Final = 12
_ROUND_SECONDS: Final = 0.25


def counts() -> dict[str, int]:
    """Return the number of threads and objects in Python and in the JVM, without garbage and cached manifests."""
    # Each commit adds 13 objects to the cache, which has a limit of its own.
    clear_metadata_cache()
    gateway: Any = SparkContext._gateway
    jvm = gateway.jvm
    # An object of one heap that holds one of the other is let go of by a thread of the JVM or of Python, some time
    # after the collection, and what it held by the next one.
    held = [0]
    for _ in range(_ROUNDS):
        gc.collect()
        jvm.java.lang.System.gc()
        time.sleep(_ROUND_SECONDS)
        held.append(len(ThreadSafeFinalizer.finalizers) + len(gateway.gateway_property.pool))
        if held[-1] == held[-2]:
            break
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    return {
        "JVM threads": jvm.java.lang.management.ManagementFactory.getThreadMXBean().getThreadCount(),
        "JVM heap in kB": memory // 1024,
        "Python threads": threading.active_count(),
        "Python objects": len(gc.get_objects()),
        # Objects of the JVM that Python holds, and objects of Python that the JVM holds.
        "Java objects of Py4J": len(ThreadSafeFinalizer.finalizers),
        "Python proxies": len(gateway.gateway_property.pool),
        "open files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - the JVM has its own
    }


def run() -> None:
    """Run the command."""
    target = Path(sys.argv[1])

    def write(_number: int, _frame: object) -> None:
        new = target.with_suffix(".new")
        new.write_text(json.dumps(counts()))
        new.replace(target)

    signal.signal(signal.SIGUSR1, write)
    sys.argv = ["penstock", *sys.argv[2:]]
    main()


if __name__ == "__main__":
    run()
