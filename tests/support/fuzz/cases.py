"""Run fuzz cases one by one in a child process, which prints a line before and after each."""

from __future__ import annotations

import json
import resource
import sys
import traceback
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Final

from tests.support.fuzz.decoders import load_decoders
from tests.support.fuzz.mutations import mutate

from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from tests.support.fuzz.decoders import Decoder

MEMORY_BYTES: Final = 4 << 30


class Outcome(StrEnum):
    """Outcome of decoding a damaged file."""

    SAME = "same"
    CHANGED = "changed"
    REFUSED = "refused"
    RAW = "raw"
    HANG = "hang"
    CRASH = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Outcome of one case; ``detail`` is the error."""

    outcome: Outcome
    detail: str = ""


def damaged(decoder: Decoder, number: int, seed: int) -> bytes:
    """Return the bytes of a case, which depend only on the arguments and the valid file."""
    return mutate(decoder.valid, Random(f"{seed}/{decoder.name}/{number}"))  # noqa: S311 - must be repeatable, not secret


def judge(decoder: Decoder, data: bytes, expected: object) -> Verdict:
    """Decode a damaged file.

    Args:
        expected: decoded value of the valid file.
    """
    try:
        found = decoder.decode(data)
        same = found == expected
    except TableStoreError as error:
        return Verdict(outcome=Outcome.REFUSED, detail=type(error).__name__)
    # Any other exception is a finding, which is reported by its name.
    except BaseException as error:  # noqa: BLE001 - see above
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict(outcome=Outcome.RAW, detail=f"{type(error).__name__} at {place.name}:{place.lineno}: {error}")
    return Verdict(outcome=Outcome.SAME if same else Outcome.CHANGED)


def main(name: str, first: int, count: int, seed: int) -> None:
    """Run cases of one decoder; print a line before and after each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    decoder = load_decoders()[name]
    expected = decoder.decode(decoder.valid)
    for number in range(first, first + count):
        _tell(case=number)
        data = damaged(decoder, number, seed)
        verdict = judge(decoder, data, expected)
        _tell(case=number, outcome=verdict.outcome, detail=verdict.detail, data=data.hex() * (verdict.outcome == "raw"))
    _tell(peak_kb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _tell(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
