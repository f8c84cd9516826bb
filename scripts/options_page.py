"""Write docs/options.md from the options themselves."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from penstock.options import Status, describe_options, status_of
from penstock.options.status.foreign import OTHERS, PREFIXES
from penstock.options.status.refused import FOREIGN

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
_INTRODUCTION = """# Options

Made by `scripts/options_page.py` from the options themselves. The keys are Paimon's, letter by letter; those that begin
with `penstock.` are our own. Options are stored with a table (`create_table(options=...)`, `SetOption`), or given for
one use (`with_options`, `.option(...)` in Spark, `/*+ OPTIONS(...) */` in SQL); those of the use win.

The status says what becomes of a key that you give:

| status | |
|---|---|
| honoured | Penstock acts on it |
| ignored | kept with the table for other engines; giving it warns (`OptionWarning`), but for its default value |
| refused | a read or write would do something else than it asks for: `UnsupportedFeatureError` |

A key that nobody knows warns with the nearest one. Keys of Delta Lake and Iceberg that would change what is read or
written are refused, and the error says what is their like here; they stand at the end of this page. Batch
reads take two of them, see [reading](reading.md#time-travel).
"""


def render_page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for group, rows in groupby(describe_options(), key=lambda row: row.group):
        parts.append(f"\n## {group}\n\n| key | type | default | status | meaning |\n|---|---|---|---|---|\n")
        for row in rows:
            default = "" if not row.default else f"`{row.default}`"
            meaning = row.meaning.replace("|", "\\|")
            parts.append(f"| `{row.key}` | {row.type} | {default} | {row.status} | {meaning} |\n")
    parts.append("\n## other keys of Paimon\n\nOf tables with a primary key, of catalogs and of other engines.\n\n")
    parts.append("| status | keys |\n|---|---|\n")
    others = {*OTHERS, *(f"{prefix}*" for prefix in PREFIXES)} - {row.key for row in describe_options()}
    for status in Status:
        keys = sorted(key for key in others if status_of(key) is status)
        parts.append(f"| {status} | {', '.join(f'`{key}`' for key in keys)} |\n")
    parts.append(
        "\n## keys of others that are refused\n\nIn any case of letters.\n\n| key | of | instead |\n|---|---|---|\n"
    )
    for key, (whose, cure) in FOREIGN.items():
        parts.append(f"| `{key}` | {whose} | {cure} |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
