"""Limits of metadata: stored options lower them, those of a use set them."""

import pytest

from penstock.errors import InvalidOptionError
from penstock.format.avro.values import DEFAULT_LIMITS, AvroLimits
from penstock.options import metadata_limits

BLOCK = "penstock.metadata.max-block-size"
FILE = "penstock.metadata.max-file-size"
RECORDS = "penstock.metadata.max-records"


def test_defaults_are_those_of_the_decoders() -> None:
    assert metadata_limits({}, {}) == DEFAULT_LIMITS


def test_stored_options_lower_limits_and_do_not_raise_them() -> None:
    low = {BLOCK: "1 mb", FILE: "2 mb", RECORDS: "3"}
    assert metadata_limits(low, {}) == AvroLimits(block_bytes=1 << 20, file_bytes=2 << 20, records=3)
    assert metadata_limits({BLOCK: "1 tb", FILE: "1 tb", RECORDS: "1000000000"}, {}) == DEFAULT_LIMITS


def test_options_of_a_use_win() -> None:
    high = {BLOCK: "1 gb", FILE: "2 gb", RECORDS: "5000000"}
    expected = AvroLimits(block_bytes=1 << 30, file_bytes=2 << 30, records=5_000_000)
    assert metadata_limits({BLOCK: "1 mb"}, high) == expected


def test_a_limit_is_a_size() -> None:
    with pytest.raises(InvalidOptionError, match=r"table a\.b: option 'penstock.metadata.max-block-size' = 'big'"):
        metadata_limits({BLOCK: "big"}, {}, table="a.b")
