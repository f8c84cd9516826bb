"""No metadata file can name a file outside of the directory for its kind."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import fastavro
import pytest
from hypothesis import given, settings
from tests.support.strategies import file_names, snapshots
from tests.support.strategies_manifest import manifest_entries, manifest_metas

from penstock.errors import FormatError
from penstock.format.manifest.files import (
    decode_file_numbers,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from penstock.format.manifest.index_manifest import decode_index_files
from penstock.format.snapshot import decode_snapshot, encode_snapshot
from penstock.format.tag import decode_tag
from penstock.format.text.names import check_file_name

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.format.manifest.entry import ManifestEntry, ManifestFileMeta
    from penstock.format.snapshot import Snapshot

PATHS = ("", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "a\0b", "a\nb", "\x1b[2J", "\x9b2J", "x" * 256)


@given(file_names())
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert check_file_name(name) == name


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="states"):
        check_file_name(name)


@settings(max_examples=2)
@given(entry=manifest_entries())
def test_manifests_state_no_paths(entry: ManifestEntry) -> None:
    for name in PATHS:
        for file in (replace(entry.file, file_name=name), replace(entry.file, extra_files=("fine", name))):
            with pytest.raises(FormatError, match=r"manifest-1.*states"):
                decode_manifest(encode_manifest([replace(entry, file=file)]), "manifest-1")
        data = encode_manifest([replace(entry, file=replace(entry.file, file_name=name))])
        with pytest.raises(FormatError, match="states"):
            decode_file_numbers(data, "manifest-1")


@settings(max_examples=2)
@given(meta=manifest_metas())
def test_manifest_lists_state_no_paths(meta: ManifestFileMeta) -> None:
    for name in PATHS:
        with pytest.raises(FormatError, match=r"list-1.*states"):
            decode_manifest_list(encode_manifest_list([replace(meta, file_name=name)]), "list-1")


@pytest.mark.parametrize(
    "key", ["baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest", "statistics"]
)
@settings(max_examples=2)
@given(snapshot=snapshots())
def test_snapshots_and_tags_state_no_paths(key: str, snapshot: Snapshot) -> None:
    for name in PATHS:
        data = json.dumps(json.loads(encode_snapshot(snapshot)) | {key: name}).encode()
        for decode in (decode_snapshot, decode_tag):
            with pytest.raises(FormatError, match=f"states.*{key}"):
                decode(data, "file-1")


@pytest.mark.parametrize("name", PATHS)
def test_index_manifests_state_no_paths(name: str, tmp_path: Path) -> None:
    fields = [("_KIND", "int"), ("_INDEX_TYPE", "string"), ("_FILE_NAME", "string")]
    schema = {"type": "record", "name": "r", "fields": [{"name": key, "type": kind} for key, kind in fields]}
    path = tmp_path / "index"
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"_KIND": 0, "_INDEX_TYPE": "HASH", "_FILE_NAME": name}])
    with pytest.raises(FormatError, match="states"):
        decode_index_files(path.read_bytes(), "index-1")
