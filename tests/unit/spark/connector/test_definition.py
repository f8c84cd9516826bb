"""What the clauses of CREATE TABLE become, without Spark."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeatureError
from penstock.spark.connector.definition import options_of


@pytest.mark.parametrize("provider", ["penstock", "paimon", "parquet", "PARQUET"])
def test_the_format_that_spark_adds_is_accepted(provider: str) -> None:
    assert options_of({"provider": provider, "file.format": "orc"}, "d.t") == {"file.format": "orc"}


@pytest.mark.parametrize("provider", ["csv", "orc", "delta"])
def test_another_format_is_refused_with_what_to_write(provider: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as raised:
        options_of({"provider": provider}, "d.t")
    for part in (f"table d.t: USING {provider}: leave it out", "file.format", '.format("penstock")', "saveAsTable"):
        assert part in str(raised.value)
