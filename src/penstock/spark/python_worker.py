"""Whether the Python that Spark starts for tasks is one that can run them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_python_worker(spark: SparkSession) -> None:
    """Check that Spark's worker Python has Penstock, where that can be known: with tasks on this machine.

    Raises:
        UnsupportedFeatureError: it has not; the message says how to name the right one. Found out here it is one
            line, found out by the first task it is a Java stack trace.
    """
    context = spark.sparkContext
    if not (context.master or "").startswith("local"):
        return
    executable = context.pythonExec
    if not _has_penstock(executable):
        raise UnsupportedFeatureError(
            f"Spark would run its Python tasks with '{executable}', which cannot import penstock and pyarrow; before "
            f"the session starts, set the environment variable PYSPARK_PYTHON={sys.executable}, or Spark's option "
            "spark.pyspark.python"
        )


@lru_cache(maxsize=8)
def _has_penstock(executable: str) -> bool:
    path = shutil.which(executable)
    if path is not None and Path(path).samefile(sys.executable):  # the common case, for free
        return True
    try:
        subprocess.run([executable, "-c", "import penstock, pyarrow"], check=True, capture_output=True)  # noqa: S603 - Spark runs the very same
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
