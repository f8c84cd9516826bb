import itertools
from datetime import date

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.errors import InvalidFilterError, InvalidOptionError, UnsupportedFeatureError
from penstock.options import check_reads

NUMBERS = itertools.count()


@pytest.fixture
def table() -> Table:
    """Rows 1 to 4: partitions 2026-01-09/9, 2026-01-09/10, 2026-01-10/null, and 2026-01-08/11 committed last."""
    catalog = Catalog(f"memory://partitions-{next(NUMBERS)}")
    catalog.create_database("d")
    made = catalog.create_table("d.t", "a INT, dt DATE, hr INT", partition_by=["dt", "hr"])
    for number, (day, hour) in enumerate([(9, 9), (9, 10), (10, None), (8, 11)], 1):
        rows = {"a": [number], "dt": [date(2026, 1, day)], "hr": [hour]}
        made.append(pa.Table.from_pydict(rows, schema=made.arrow_schema))
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dt=2026-01-09,hr=10", [2]),
        ("dt=2026-01-09/hr=9 ; dt=2026-01-08,hr=11;", [1, 4]),
        ("dt=2026-01-10,hr=__DEFAULT_PARTITION__", [3]),
        ("dt=2030-01-01,hr=1", []),
        ("max_pt()", [3]),
        ("MAX_TWO_PT()", [2, 3]),
    ],
)
def test_a_batch_read_takes_the_partitions_that_are_named(table: Table, text: str, expected: list[int]) -> None:
    options = {"scan.partitions": text}
    assert sorted(table.to_arrow(options=options)["a"].to_pylist()) == expected
    assert table.to_arrow(options=options, filter="a > 2")["a"].to_pylist() == [a for a in expected if a > 2]
    changes = {**options, "incremental-between": "1,4"}
    assert sorted(table.to_arrow(options=changes)["a"].to_pylist()) == [a for a in expected if a > 1]


def test_the_greatest_partition_is_that_of_the_snapshot_that_is_read(table: Table) -> None:
    assert table.to_arrow(options={"scan.partitions": "max_pt()"}, snapshot_id=2)["a"].to_pylist() == [2]
    table.truncate()
    assert table.to_arrow(options={"scan.partitions": "max_pt()"}).num_rows == 0


def test_the_greatest_of_numbers_is_found_whatever_its_text_is_and_nan_is_greater() -> None:
    catalog = Catalog(f"memory://partitions-{next(NUMBERS)}")
    catalog.create_database("d")
    for kind, numbers in (("FLOAT", [1.5, 243101205528576.0]), ("DOUBLE", [1.5, 9.112305567888109e18])):
        made = catalog.create_table(f"d.{kind}", f"a INT, p {kind}", partition_by="p")
        made.append([{"a": place, "p": number} for place, number in enumerate(numbers)])
        assert made.to_arrow(options={"scan.partitions": "max_pt()"})["a"].to_pylist() == [1]
        made.append([{"a": 2, "p": float("nan")}])
        assert made.to_arrow(options={"scan.partitions": "max_pt()"})["a"].to_pylist() == [2]
        made.drop_partitions(*made.partitions()["partition"].to_pylist())
        assert made.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dt=2026-01-09", r"expected partitions such as 'dt=\.\.\.,hr=\.\.\.'"),
        ("dt=max_pt(),hr=max_pt()", "hr.*max_pt"),
        ("dt=2026-01-09,hr=9,x=1", "expected partitions such as"),
        ("2026-01-09", "expected column=value"),
        (" ; ", "names no partition"),
    ],
)
def test_what_names_no_partition_is_refused(table: Table, text: str, words: str) -> None:
    with pytest.raises((InvalidOptionError, InvalidFilterError), match=words):
        table.to_arrow(options={"scan.partitions": text})


def test_only_batch_reads_of_partitioned_tables_have_it(table: Table) -> None:
    options = {"scan.partitions": "max_pt()"}
    for use in (
        table.with_options,
        lambda given: table.follow(options=given),
        lambda given: table.compact(options=given),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"'scan\.partitions'"):
            use(options)
    with pytest.raises(UnsupportedFeatureError, match=r"'scan\.partitions'"):
        check_reads(options, "d.t")
    catalog = Catalog(f"memory://partitions-{next(NUMBERS)}")
    catalog.create_database("d")
    with pytest.raises(InvalidOptionError, match="has no partitions; leave it out"):
        catalog.create_table("d.t", "a INT").to_arrow(options=options)
