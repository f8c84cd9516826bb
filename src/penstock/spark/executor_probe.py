"""Determine which Python runs the executors' tasks, and which packages it lacks.

The functions are pickled by value, since an executor without Penstock could not import them. So this module uses only
the standard library.
"""

from __future__ import annotations

import importlib.util
import socket
import sys
import sysconfig
import threading
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle

from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import SparkContext

TASKS: Final = 8
"""Most tasks of the job that asks."""

# Modules that Penstock's tasks import, with their distributions.
PACKAGES: Final = {
    "penstock": "penstock",
    "pyarrow": "pyarrow",
    "numpy": "numpy",
    "fastavro": "fastavro",
    "cramjam": "cramjam",
    "obstore": "obstore",
    "typing_extensions": "typing-extensions",
    "backports.zstd": "backports-zstd",
}
# Needed only for tables on some storages.
OPTIONAL: Final = {"hdfs_native": "hdfs-native"}
# The modules of most tasks, which the probed Python imports in advance: later tasks run in the same process.
_TASK_MODULES: Final = ("penstock.spark.stream.task", "penstock.spark.write.task")
# Spark has a Python daemon for each set of environment variables, and sets this variable for SQL tasks.
_SQL_VARIABLE: Final = "SPARK_SIMPLIFIED_TRACEBACK"
_TEXT_LIMIT: Final = 300
_LOCK: Final = threading.Lock()


class ExecutorPython:
    """The Pythons of the executors that answered.

    Attributes:
        missing: modules that at least one of them cannot import, in the order of ``PACKAGES`` and ``OPTIONAL``.
        example: path and machine of a Python that lacks a module, or of any Python.
        others: versions or platforms that differ from this process, such as ``cpython-312 on linux-aarch64``, each with
            an example.
    """

    def __init__(self, answers: Iterable[tuple[str, str, tuple[str, ...]]]) -> None:
        answers = tuple(answers)
        lacked = {name for _, _, missing in answers for name in missing}
        self.missing = tuple(name for name in (*PACKAGES, *OPTIONAL) if name in lacked)
        self.example = next((place for place, _, missing in answers if missing), answers[0][0])
        self.others = {kind: place for place, kind, _ in reversed(answers) if kind != python_kind()}


def ask_executors(context: SparkContext, modules: Iterable[str] = tuple(PACKAGES)) -> ExecutorPython:
    """Run a small job that inspects the executors' Python, and prepares it for tasks.

    Args:
        modules: to look for, if this process has them.
    """
    names = tuple(name for name in modules if _is_here(name))
    with _LOCK:
        return _ask(context, names)


def _ask(context: SparkContext, names: tuple[str, ...]) -> ExecutorPython:
    tasks = max(1, min(context.defaultParallelism, TASKS))
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        with _like_sql(context):
            asked = context.parallelize(range(tasks), tasks).mapPartitions(partial(look, names, _TASK_MODULES))
            return ExecutorPython(asked.collect())
    except Py4JJavaError as error:
        raise UnsupportedFeatureError(
            f"the executors cannot run Python tasks with '{context.pythonExec}' ({_cause(error)}): install the Python "
            "of the driver on each machine, and set PYSPARK_PYTHON to its path there before the session starts"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


@contextmanager
def _like_sql(context: SparkContext) -> Iterator[None]:
    """Run jobs that start in the block in the same Python processes as SQL tasks."""
    if _SQL_VARIABLE in context.environment:
        yield
        return
    context.environment[_SQL_VARIABLE] = "1"
    try:
        yield
    finally:
        context.environment.pop(_SQL_VARIABLE, None)


def python_kind() -> str:
    """Return the version and platform of this Python, on which packages with native code depend."""
    return f"{sys.implementation.cache_tag} on {sysconfig.get_platform()}"


def look(
    names: tuple[str, ...], wanted: tuple[str, ...], _rows: Iterable[int]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the location and kind of this Python, and the modules that it cannot import; runs in a task.

    Args:
        wanted: modules to import if none is missing.
    """
    missing = tuple(name for name in names if not _is_here(name))
    if not missing:
        with suppress(ImportError):  # a task that needs the module shows the error
            for name in wanted:
                importlib.import_module(name)
    yield f"{sys.executable} on machine '{socket.gethostname()}'", python_kind(), missing


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def _cause(error: Py4JJavaError) -> str:
    lines = [line.strip() for line in str(error.java_exception).splitlines() if line.strip()]
    named = [line for line in lines if "Cannot run program" in line or line.startswith("pyspark.errors.")]
    return (named or lines or ["no reason given"])[0].rpartition("Exception: ")[2][:_TEXT_LIMIT]
