"""Write the table of the versions of Spark in docs/spark.md from the facts of the code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from penstock.spark.versions.facts import FEATURES, TESTED, Feature, Version, text_of

PAGE: Final = Path(__file__).parents[1] / "docs" / "spark.md"
_BEGIN: Final = "<!-- scripts/versions_table.py writes this table from the code. -->\n"
_END: Final = "<!-- end of the table -->\n"


def render_table() -> str:
    """Return the table: a row for each feature that some version lacks, a column for each version."""
    rows = [
        f"| | {' | '.join(map(text_of, TESTED))} | in older versions |",
        f"|---|{'---|' * len(TESTED)}---|",
        *(
            f"| {each.what} | {' | '.join(_outcome(each, version) for version in TESTED)} | {each.instead} |"
            for each in FEATURES
        ),
    ]
    return "\n".join(rows) + "\n"


def _outcome(feature: Feature, version: Version) -> str:
    return "yes" if feature.since <= version else feature.refusal


def render_page() -> str:
    """Return the page with the table of today."""
    head, begin, rest = PAGE.read_text("utf-8").partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    return f"{head}{begin}\n{render_table()}\n{end}{tail}"


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
