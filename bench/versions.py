"""Each version of Spark that works, next to its own Parquet: one process and one environment for each."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final

import pyspark
from scripts.test_matrix import ROOT, SPARKS, UnavailableError, make_spark_environment
from tests.interop.engines import digest

from bench.data import make_orders
from bench.result import OURS, PARQUET, Check, Section, faster_than, find_series
from bench.settings import DATA
from bench.spark_job import PeerSet, SparkFailedError, run_spark
from bench.spark_scan import WORK as SCAN
from bench.spark_versions import APPEND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measure import Series
    from bench.settings import Settings

WORKS: Final = ((APPEND, f"{OURS} bucket=-1"), (APPEND, f"{OURS} bucket=8"), (SCAN, f"{OURS} bucket=-1"))
LEAST_RATIO: Final = 0.95
"""Of the ratio to Parquet on any version, to that on the version of the lock file."""
_BASE: Final = pyspark.__version__


def measure(settings: Settings) -> Section:
    """Append a quarter of the seven-column table and sum two of its columns with each version."""
    path = str(make_orders(settings.rows // 4))
    series: list[Series] = []
    notes = []
    for version in sorted((*SPARKS, _BASE), key=lambda text: [int(part) for part in text.split(".")]):
        try:
            peer = PeerSet(name=session_of(version), python=sys.executable if version == _BASE else _python(version))
            series += run_spark("versions", peer, settings, path=path).series
        except (SparkFailedError, UnavailableError) as error:
            notes.append(f"{session_of(version)} is left out: {error}")
    checks = tuple(check for work, ours in WORKS for check in compare(work, ours, series, session_of(_BASE)))
    return Section(name="versions", title="Versions of Spark", series=tuple(series), checks=checks, notes=tuple(notes))


def compare(work: str, ours: str, series: Sequence[Series], base: str) -> list[Check]:
    """Return the ratio to Parquet in each session, and how it compares to that in the session ``base``."""
    ratios = {}
    for session in dict.fromkeys(each.session for each in series):
        mine, theirs = (find_series(series, work, name, session) for name in (ours, PARQUET))
        if mine and theirs:
            ratios[session] = faster_than(mine, theirs)
    checks = list(ratios.values())
    if base in ratios:
        for session, ratio in ratios.items():
            if session != base:
                values = tuple(value / ratios[base].value for value in ratio.values)
                name = f"{work}: {ours} on {session}, ratio to Parquet next to that on {base}"
                checks.append(Check(name=name, values=values, unit="x", at_least=LEAST_RATIO))
    return checks


def session_of(version: str) -> str:
    """Return what a version's session is called."""
    return f"Spark {version}"


def _python(version: str) -> str:
    """Return the interpreter of the environment with a version; the first call makes it.

    Raises:
        UnavailableError: a package cannot be had.
    """
    folder = DATA / f"spark-{version}-{digest((ROOT / 'uv.lock').read_bytes())}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make_spark_environment(version, folder, "--editable", str(ROOT))
        (folder / "complete").touch()
    return str(folder / "environment" / "bin" / "python")
