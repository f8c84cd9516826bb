"""A few cases of ``make fuzz``, and those that once found something, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.differential.encode import decode_case, encode_case
from tests.support.differential.generate import random_case
from tests.support.differential.run import run_case

from penstock import Catalog

CORPUS = Path(__file__).parents[1] / "corpus" / "differential"


def test_random_tables_read_as_plain_python_has_them(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("fuzz")
    kept = [replace(decode_case(path.read_text()), name=f"kept{n}") for n, path in enumerate(CORPUS.glob("*.json"))]
    assert len(kept) >= 11
    assert [finding for case in (*map(random_case, range(8)), *kept) for finding in run_case(catalog, case)] == []


def test_a_case_is_kept_as_text() -> None:
    for seed in range(100):
        case = random_case(seed)
        # By their reprs, since NaN is not NaN.
        assert repr(decode_case(encode_case(case))) == repr(case)
        assert repr(random_case(seed)) == repr(case)
