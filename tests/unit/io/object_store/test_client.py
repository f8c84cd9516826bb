"""The copy of the library that a forked process loads."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest

from penstock.errors import UnsupportedFeatureError
from penstock.io.object_store.client import _load_copy


def refuse(*_arguments: Any, **_options: Any) -> Any:
    raise OSError("nothing is executed from here")


def test_a_copy_is_in_memory_where_no_file_can_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    assert _load_copy()._store.S3Store


def test_a_process_without_a_directory_for_the_copy_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    monkeypatch.setattr(os, "memfd_create", refuse)
    with pytest.raises(UnsupportedFeatureError, match=r"set TMPDIR to a directory .* without a fork"):
        _load_copy()
