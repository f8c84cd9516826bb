"""Check that Spark starts tasks with a Python that has Penstock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError

from penstock.errors import UnsupportedFeatureError
from penstock.spark.executor_probe import ask_executors

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# Applications whose executors have Penstock, by their ids.
_READY: Final[set[str]] = set()
_ASKING: Final = threading.Lock()


def is_on_this_machine(context: SparkContext) -> bool:
    """Whether all tasks of an application run on the machine of the driver."""
    return (context.master or "").startswith("local")


def ensure_python_worker(spark: SparkSession) -> None:
    """Make sure that tasks run with a Python that has Penstock.

    The executors of a cluster are checked once per application, by a job of a few tasks.

    If a script is run as ``.venv/bin/python job.py`` without activating the environment, Spark starts the ``python3``
    on the PATH. If the user chose no Python, this function sets the driver's Python for tasks.
    """
    context = spark.sparkContext
    if not is_on_this_machine(spark.sparkContext):
        _ensure_executors(context)
        return
    if _has_penstock(context.pythonExec):
        return
    if "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python") is not None:
        raise UnsupportedFeatureError(
            f"Spark would run its Python tasks with '{context.pythonExec}', which cannot import penstock and pyarrow: "
            f"set PYSPARK_PYTHON (or spark.pyspark.python) to {sys.executable} before the session starts"
        )
    context.pythonExec = sys.executable


def begin_to_ensure(spark: SparkSession) -> None:
    """Begin to check the executors of a cluster, and return: their Python starts while the driver continues.

    ``ensure_python_worker`` then waits for the result, and repeats the check if there was none.
    """
    context = spark.sparkContext
    if is_on_this_machine(context) or context.applicationId in _READY:
        return
    threading.Thread(target=_ensure_quietly, args=(context,), name="penstock executors", daemon=True).start()


def _ensure_quietly(context: SparkContext) -> None:
    with suppress(UnsupportedFeatureError, Py4JError, OSError):
        _ensure_executors(context)


def _ensure_executors(context: SparkContext) -> None:
    with _ASKING:
        if context.applicationId in _READY:
            return
        found = ask_executors(context)
        if found.missing:
            raise UnsupportedFeatureError(
                f"the executors cannot import {', '.join(found.missing)} (their Python: {found.example}): call "
                "penstock.ship(spark) first, which sends what is missing from here, or install penstock on each machine"
            )
        _READY.add(context.applicationId)


@lru_cache(maxsize=8)
def _has_penstock(executable: str) -> bool:
    path = shutil.which(executable)
    if path is not None and Path(path).samefile(sys.executable) and Path(path).parent == Path(sys.executable).parent:
        return True  # the common case, without a process
    try:
        subprocess.run([executable, "-c", "import penstock, pyarrow"], check=True, capture_output=True)  # noqa: S603 - Spark runs the same
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
