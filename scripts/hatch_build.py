"""Add the bill of materials to each wheel: ``*.dist-info/sboms/penstock.cdx.json``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Hatchling runs this file on its own, outside of a package.
sys.path.insert(0, str(Path(__file__).parent))
import sbom


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
