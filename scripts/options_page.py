"""Write docs/options.md from the options themselves."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from penstock.options import OptionRow, Status, describe_options, status_of
from penstock.options.status.documented import FIELD_SUFFIXES, OTHERS, PREFIXES
from penstock.options.status.features import FEATURES, STORED_PREFIXES, Feature, Operation
from penstock.options.status.refused import FOREIGN

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
_INTRODUCTION = """# Options

All options of tables, catalogs and single operations, and what each does. Keys are Paimon's keys, unchanged; keys that
begin with `penstock.` are Penstock's own. Options are stored with a table (`create_table(options=...)`, `SetOption`) or
given for one operation (`with_options`, `.option(...)` in Spark, `/*+ OPTIONS(...) */` in SQL). Options of the
operation have precedence.

| status | what Penstock does with the key |
|---|---|
| honoured | it acts on it |
| ignored | it stores the key for other engines, and warns (`OptionWarning`) if the value is not the default |
| refused | the operation fails (`UnsupportedFeatureError`), because it would not do what the option asks for |

For an unknown key, a warning names the nearest known key. Keys of Delta Lake and Iceberg that would change what is read
or written are refused, and the error names the option to use instead; the end of this page lists them. Batch reads
accept two of them, see [reading](reading.md#time-travel).

<!-- scripts/options_page.py writes this page from the code. -->
"""


_FEATURES = f"""
## tables with features of other engines

What each operation does with a table that another engine made with the feature. Row changes are UPDATE, DELETE and
MERGE; compaction includes sorting and rescaling. "If found" is an operation that refuses the table only where a file or
the snapshot has the feature. Penstock does not create a table that it would not append to.

| feature: options | {" | ".join(Operation)} | reason |
|---|{"---|" * len(Operation)}---|
"""


def _outcome(feature: Feature, operation: Operation) -> str:
    if operation in feature.refused:
        return "refused"
    return "refused if found" if operation in feature.found else "works"


def render_page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    groups: dict[str, list[OptionRow]] = defaultdict(list)
    for row in describe_options():
        groups[row.group].append(row)
    for group, rows in groups.items():
        parts.append(f"\n## {group}\n\n| key | type | default | status | meaning |\n|---|---|---|---|---|\n")
        for row in rows:
            default = "" if not row.default else f"`{row.default}`"
            meaning = row.meaning.replace("|", "\\|")
            parts.append(f"| `{row.key}` | {row.type} | {default} | {row.status} | {meaning} |\n")
    parts.append(
        "\n## other keys of Paimon\n\nKeys of tables with a primary key, of catalogs and of other engines.\n\n"
    )
    parts.append("| status | keys |\n|---|---|\n")
    others = {*OTHERS, *(f"{prefix}*" for prefix in PREFIXES), *(f"fields.*{end}" for end in FIELD_SUFFIXES)} - {
        row.key for row in describe_options()
    }
    for status in Status:
        keys = sorted(key for key in others if status_of(key) is status)
        parts.append(f"| {status} | {', '.join(f'`{key}`' for key in keys)} |\n")
    parts.append(_FEATURES)
    for feature in FEATURES:
        outcomes = " | ".join(_outcome(feature, operation) for operation in Operation)
        keys = ", ".join(f"`{key}`" for key in feature.keys)
        parts.append(f"| {feature.name}: {keys} | {outcomes} | {feature.reason} |\n")
    prefixes = ", ".join(f"`{prefix}`" for prefix in STORED_PREFIXES)
    parts.append(f"\nWrites refuse a stored key that Penstock does not know if it begins with one of {prefixes}.\n")
    parts.append(
        "\n## refused keys of Delta Lake, Iceberg and Spark\n\nUpper and lower case are the same.\n\n"
        "| key | of | instead |\n|---|---|---|\n"
    )
    for key, (whose, cure) in FOREIGN.items():
        parts.append(f"| `{key}` | {whose} | {cure} |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
