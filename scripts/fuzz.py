"""Differential fuzzing: random tables through every reader, compared with plain Python (design/0022)."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.interop.engines import JavaPaimon, PyPaimon
from tests.interop.fuzz_readers import JAVA_TYPES, PYPAIMON_TYPES, EngineReader

import penstock
from penstock.testing.differential.case import Read
from penstock.testing.differential.encode import decode_case, encode_case
from penstock.testing.differential.generate import random_case
from penstock.testing.differential.run import Readers, run_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.testing.differential.case import Case

_READERS: Final = ("arrow", "spark", "catalog", "pypaimon", "java")


def main() -> int:
    """Run cases, print differences, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--conditions", type=int, help="by which each case reads, besides the read of all rows")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others count up from it")
    parser.add_argument("--readers", default="arrow", help=f"of {','.join(_READERS)}; arrow always reads")
    parser.add_argument("--spark", action="store_true", help="the same as a reader spark")
    parser.add_argument("--keep", type=Path, help="directory for the cases that differ")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after the case that passes this time")
    parser.add_argument("--resume", type=Path, help="file with the next seed: read at the start, written on the way")
    parser.add_argument("--replay", type=Path, nargs="*", help="kept cases to run instead of random ones")
    given = parser.parse_args()
    names = {*given.readers.split(","), *(("spark",) if given.spark else ())}
    if not names <= set(_READERS):
        parser.error(f"--readers: expected some of {','.join(_READERS)}")
    findings = cases = reads = 0
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-fuzz-"))
        catalog = penstock.Catalog(directory)
        catalog.create_database("fuzz")
        readers = _readers(stack, names, catalog)
        started = time.monotonic()
        for case in _cases(given):
            cases += 1
            reads += sum(isinstance(step, Read) for step in case.steps)
            found = run_case(catalog, case, readers)
            findings += len(found)
            for finding in found:
                sys.stdout.write(f"{finding}\n")
                sys.stdout.flush()
            if found and given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{case.name}.json").write_text(encode_case(case))
            for suffix in ("", "_from", "_to"):
                shutil.rmtree(Path(directory) / "fuzz.db" / f"{case.name}{suffix}", ignore_errors=True)
            if given.resume:
                given.resume.write_text(f"{int(case.name.removeprefix('t')) + 1}\n")
            if time.monotonic() - started > given.seconds:
                break
        seconds = time.monotonic() - started
    for what, count in sorted(readers.tally.items()):
        sys.stdout.write(f"{what}: {count}\n")
    sys.stdout.write(f"{cases} cases with {reads} reads, {findings} findings, {seconds:.0f} s\n")
    return 1 if findings else 0


def _cases(given: argparse.Namespace) -> Iterator[Case]:
    if given.replay is None:
        done = int(given.resume.read_text()) if given.resume and given.resume.exists() else given.seed
        more = {} if given.conditions is None else {"conditions": given.conditions}
        yield from (random_case(seed, **more) for seed in range(done, given.seed + given.cases))
        return
    for path in given.replay:
        yield decode_case(path.read_text())


def _readers(stack: ExitStack, names: set[str], catalog: penstock.Catalog) -> Readers:
    others = []
    if "pypaimon" in names:
        others.append(EngineReader("pypaimon", stack.enter_context(PyPaimon()), PYPAIMON_TYPES))
    if "java" in names:
        others.append(EngineReader("java", stack.enter_context(JavaPaimon()), JAVA_TYPES))
    session = _session() if names & {"spark", "catalog"} else None
    if "catalog" in names:
        penstock.attach(session, catalog)
    return Readers(
        spark=session if "spark" in names else None,
        catalog=session if "catalog" in names else None,
        others=tuple(others),
    )


def _session() -> Any:  # noqa: ANN401 - pyspark is needed with a reader spark only
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see above

    from penstock.spark.source import PenstockDataSource  # noqa: PLC0415 - see above

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise workers run the python3 on the PATH
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    # For code that runs in one small query, compilation does not pay off.
    builder = builder.config("spark.sql.codegen.wholeStage", "false").config(
        "spark.sql.codegen.factoryMode", "NO_CODEGEN"
    )
    spark = builder.config("spark.sql.session.timeZone", "America/Los_Angeles").getOrCreate()
    spark.dataSource.register(PenstockDataSource)
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    sys.exit(main())
