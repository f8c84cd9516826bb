"""The scalar hash and both vectorised ones against values of Java 1.4.2."""

import numpy as np
import pytest

from penstock.format.row.murmur import hash_bytes, hash_words
from penstock.format.row.row import encode_row
from penstock.format.types.data_types import BIGINT, INT

BIGINT_HASHES = [
    -300363099,
    1465514398,
    1340390384,
    -771300025,
    1447522506,
    260196596,
    842153448,
    -348168691,
    965062536,
    1417041215,
    124495984,
    -1585648237,
]


def test_bigint_keys_hash_as_in_the_reference() -> None:
    assert [hash_bytes(encode_row((key,), (BIGINT,))[4:]) for key in range(12)] == BIGINT_HASHES


def test_two_int_keys_hash_as_in_the_reference() -> None:
    assert hash_bytes(encode_row((1, 2), (INT, INT))[4:]) == 1909828896


def test_rows_of_equal_width_hash_together() -> None:
    words = np.zeros((12, 4), dtype=np.uint32)
    words[:, 2] = np.arange(12)
    hashes = hash_words(words)
    assert hashes.dtype == np.int32
    assert hashes.tolist() == BIGINT_HASHES
    assert words[:, 2].tolist() == list(range(12))


def test_no_rows_give_no_hashes() -> None:
    assert hash_words(np.zeros((0, 4), dtype=np.uint32)).tolist() == []


def test_half_words_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 4"):
        hash_bytes(b"abc")
