"""Indexes are encoded as Java Paimon encodes them; ``tests/interop/test_file_indexes.py`` compares all types."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock.format.file_index import decode_index_places, may_hold, part_of, xxh64
from penstock.format.file_index_writer import (
    BloomFilter,
    Texts,
    describe_numbers,
    encode_bitmap_index,
    encode_file_index,
    hash_integers,
    hash_texts,
)
from penstock.format.types.data_types import TypeRoot
from penstock.format.types.text import parse_sql_type

GOLDEN = Path(__file__).parents[2] / "golden" / "data" / "warehouse"
BIGINT = parse_sql_type("BIGINT")


def texts(values: list[bytes]) -> Texts:
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return Texts(ends, np.frombuffer(b"".join(values), np.uint8))


def test_a_filter_of_java_has_the_same_bytes() -> None:
    table = penstock.Catalog(GOLDEN).load_table("java142.file_index_beside")
    options = table._ref.options
    rows = table.to_arrow(["b"], filter="id < 40").column("b").drop_null().to_pylist()
    [beside, *_] = sorted(Path(table.location.removeprefix("file://")).rglob("*-0.parquet.index"))
    found = [path.read_bytes() for path in sorted(beside.parent.glob("*.index"))]
    built = BloomFilter(
        int(options.get("file-index.bloom-filter.b.items", 1_000_000)),
        float(options.get("file-index.bloom-filter.b.fpp", 0.1)),
    )
    built.add(hash_texts(texts([row.encode() for row in rows])))
    theirs = [part_of(data, *decode_index_places(data)["b"]["bloom-filter"]) for data in found]
    assert built.encode() in theirs


def test_texts_of_all_lengths_have_the_hash_that_readers_compute() -> None:
    source = random.Random(1)  # noqa: S311 - not for secrets
    values = [source.randbytes(size) for size in range(100) for _ in range(source.choice([1, 12]))]
    values += [source.randbytes(size) for size in (5_000, 70_000, 65_536)]
    source.shuffle(values)
    assert hash_texts(texts(values)).tolist() == [xxh64(value) for value in values]
    assert len(hash_texts(texts([]))) == 0


def test_a_filter_finds_its_numbers_and_few_others() -> None:
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1_000)
    built = BloomFilter(1_000, 0.05)
    built.add(hash_integers(values))
    data = {"bloom-filter": built.encode()}
    assert all(may_hold(data, BIGINT, {int(value)}) for value in values)
    assert 0.02 < sum(may_hold(data, BIGINT, {value}) for value in range(2_000)) / 2_000 < 0.08


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("block_bytes", [1, 64, 16_384])
def test_a_bitmap_finds_its_values_and_no_others(version: int, block_bytes: int) -> None:
    values = np.arange(-50, 50) * 7
    codes = np.array([*range(100), *range(0, 100, 2), -1], np.int32)
    data = encode_bitmap_index(
        codes, describe_numbers(values, TypeRoot.BIGINT), version=version, block_bytes=block_bytes
    )
    found = [value for value in range(-400, 400) if may_hold({"bitmap": data}, BIGINT, {value})]
    assert found == values.tolist()
    assert may_hold({"bitmap": data}, BIGINT, {None})
    without = encode_bitmap_index(
        codes[:-1], describe_numbers(values, TypeRoot.BIGINT), version=version, block_bytes=block_bytes
    )
    assert not may_hold({"bitmap": without}, BIGINT, {None})


@pytest.mark.parametrize("name", ["k", "ключ", "a\0b", "\U0001f600"])
def test_columns_of_any_name_are_found(name: str) -> None:
    data = encode_file_index({("bitmap", name): b"one", ("bloom-filter", name): b"two", ("bitmap", "z"): b""})
    places = decode_index_places(data)
    assert {kind: part_of(data, *place) for kind, place in places[name].items()} == {
        "bitmap": b"one",
        "bloom-filter": b"two",
    }
