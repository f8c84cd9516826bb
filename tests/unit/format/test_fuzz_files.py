"""Files damaged at random, a few hundred of them: each is read, or refused with an error of ours."""

from pathlib import Path

import pytest
from tests.support.fuzz.cases import Outcome, damaged, judge
from tests.support.fuzz.decoders import Decoder, load_decoders

CASES = 14
CORPUS = Path(__file__).parents[2] / "corpus"
# What each file of the corpus was found in: a file's name starts with its decoder's.
FOUND = sorted(path for path in CORPUS.iterdir() if "@" in path.name)


@pytest.fixture(scope="module")
def decoders() -> dict[str, Decoder]:
    return load_decoders()


def test_every_decoder_reads_or_refuses_what_was_damaged(decoders: dict[str, Decoder]) -> None:
    raw = []
    for decoder in decoders.values():
        expected = decoder.decode(decoder.valid)
        for number in range(CASES):
            verdict = judge(decoder, damaged(decoder, number, seed=2026), expected)
            if verdict.outcome is Outcome.RAW:
                raw.append((decoder.name, number, verdict.detail))
    assert raw == []


def test_a_valid_file_is_the_same_every_time(decoders: dict[str, Decoder]) -> None:
    for decoder in decoders.values():
        assert judge(decoder, decoder.valid, decoder.decode(decoder.valid)).outcome is Outcome.SAME


def test_the_valid_lease_is_not_taken_for_a_damaged_one(decoders: dict[str, Decoder]) -> None:
    assert "token='a'" in repr(decoders["lease"].decode(decoders["lease"].valid))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_was_found_before_stays_mended(path: Path, decoders: dict[str, Decoder]) -> None:
    decoder = decoders[path.name.partition("@")[0]]
    assert judge(decoder, path.read_bytes(), None).outcome in (Outcome.REFUSED, Outcome.CHANGED)
