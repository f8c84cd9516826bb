"""MkDocs hooks: pages from outside of ``docs``, links to them, diagrams without a network, the API from docstrings.

On the site, ``docs/api.md`` is rendered by mkdocstrings, which adds links between types; its headings give the names.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
# Pages of the repository that are also on the site, under the same names.
_OUTSIDE: Final = (
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "design").glob("*.md")),
    # The raw data behind docs/benchmarks.md.
    *sorted((ROOT / "bench" / "results").glob("*.json")),
)
# Fetched by scripts/mermaid.sh; otherwise Material would load it from a public server.
_DIAGRAMS: Final = "assets/mermaid.min.js"
_FENCE: Final = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add pages that the navigation does not list to a last section, and the repository's address if it is set."""
    config.repo_url = os.environ.get("PENSTOCK_REPOSITORY_URL") or config.repo_url
    named = str(config.nav)
    unnamed = sorted(path.name for path in (ROOT / "docs").glob("*.md") if f"'{path.name}'" not in named)
    if unnamed:
        config.nav.append({"More": unnamed})
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside of ``docs``."""
    for path in _OUTSIDE:
        name = path.relative_to(ROOT).as_posix()
        files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    for path in (ROOT / ".mermaid").glob("*/mermaid.min.js"):
        files.append(File.generated(config, _DIAGRAMS, abs_src_path=str(path)))
    return files


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Let pages with a diagram load the script from the site itself, if it was fetched."""
    if 'class="mermaid"' not in output or not any((ROOT / ".mermaid").glob("*/mermaid.min.js")):
        return output
    address = posixpath.relpath(_DIAGRAMS, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{address}"></script></head>', 1)


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """Turn links to the repository into links of the site; a target without a page becomes plain text."""
    name = page.file.src_uri
    if name == "api.md":
        return _api_page(markdown)
    folder = posixpath.dirname(name if _is_outside(name) else f"docs/{name}")
    here = posixpath.dirname(name)

    def change(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found["target"]))
        on_site = target.removeprefix("docs/") if target.startswith("docs/") else target
        if target == "README.md":
            on_site = "index.md"
        if files.get_file_from_path(on_site) is None and (ROOT / target).exists():
            return found["text"]
        return f"{found['image']}[{found['text']}]({posixpath.relpath(on_site, here or '.')}{found['anchor'] or ''})"

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(change, part) for part in parts)


def _is_outside(name: str) -> bool:
    return any(path.relative_to(ROOT).as_posix() == name for path in _OUTSIDE)


def _api_page(markdown: str) -> str:
    introduction = markdown.split("\n## ", maxsplit=1)[0]
    lines = [introduction.replace(" `scripts/api_page.py` writes this page.", "")]
    for line in markdown.splitlines():
        if line.startswith("## "):
            lines.append(line)
        elif found := re.match(r"#{3,4} `?(?P<name>[A-Za-z_]+)`?$", line):
            lines.append(f"::: penstock.{found['name']}")
    return "\n\n".join(lines) + "\n"
