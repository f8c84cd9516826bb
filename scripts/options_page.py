"""Write docs/options.md from the options themselves."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from penstock.options import describe_options

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
_INTRODUCTION = """# Options

Made by `scripts/options_page.py` from the options themselves. The keys are Paimon's, letter by letter; those that begin
with `penstock.` are our own. "honoured" says whether Penstock acts on the option today: the others are known, kept with
the table and left to other engines. Options are stored with a table (`create_table(options=...)`, `SetOption`), or
given for one use (`with_options`, `.option(...)` in Spark); those of the use win. A key that nobody knows warns with
the nearest one.
"""


def render_page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for group, rows in groupby(describe_options(), key=lambda row: row.group):
        parts.append(f"\n## {group}\n\n| key | type | default | honoured | meaning |\n|---|---|---|---|---|\n")
        for row in rows:
            default = "" if not row.default else f"`{row.default}`"
            meaning = row.meaning.replace("|", "\\|")
            parts.append(f"| `{row.key}` | {row.type} | {default} | {'yes' if row.honoured else ''} | {meaning} |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
