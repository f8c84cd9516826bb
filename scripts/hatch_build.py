"""Add the bill of materials to each wheel, ``*.dist-info/sboms/penstock.cdx.json``, and links to the metadata."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# Hatchling runs this file on its own, outside of a package.
sys.path.insert(0, str(Path(__file__).parent))
import package_page
import sbom


class Links(MetadataHookInterface):
    """Provides README, with links that lead to the repository if its address is set."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dynamic fields."""
        text = (sbom.ROOT / "README.md").read_text("utf-8")
        repository = os.environ.get(package_page.VARIABLE)
        if repository:
            text = package_page.with_addresses(text, repository, metadata["version"])
            metadata["urls"] = package_page.addresses(repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class BillOfMaterials(BuildHookInterface):
    """Provides the file during the build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Create the file; an editable installation gets none."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / sbom.NAME
        path.write_text(sbom.render((sbom.ROOT / "uv.lock").read_text("utf-8")), encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
