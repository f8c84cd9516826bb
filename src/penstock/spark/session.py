"""Start the Spark session of the commands, hide the JVM's output meanwhile, activate sessions, cancel jobs."""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.errors import UnsupportedFeatureError
from penstock.spark.versions.python_api import classic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_STDERR: Final = 2
# Number of output lines to show if a JVM cannot start, for example UnsupportedClassVersionError of an old Java.
_TOLD: Final = 5
_DESCRIPTION: Final = "spark.job.description"


def open_session(master: str, conf: Mapping[str, str], *, shows_start: bool) -> SparkSession:
    """Return the session of this process; start one if there is none.

    Args:
        conf: settings of the session.
        shows_start: show the warnings that a JVM prints at its start, which are not about a query.
    """
    builder = SparkSession.builder.master(master).appName("penstock").config("spark.ui.showConsoleProgress", "false")
    for key, value in conf.items():
        builder = builder.config(key, value)
    if SparkContext._gateway is not None:  # noqa: SLF001 - there is no other sign of a JVM without a session
        return builder.getOrCreate()
    _check_java()
    if shows_start:
        return builder.getOrCreate()
    with _held_back():
        return builder.getOrCreate()


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, whose JVM this process cannot call."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread; in the thread that created it, it already is.

    Spark's writers find Python data sources only through the active session, and raise DATA_SOURCE_NOT_FOUND without
    one.
    """
    if hasattr(spark, "_jsparkSession"):  # a Spark Connect session has none
        sessions = classic(spark.sparkContext._jvm).SparkSession  # noqa: SLF001 - Python has no method for it
        sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - see above


@contextmanager
def cancellable_jobs(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Yield a function that cancels only the jobs that this thread starts in the block; any thread may call it."""
    context = spark.sparkContext
    tag = f"penstock-sql-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield partial(context.cancelJobsWithTag, tag)
    finally:
        context.removeJobTag(tag)


@contextmanager
def described_jobs(context: SparkContext, text: str) -> Iterator[None]:
    """Describe the jobs that this thread starts in the block, in Spark's UI; a description that it has is left."""
    if context.getLocalProperty(_DESCRIPTION) is not None:
        yield
        return
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, None)  # type: ignore[arg-type] # which unsets it


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"JAVA_HOME is {home}, without bin/java" if home else "there is no java on the PATH, and no JAVA_HOME"
        raise UnsupportedFeatureError(
            f"Spark needs Java 17 or newer: {where}; install it, or leave --spark out where no query needs it"
        )


@contextmanager
def _held_back() -> Iterator[None]:
    """Hide the stderr output of a JVM that starts in the block; show its later output.

    The stderr of a process is fixed when it starts, so the JVM gets a pipe, which a thread reads to its end. If the
    block fails, the last lines become notes of the error.
    """
    reading, writing = os.pipe()
    stderr = os.dup(_STDERR)
    os.dup2(writing, _STDERR)
    relay = _Relay(reading, stderr)
    try:
        yield
    except Exception as error:
        # Frames of a Java trace begin with a tab.
        for line in [line for line in relay.lines if not line.startswith("\t")][-_TOLD:]:
            error.add_note(line)
        raise
    finally:
        relay.is_open.set()
        os.dup2(stderr, _STDERR)
        os.close(writing)


class _Relay:
    """Reads a pipe to its end on a thread; keeps its lines, or writes them to stderr once ``is_open`` is set."""

    def __init__(self, reading: int, target: int) -> None:
        self.is_open = threading.Event()
        self.lines: list[str] = []
        self._target = target
        threading.Thread(target=self._run, args=(reading,), name="penstock-jvm-stderr", daemon=True).start()

    def _run(self, reading: int) -> None:
        with open(reading, "rb") as pipe:
            for line in pipe:
                if self.is_open.is_set():
                    os.write(self._target, line)
                else:
                    self.lines.append(line.decode(errors="replace").rstrip())
