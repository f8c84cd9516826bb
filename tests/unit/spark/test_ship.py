"""What is sent to executors."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

from penstock.spark import ship

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Distribution:
    """Metadata that name a file that an image does not have."""

    def __init__(self, folder: Path) -> None:
        self.files = [File(folder, "numpy/__init__.py"), File(folder, "numpy/not_there.py")]


class File:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self.parts = tuple(name.split("/"))
        self.suffix = ".py"

    def __str__(self) -> str:
        return self._name

    def locate(self) -> Path:
        return self._folder / self._name


def test_an_environment_of_an_image_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy").mkdir()
    source = tmp_path / "numpy" / "__init__.py"
    source.write_text("pass")
    os.utime(source, (0, 0))  # 1970, as in images that are built reproducibly
    monkeypatch.setattr(ship.metadata, "distribution", lambda _name: Distribution(tmp_path))
    ship.write_archive(tmp_path / "archive.zip", ["numpy"])
    with zipfile.ZipFile(tmp_path / "archive.zip") as archive:
        assert archive.namelist() == ["numpy/__init__.py"]
