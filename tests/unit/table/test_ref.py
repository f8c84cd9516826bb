"""Options of a table reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog, InvalidOptionError, UnsupportedFeatureError
from penstock.format.manifest.files import decode_manifest, encode_manifest
from penstock.format.schema import TableSchema
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions, WriteOptions
from penstock.table.inspect.fsck import FindingKind
from penstock.table.ref import TableRef

if TYPE_CHECKING:
    from penstock import Table


def new_ref(**options: str) -> TableRef:
    stored = tuple((key.replace("_", "-"), text) for key, text in options.items())
    schema = TableSchema(id=0, fields=(), highest_field_id=-1, options=stored)
    return TableRef(name="db.t", location="memory://refs/t", file_io=MemoryFileIO("refs"), schema=schema)


def test_a_group_of_options_is_parsed_once_for_a_schema_and_a_use() -> None:
    ref = new_ref(write_only="true")
    assert ref.parsed(WriteOptions) is new_ref(write_only="true").parsed(WriteOptions)
    assert ref.parsed(WriteOptions).write_only
    assert ref.parsed(FormatOptions) is not ref.parsed(WriteOptions)


def test_options_of_the_use_win_and_those_of_another_schema_are_others() -> None:
    ref = new_ref(write_only="true")
    assert not ref.with_options({"write-only": "false"}).parsed(WriteOptions).write_only
    assert not replace(ref, schema=new_ref(write_only="false").schema).parsed(WriteOptions).write_only
    assert ref.parsed(WriteOptions).write_only


def test_a_value_that_is_none_is_an_error_each_time() -> None:
    ref = new_ref(write_only="perhaps")
    for _ in range(2):
        with pytest.raises(InvalidOptionError, match=r"db\.t"):
            ref.parsed(WriteOptions)


_FUTURE = 4_000_000_000_000
_READ = "penstock.external-paths.read"
_DELETE = "penstock.external-paths.delete"


def _table(root: Path, **options: str) -> Table:
    """A table with one file, whose stored options somebody edited by hand."""
    catalog = Catalog(str(root / "warehouse"))
    catalog.create_database("d", if_not_exists=True)
    table = catalog.create_table("d.t", "id BIGINT", options={"write-only": "true"})
    table.append(pa.table({"id": [1]}))
    schema = Path(table.location, "schema", "schema-0")
    content = json.loads(schema.read_text(encoding="utf-8"))
    schema.write_text(json.dumps({**content, "options": {**content["options"], **options}}), encoding="utf-8")
    return _load(root)


def _load(root: Path, **options: str) -> Table:
    """The table, as a catalog with these options has it."""
    return Catalog(
        str(root / "warehouse"), {key.replace("_", "-"): value for key, value in options.items()}
    ).load_table("d.t")


def _move_out(table: Table, target: Path, path: str | None = None) -> Path:
    """Move the only data file to another directory, as the manifest then says with an external path."""
    location = Path(table.location)
    (inside,) = location.glob("bucket-0/*")
    target.mkdir(parents=True, exist_ok=True)
    outside = target / inside.name
    inside.rename(outside)
    (manifest,) = (path for path in (location / "manifest").iterdir() if not path.name.startswith("manifest-list"))
    entries = decode_manifest(manifest.read_bytes(), "manifest")
    moved = [
        replace(entry, file=replace(entry.file, external_path=(path or str(outside)).replace("<name>", inside.name)))
        for entry in entries
    ]
    manifest.write_bytes(encode_manifest(moved))
    return outside


def test_an_external_file_is_read_where_table_and_user_agree(tmp_path: Path) -> None:
    cold = tmp_path / "a cold place"
    table = _table(tmp_path, **{"data-file.external-paths": f"{cold.as_uri()},/elsewhere"})
    _move_out(table, cold / "bucket-0", f"{cold.as_uri()}/bucket-0/<name>")
    with pytest.raises(UnsupportedFeatureError, match=f"d.t: .* was not opened; .* '{_READ}' = '{cold}/bucket-0'"):
        _load(tmp_path).to_arrow()
    for place in (str(cold), cold.as_uri(), f"/x, {cold}/bucket-0/"):
        assert _load(tmp_path, **{_READ: place}).to_arrow().num_rows == 1
        assert _load(tmp_path).with_options({_READ: place}).to_arrow().num_rows == 1
    for place in (f"{cold}/bucket", f"{cold}/bucket-0/..x", str(tmp_path / "a"), "s3://cold"):
        with pytest.raises(UnsupportedFeatureError, match="was not opened"):
            _load(tmp_path, **{_READ: place}).to_arrow()


def test_a_branch_reads_external_files_as_its_table_does(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    table = _table(tmp_path, **{"data-file.external-paths": str(cold)})
    _move_out(table, cold)
    table.versions.create_branch("b", snapshot_id=1)
    assert _load(tmp_path, **{_READ: str(cold)}).with_options({"branch": "b"}).to_arrow().num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match=f"'{_READ}' = '{cold}'"):
        _load(tmp_path).with_options({"branch": "b"}).to_arrow()


def test_what_the_table_stores_allows_nothing(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    table = _table(tmp_path, **{"data-file.external-paths": str(cold), _READ: str(tmp_path), _DELETE: "/"})
    outside = _move_out(table, cold)
    with pytest.raises(UnsupportedFeatureError, match="was not opened"):
        _load(tmp_path).to_arrow()
    assert [finding.kind for finding in _load(tmp_path).inspect.fsck().findings] == [FindingKind.OUTSIDE]
    _expire_all(_load(tmp_path))
    assert outside.exists()


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "<cold>/../secret/<name>", "relative/<name>", "http://host/x.parquet", "/dev/zero\n"]
)
def test_a_path_that_the_table_does_not_state_is_never_opened(tmp_path: Path, path: str) -> None:
    cold = tmp_path / "cold"
    table = _table(tmp_path, **{"data-file.external-paths": str(cold)})
    _move_out(table, tmp_path / "secret", path.replace("<cold>", str(cold)))
    with pytest.raises(UnsupportedFeatureError, match="in none of the directories of its option"):
        _load(tmp_path, **{_READ: f"/, {tmp_path}"}).to_arrow()


def test_expiration_deletes_an_external_file_only_where_it_may(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    table = _table(tmp_path, **{"data-file.external-paths": str(cold)})
    outside = _move_out(table, cold)
    reading = {_READ: str(cold)}
    _expire_all(_load(tmp_path, **reading))
    assert outside.exists()


def test_expiration_deletes_an_external_file_where_table_and_user_agree(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    table = _table(tmp_path, **{"data-file.external-paths": str(cold)})
    outside = _move_out(table, cold, f"file://{cold}/<name>")
    _expire_all(_load(tmp_path, **{_READ: str(cold), _DELETE: str(cold)}))
    assert not outside.exists()


def _expire_all(table: Table) -> None:
    table.overwrite(pa.table({"id": [2]}), partition={})
    table.expire_snapshots(retain_min=1, older_than=_FUTURE)
    assert [row["snapshot_id"] for row in table.inspect.system_table("snapshots").to_pylist()] == [2]


@pytest.mark.parametrize("directory", ["..", "../..", "/abs", "a/../b", "a//b", "a\0", "./a"])
def test_a_data_directory_that_leaves_the_table_is_refused(tmp_path: Path, directory: str) -> None:
    table = _table(tmp_path, **{"data-file.path-directory": directory})
    with pytest.raises(InvalidOptionError, match=r"'data-file\.path-directory' = "):
        table.append(pa.table({"id": [2]}))
    with pytest.raises(InvalidOptionError, match=r"'data-file\.path-directory' = "):
        table.remove_orphan_files()


@pytest.mark.parametrize("prefix", ["../x-", "/abs/x-", "a\\b", "\n"])
def test_a_prefix_of_file_names_with_a_path_in_it_is_refused(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"'data-file\.prefix' = "):
        _table(tmp_path, **{"data-file.prefix": prefix}).append(pa.table({"id": [2]}))


def test_directories_and_prefixes_below_the_table_stay_fine(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    options = {"data-file.path-directory": "data/of it/", "data-file.prefix": ""}
    table = catalog.create_table("d.t", "id BIGINT", options=options)
    table.append(pa.table({"id": [1]}))
    assert table.to_arrow().num_rows == 1
    assert len(list(Path(table.location).glob("data/of it/bucket-0/*.parquet"))) == 1
