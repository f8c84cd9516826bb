"""Cases in this process, and the child process that runs them one by one, telling of each before and after."""

from __future__ import annotations

import json
import resource
import sys
import traceback
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Final

from penstock.errors import TableStoreError
from penstock.testing.fuzz.decoders import load_decoders
from penstock.testing.fuzz.mutations import mutate

if TYPE_CHECKING:
    from penstock.testing.fuzz.decoders import Decoder

MEMORY_BYTES: Final = 4 << 30


class Outcome(StrEnum):
    """What became of a damaged file."""

    SAME = "same"
    CHANGED = "changed"
    REFUSED = "refused"
    RAW = "raw"
    HANG = "hang"
    CRASH = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Outcome of one case; ``detail`` says which error it was."""

    outcome: Outcome
    detail: str = ""


def damaged(decoder: Decoder, number: int, seed: int) -> bytes:
    """Return the bytes of a case, which depend on nothing but the arguments and the valid file."""
    return mutate(decoder.valid, Random(f"{seed}/{decoder.name}/{number}"))  # noqa: S311 - to be repeated, not to be secret


def judge(decoder: Decoder, data: bytes, expected: object) -> Verdict:
    """Decode a damaged file.

    Args:
        expected: what the valid one decodes to.
    """
    try:
        found = decoder.decode(data)
        same = found == expected
    except TableStoreError as error:
        return Verdict(outcome=Outcome.REFUSED, detail=type(error).__name__)
    # Whatever comes through is a finding: to name it is what this is for.
    except BaseException as error:  # noqa: BLE001 - see above
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict(outcome=Outcome.RAW, detail=f"{type(error).__name__} at {place.name}:{place.lineno}: {error}")
    return Verdict(outcome=Outcome.SAME if same else Outcome.CHANGED)


def main(name: str, first: int, count: int, seed: int) -> None:
    """Run cases of one decoder; prints a line before and after each."""
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
