"""Feed randomly damaged files to every decoder, and print the outcomes."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.support.fuzz.cases import Outcome
from tests.support.fuzz.decoders import load_decoders
from tests.support.fuzz.run import fuzz

_BAD = (Outcome.RAW, Outcome.HANG, Outcome.CRASH)


def main() -> int:
    """Run; the exit code is 1 if a decoder hung, crashed or raised an error of another library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=400, help="of each decoder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--decoder", action="append", help="only this one; may be given again")
    parser.add_argument("--keep", type=Path, help="directory for the files of findings")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    sys.stdout.write("decoder | " + " | ".join(Outcome) + " | seconds | slowest case | peak MB\n")
    sys.stdout.flush()
    for name in options.decoder or load_decoders():
        result = fuzz(name, options.cases, options.seed)
        total += result.outcomes
        counts = " | ".join(str(result.outcomes[outcome]) for outcome in Outcome)
        sys.stdout.write(
            f"{name} | {counts} | {result.seconds:.1f} | {result.slowest_seconds:.2f} s | {result.peak_kb // 1024}\n"
        )
        for case, outcome, detail, data in result.findings:
            sys.stdout.write(f"    case {case}: {outcome} {detail}\n")
            if options.keep and data:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name}-{options.seed}-{case}").write_bytes(bytes.fromhex(data))
        sys.stdout.flush()
    sys.stdout.write(f"{sum(total.values())} cases: {dict(total)}\n")
    return 1 if any(total[outcome] for outcome in _BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
