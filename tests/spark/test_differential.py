"""Cases that ``make fuzz`` once found something by, with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.differential.encode import decode_case
from tests.support.differential.run import Readers, run_case

import penstock
from penstock import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORPUS = Path(__file__).parents[1] / "corpus" / "differential"


@pytest.mark.parametrize(
    "name",
    [
        "back-quote-in-orc",
        "null-below-a-number-beyond-bigint",
        "zeros-of-orc-lose-their-sign",
        "nan-left-out-by-footers",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "dates-of-october-1582",
                "null-in-in-of-bytes",
                "null-in-in-of-orc",
                "dates-before-1582-in-orc",
            )
        ),
    ],
)
def test_kept_tables_read_alike_through_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("fuzz")
    case = decode_case((CORPUS / f"{name}.json").read_text())
    penstock.attach(spark, catalog)
    readers = Readers(spark=spark, catalog=spark)
    assert run_case(catalog, case, readers) == []
    assert readers.tally["catalog filtered"] > 0
