"""Penstock as a reader beside pypaimon's tests: one location a line on standard input, one JSON answer a line."""

import json
import sys
from pathlib import Path

import penstock
from penstock.errors import TableStoreError

# Alone, and not as a package: pypaimon's interpreter imports this module too.
sys.path.append(str(Path(__file__).parents[1] / "interop"))
from canonical import rows_of, sort_rows


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        answer: dict[str, object]
        try:
            answer = {"rows": sort_rows(rows_of(penstock.Table.at(line.rstrip("\n")).to_arrow()))}
        except TableStoreError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        except Exception as error:  # noqa: BLE001 - a raw error is a finding too
            answer = {"error": f"raw {type(error).__name__}", "message": str(error)}
        sys.stdout.write(json.dumps(answer, ensure_ascii=True) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
