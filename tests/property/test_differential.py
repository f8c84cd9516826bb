"""A few cases of ``make fuzz``, and those that once found something, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.differential.case import CHANGES, Append, FuzzLeaf, Read, leaves_of
from tests.support.differential.encode import decode_case, encode_case
from tests.support.differential.generate import random_case
from tests.support.differential.kinds import KINDS
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


def test_random_cases_have_partitions_of_all_types_and_reads_of_all_kinds() -> None:
    cases = [random_case(seed) for seed in range(400)]
    types = {column.sql for case in cases for column in case.columns if column.name in case.partition_by}
    assert types == {kind.sql for kind in KINDS if not kind.sql.startswith(("ARRAY", "MAP", "ROW"))}
    steps = [step for case in cases for step in case.steps]
    assert {type(step) for step in steps} >= set(CHANGES)
    assert {step.by_spark for step in steps if isinstance(step, Append)} == {True, False}
    reads = [step for step in steps if isinstance(step, Read) and step.until is not None]
    assert {(step.by, step.since is None, step.leaf is None) for step in reads} == {
        (by, *flags)
        for by in ("snapshot", "tag", "time")
        for flags in ((True, True), (True, False), (False, True), (False, False))
    }
    leaves = [leaf for step in steps if isinstance(step, Read) and step.leaf for leaf in leaves_of(step.leaf)]
    assert any(None in leaf.values for leaf in leaves if leaf.operator == "NOT IN")
    patterns = [leaf for leaf in leaves if leaf.operator == "LIKE"]
    assert any("\\" in leaf.texts[0] and leaf.beginning for leaf in patterns)
    assert any(not leaf.is_filter for leaf in patterns)


def test_a_pattern_says_what_texts_begin_with() -> None:
    leaves = [
        FuzzLeaf(column=0, operator="LIKE", values=(each,)) for each in (r"a\%\\.*", "a", "a.b.*", r"\..*", r"\\.")
    ]
    assert [leaf.beginning for leaf in leaves] == ["a%\\", None, None, ".", None]
    assert [leaf.is_filter for leaf in leaves] == [True, True, False, True, False]
