"""An archive of the classes that Spark loads, with which a JVM starts in half the time; as a program it makes one.

``make test`` and ``make test-slow`` make it once, for some thirty JVMs. Without it, or where it does not fit, a JVM
starts as usual.

Source:
    JDK 17, ``java -XX:ArchiveClassesAtExit`` and ``-XX:SharedArchiveFile``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DIRECTORY: Final = ROOT / ".pytest_cache" / "spark-classes"
SCRIPT: Final = Path(__file__).with_name("class_archive_script.py")
MAKING_SECONDS: Final = 300


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    return Path(found).resolve() if found else None


def archive_path() -> Path:
    """Return where the archive for this Java is, or would be."""
    java = _java()
    key = f"{java} {java.stat().st_mtime_ns if java else 0} {sys.prefix} {SCRIPT.read_text('utf-8')}"
    return DIRECTORY / f"{sha256(key.encode()).hexdigest()[:16]}.jsa"


def archive_options() -> tuple[str, ...]:
    """Return the options of a JVM that uses the archive; none where there is none."""
    path = archive_path()
    return (f"-XX:SharedArchiveFile={path}",) if path.exists() else ()


def make_archive() -> None:
    """Make the archive where it is missing; a Java that cannot make one makes none."""
    path = archive_path()
    if path.exists() or _java() is None:
        return
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DIRECTORY) as scratch:
        made = Path(scratch, "made.jsa")
        options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -XX:ArchiveClassesAtExit={made}"
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": options, "PYSPARK_PYTHON": sys.executable}
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        done = subprocess.run(
            [sys.executable, SCRIPT, scratch],
            env=environment,
            cwd=scratch,
            capture_output=True,
            check=False,
            timeout=MAKING_SECONDS,
        )
        if made.exists():
            made.replace(path)
        else:
            sys.stdout.write(f"no archive of classes was made: {done.stderr[-2_000:].decode(errors='replace')}\n")


if __name__ == "__main__":
    make_archive()
