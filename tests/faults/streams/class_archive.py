"""An archive of the classes that Spark loads, with which a JVM starts in half the time.

Source:
    JDK 17, ``java -XX:ArchiveClassesAtExit`` and ``-XX:SharedArchiveFile``; a JVM that an archive does not fit goes on
    without it.
"""

from __future__ import annotations

import os
import random
import subprocess
from hashlib import sha256
from typing import TYPE_CHECKING

import pyspark
from tests.faults.streams.chain import Chain
from tests.faults.streams.harness import Drivers

if TYPE_CHECKING:
    from pathlib import Path


def options_with_archive(cache: Path, scratch: Path) -> str:
    """Return the options of JVMs that use the archive; the first time it is made, which takes half a minute.

    A CI that keeps no archive makes none: it would be used for a few starts only.

    Args:
        cache: directory of the archives, which later runs find again.
        scratch: directory that is not there yet.
    """
    java = subprocess.run(["java", "-version"], check=True, capture_output=True).stderr
    key = sha256(java + pyspark.__version__.encode() + pyspark.__file__.encode()).hexdigest()[:16]
    archive = cache / f"spark-{key}.jsa"
    if not archive.exists():
        if os.environ.get("CI"):
            return ""
        made = scratch / "made.jsa"
        _work_and_leave(scratch, f"-XX:ArchiveClassesAtExit={made}")
        if not made.exists():  # not every JVM can make one
            return ""
        aside = cache / f".{scratch.parent.name}-{archive.name}"
        aside.write_bytes(made.read_bytes())
        aside.replace(archive)
        made.unlink()
    return f"-XX:SharedArchiveFile={archive}"


def _work_and_leave(scratch: Path, jvm: str) -> None:
    """Let a driver do what all do, and end by itself."""
    with Drivers(scratch / "drivers", jvm=jvm) as drivers:
        chain = Chain(scratch, drivers, random.Random(0))  # noqa: S311 - no secret
        chain.produce(2)
        chain.run_to_end()
        drivers.leave()
