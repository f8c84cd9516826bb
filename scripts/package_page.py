"""README and links of a package, which is shown away from the repository: on PyPI."""

from __future__ import annotations

import re
from typing import Final

VARIABLE: Final = "PENSTOCK_REPOSITORY_URL"
"""Names the repository's address; without it, links of README lead nowhere outside of the repository."""

_LINK: Final = re.compile(r"\]\((?!https?:|#)")


def with_addresses(readme: str, repository: str, version: str) -> str:
    """Return README with the addresses of the files of a release instead of their paths."""
    return _LINK.sub(f"]({repository}/blob/v{version}/", readme)


def addresses(repository: str, version: str) -> dict[str, str]:
    """Return the links of a package by their labels."""
    return {
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Documentation": f"{repository}/blob/v{version}/docs/start.md",
    }
