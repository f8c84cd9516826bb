"""Send Penstock and the packages of its tasks to executors that do not have them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import uuid
import zipfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import SparkFiles

from penstock.errors import UnsupportedFeatureError
from penstock.spark.connector.gateway import is_supported
from penstock.spark.data_source.source import BatchDataSource, PenstockDataSource, register_format
from penstock.spark.executor_probe import OPTIONAL, PACKAGES, ask_executors, python_kind
from penstock.spark.python_worker import ensure_python_worker, is_on_this_machine
from penstock.spark.session import activate, is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_ALL: Final = {**PACKAGES, **OPTIONAL}
# In numpy and pyarrow: header files and their own tests, 40 MB in all.
_LEFT_OUT: Final = frozenset({"__pycache__", "include", "includes", "tests"})
_SOURCE_SUFFIXES: Final = frozenset({".pyx", ".pxd", ".pxi", ".h", ".hpp", ".cc", ".a", ".pyc"})
# Level 1 takes a fifth of the time of level 6 and produces 5 % more bytes.
_LEVEL: Final = 1


def register(spark: SparkSession) -> None:
    """Register the format with a session, and make it the active one of this thread."""
    if not is_connect(spark):  # there, the server chooses the Python
        ensure_python_worker(spark)
    register_format(spark, BatchDataSource if is_supported(spark) else PenstockDataSource)
    activate(spark)


def ship(spark: SparkSession) -> tuple[str, ...]:
    """Send the packages that the executors' Python lacks, from the environment of this process.

    Executors that start later get them too. Streams and DataFrames that were created before do not use them.

    Returns:
        Names of the distributions; empty if nothing was missing.
    """
    if is_on_this_machine(spark.sparkContext):
        ensure_python_worker(spark)
        return ()
    context = spark.sparkContext
    found = ask_executors(context, _ALL)
    if not found.missing:
        return ()
    if found.others:
        named = ", ".join(f"{kind} ({place})" for kind, place in sorted(found.others.items()))
        raise UnsupportedFeatureError(
            f"packages of this Python, {python_kind()}, cannot be sent to executors with {named}: install penstock on "
            "the machines of each kind, with the same version of Python everywhere, and set PYSPARK_PYTHON to its path"
        )
    folder = Path(tempfile.mkdtemp(prefix="penstock-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Executors cache archives by name, so a second archive needs another name.
    archive = folder / f"penstock-{uuid.uuid4().hex[:8]}.zip"
    write_archive(archive, found.missing)
    context.addArchive(str(archive))
    # Executors unpack the archive into a directory of its name in the directory that their Python starts in, and this
    # process below that of its Spark files, where Spark plans `format("penstock")`. A zip file on the path, as
    # addPyFile adds it, would not work: Python cannot load native code from it.
    here = Path(SparkFiles.getRootDirectory()) / archive.name
    places = [f"./{archive.name}", str(here), context.environment.get("PYTHONPATH", "")]
    context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    still = ask_executors(context, _ALL).missing
    if still:
        raise UnsupportedFeatureError(
            f"the executors cannot import {', '.join(still)} although they were sent: install penstock on each machine"
        )
    return tuple(_ALL[name] for name in found.missing)


def write_archive(path: Path, modules: Sequence[str]) -> None:
    """Write the packages that have modules into a zip file."""
    # Images that are built reproducibly have files of 1970, which is before the first date of zip files.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL, strict_timestamps=False) as archive:
        for module in modules:
            for source, name in _files_of(module):
                archive.write(source, name)


def _files_of(module: str) -> Iterator[tuple[Path, str]]:
    if module == "penstock":
        # From its directory: the metadata of an editable installation lists no sources.
        root = Path(__file__).parents[2]
        for package in ("penstock", "pyspark_penstock"):
            yield from ((file, str(file.relative_to(root))) for file in (root / package).rglob("*.py"))
        return
    for file in metadata.distribution(_ALL[module]).files or ():
        # Scripts are outside of the packages.
        is_part = ".." not in file.parts and not _LEFT_OUT.intersection(file.parts[:-1])
        source = Path(str(file.locate()))
        # Slim images lack some of the files that the metadata name.
        if is_part and file.suffix not in _SOURCE_SUFFIXES and source.is_file():
            yield source, str(file)
