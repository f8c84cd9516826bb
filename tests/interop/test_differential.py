"""A few cases of ``make fuzz`` through the reference engines."""

from dataclasses import replace
from pathlib import Path

from tests.interop.engines import Engine
from tests.interop.fuzz_readers import JAVA_TYPES, PYPAIMON_TYPES, EngineReader
from tests.support.differential.encode import decode_case
from tests.support.differential.generate import random_case
from tests.support.differential.others import EXCLUSIONS
from tests.support.differential.run import Readers, run_case

from penstock import Catalog

CORPUS = Path(__file__).parents[1] / "corpus" / "differential"
SEEDS = range(100, 106)


def check(tmp_path: Path, reader: EngineReader) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("fuzz")
    readers = Readers(others=(reader,))
    kept = [replace(decode_case(path.read_text()), name=f"kept{n}") for n, path in enumerate(CORPUS.glob("*.json"))]
    cases = (*map(random_case, SEEDS), *kept)
    assert [finding for case in cases for finding in run_case(catalog, case, readers)] == []
    # It did read, and filters too.
    assert readers.tally[f"{reader.name} read"] > len(cases) // 2
    assert readers.tally[f"{reader.name} filtered"] > 0


def test_java_reads_random_tables_as_we_do(java: Engine, tmp_path: Path) -> None:
    check(tmp_path, EngineReader("java", java, JAVA_TYPES))


def test_pypaimon_reads_random_tables_as_we_do(pypaimon: Engine, tmp_path: Path) -> None:
    check(tmp_path, EngineReader("pypaimon", pypaimon, PYPAIMON_TYPES))


def test_each_exclusion_is_of_an_engine_that_is_asked() -> None:
    assert {each.reader for each in EXCLUSIONS} == {"java", "pypaimon"}
