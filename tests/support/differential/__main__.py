"""Differential fuzzing: random tables through every reader, compared with plain Python (design/0022)."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.interop.engines import JavaPaimon, PyPaimon
from tests.interop.fuzz_readers import JAVA_TYPES, PYPAIMON_TYPES, EngineReader
from tests.spark.filter_trees import Batch, Findings, count_filters, create_sources
from tests.support.differential.case import Read
from tests.support.differential.encode import decode_case, encode_case
from tests.support.differential.generate import random_case
from tests.support.differential.run import Readers, run_case

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.differential.case import Case
    from tests.support.differential.run import Finding

# Conditions on one table: more save the creation of tables, fewer show more tables.
_TREES: Final = 64
_READERS: Final = ("arrow", "spark", "catalog", "pypaimon", "java")
# Of the session, so that a read of a few rows takes little more than its analysis and planning.
_SETTINGS: Final = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Xmn512m -XX:MetaspaceSize=512m",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class _Outcome(NamedTuple):
    """What one case found, and its numbers of reads and of skipped reads."""

    case: Case
    found: list[Finding]
    tally: Counter[str]


def main() -> int:
    """Run cases, print differences, and return 1 if there are any."""
    given, names = _arguments()
    if given.trees:
        return _compare_trees(given)
    findings = cases = reads = 0
    tally: Counter[str] = Counter()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-fuzz-"))
        catalog = penstock.Catalog(directory)
        catalog.create_database("fuzz")
        readers = _readers(stack, names, catalog, compiles=given.compiled)
        started = time.monotonic()
        for case, found, of_case in _outcomes(catalog, _cases(given), readers, given.threads):
            cases += 1
            reads += sum(isinstance(step, Read) for step in case.steps)
            findings += len(found)
            tally += of_case
            for finding in found:
                sys.stdout.write(f"{finding}\n")
                sys.stdout.flush()
            if found and given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{case.name}.json").write_text(encode_case(case))
            if given.resume:
                given.resume.write_text(f"{int(case.name.removeprefix('t')) + 1}\n")
            if time.monotonic() - started > given.seconds:
                break
        seconds = time.monotonic() - started
    for what, count in sorted(tally.items()):
        sys.stdout.write(f"{what}: {count}\n")
    sys.stdout.write(f"{cases} cases with {reads} reads, {findings} findings, {seconds:.0f} s\n")
    return 1 if findings else 0


def _compare_trees(given: argparse.Namespace) -> int:
    """Compare random conditions with Spark's own Parquet tables; a batch for each seed."""
    findings = Findings()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-fuzz-")))
        catalog = penstock.Catalog(str(folder / "warehouse"))
        catalog.create_database("fuzz")
        session = _session(stack, compiles=given.compiled)
        penstock.attach(session, catalog)
        create_sources(session, folder)
        stack.enter_context(count_filters(findings))
        pool = stack.enter_context(ThreadPoolExecutor(given.threads))

        def compare(seed: int) -> None:
            batch = Batch(session, catalog, folder, seed)
            batch.run(_TREES, findings, format_every=given.format_every, change_every=given.change_every)
            batch.drop()

        started, shown, seed = time.monotonic(), 0, given.seed
        while (seed - given.seed) * _TREES < given.trees and time.monotonic() - started < given.seconds:
            tuple(pool.map(compare, range(seed, seed + given.threads)))
            for text in findings.texts[shown:]:
                sys.stdout.write(f"{time.monotonic() - started:.0f} s, {text}\n")
                sys.stdout.flush()
            shown, seed = len(findings.texts), seed + given.threads
        seconds = time.monotonic() - started
    for what, count in sorted(findings.tally.items()):
        sys.stdout.write(f"{what}: {count}\n")
    trees = (seed - given.seed) * _TREES
    sys.stdout.write(f"seeds {given.seed} to {seed - 1}: {trees} conditions, {shown} findings, {seconds:.0f} s\n")
    return 1 if shown else 0


def _outcomes(catalog: penstock.Catalog, cases: Iterable[Case], readers: Readers, threads: int) -> Iterator[_Outcome]:
    """Run cases, some of them at the same time; yield their outcomes in the order of the cases."""
    with ThreadPoolExecutor(threads) as pool:
        running = deque[Any]()
        for case in cases:
            running.append(pool.submit(partial(_outcome, catalog, case, readers)))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _outcome(catalog: penstock.Catalog, case: Case, readers: Readers) -> _Outcome:
    own = replace(readers, tally=Counter())
    found = run_case(catalog, case, own)
    for suffix in ("", "_from", "_to"):
        shutil.rmtree(Path(catalog.warehouse) / "fuzz.db" / f"{case.name}{suffix}", ignore_errors=True)
    return _Outcome(case, found, own.tally)


def _arguments() -> tuple[argparse.Namespace, set[str]]:
    """Return the arguments of the call, and the names of the readers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--conditions", type=int, help="by which each case reads, besides the read of all rows")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others count up from it")
    parser.add_argument("--readers", default="arrow", help=f"of {','.join(_READERS)}; arrow always reads")
    parser.add_argument("--spark", action="store_true", help="the same as a reader spark")
    parser.add_argument("--compiled", action="store_true", help="Spark compiles queries, and does not interpret them")
    parser.add_argument("--threads", type=int, default=1, help="cases that run at the same time, in one session")
    parser.add_argument("--keep", type=Path, help="directory for the cases that differ")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after the case that passes this time")
    parser.add_argument("--resume", type=Path, help="file with the next seed: read at the start, written on the way")
    parser.add_argument("--trees", type=int, default=0, help="random conditions for Spark, instead of cases")
    parser.add_argument("--format-every", type=int, default=8, help="of so many trees, one is for format")
    parser.add_argument("--change-every", type=int, default=16, help="of so many trees, one is for DELETE and UPDATE")
    parser.add_argument("--replay", type=Path, nargs="*", help="kept cases to run instead of random ones")
    given = parser.parse_args()
    names = {*given.readers.split(","), *(("spark",) if given.spark else ())}
    if not names <= set(_READERS):
        parser.error(f"--readers: expected some of {','.join(_READERS)}")
    return given, names


def _cases(given: argparse.Namespace) -> Iterator[Case]:
    if given.replay is None:
        done = int(given.resume.read_text()) if given.resume and given.resume.exists() else given.seed
        more = {} if given.conditions is None else {"conditions": given.conditions}
        yield from (random_case(seed, **more) for seed in range(done, given.seed + given.cases))
        return
    for path in given.replay:
        yield decode_case(path.read_text())


def _readers(stack: ExitStack, names: set[str], catalog: penstock.Catalog, *, compiles: bool) -> Readers:
    others = []
    if "pypaimon" in names:
        others.append(EngineReader("pypaimon", stack.enter_context(PyPaimon()), PYPAIMON_TYPES))
    if "java" in names:
        others.append(EngineReader("java", stack.enter_context(JavaPaimon()), JAVA_TYPES))
    session = _session(stack, compiles=compiles) if names & {"spark", "catalog"} else None
    if session is not None and "catalog" in names:
        penstock.attach(session, catalog)
    return Readers(
        spark=session if "spark" in names else None,
        catalog=session if "catalog" in names else None,
        others=tuple(others),
    )


def _session(stack: ExitStack, *, compiles: bool) -> Any:
    from pyspark.sql import SparkSession
    from tests.spark.forked_python import forked_python
    from tests.spark.py4j_names import keep_names

    from penstock.spark.data_source.source import PenstockDataSource

    keep_names()
    # Spark's Python processes are forks of one that has imported everything.
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-fuzz-python-")))
    python = stack.enter_context(forked_python(folder))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    # For code that runs in one small query, compilation does not pay off.
    spark = builder.config("spark.sql.codegen.factoryMode", "FALLBACK" if compiles else "NO_CODEGEN").getOrCreate()
    spark.dataSource.register(PenstockDataSource)
    # Each scan says why Python workers read files that Spark does not read.
    logging.getLogger("penstock").setLevel(logging.ERROR)
    spark.sparkContext.setLogLevel("OFF")
    stack.callback(spark.stop)
    return spark


if __name__ == "__main__":
    sys.exit(main())
