"""Locations as users write them."""

from pathlib import Path

import pytest

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.io.hdfs import HdfsFileIO
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.io.resolve import resolve


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/data/warehouse", "/data/warehouse"),
        ("/data//warehouse/", "/data/warehouse"),
        ("//data/./a/../warehouse", "/data/warehouse"),
        ("/data/50%25 off", "/data/50%25 off"),
        ("/data/a:b", "/data/a:b"),
        ("/", "/"),
        ("file:///data/ware%20house/", "/data/ware house"),
        ("FILE:///data/dt=a%253Ab", "/data/dt=a%3Ab"),
        ("file://localhost/data", "/data"),
        ("file:/data/dt=a%3Ab", "/data/dt=a%3Ab"),
    ],
)
def test_local_locations_become_absolute_paths(location: str, path: str) -> None:
    assert resolve(location) == (LocalFileIO(durable=True), path)


def test_relative_locations_start_at_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert resolve("warehouse")[1] == f"{tmp_path}/warehouse"
    assert resolve("./a/../b:c")[1] == f"{tmp_path}/b:c"
    assert resolve("~/warehouse")[1] == "/home/someone/warehouse"


def test_what_python_writes_as_a_uri_comes_back(tmp_path: Path) -> None:
    odd = tmp_path / "a b%3A=é"
    assert resolve(odd.as_uri())[1] == str(odd)
    assert resolve(LocalFileIO().to_uri(str(odd)))[1] == str(odd)


def test_links_are_kept(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert resolve(f"{tmp_path}/link/t")[1] == f"{tmp_path}/link/t"


@pytest.mark.parametrize("location", ["memory://shop/wh/t", "memory://shop/wh/t/", "MEMORY://shop/wh/t"])
def test_memory_locations_name_a_store(location: str) -> None:
    assert resolve(location) == (MemoryFileIO("shop"), "memory://shop/wh/t")


@pytest.mark.parametrize("location", ["", "  ", "memory://", "memory:///t", "file://", "file:", "file://localhost"])
def test_locations_without_a_path_say_what_is_missing(location: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected"):
        resolve(location)


@pytest.mark.parametrize("location", ["gs://bucket/t", "ftp://host:21/t", "abfs+x://t"])
def test_storage_that_is_not_built_in_is_named(location: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=location.split(":", maxsplit=1)[0].replace("+", r"\+")):
        resolve(location)


def test_files_of_another_host_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="host 'nas'"):
        resolve("file://nas/data")


def test_a_location_on_hdfs_keeps_its_name_node_and_the_settings_of_hadoop() -> None:
    options = {"dfs.client.failover.max.attempts": "3", "s3.endpoint": "http://somewhere"}
    file_io, path = resolve("hdfs://node:8020//data/warehouse/", options)
    assert path == "hdfs://node:8020/data/warehouse"
    assert file_io == HdfsFileIO(authority="node:8020", settings=(("dfs.client.failover.max.attempts", "3"),))
    assert resolve(path, file_io.storage_options()) == (file_io, path)
    assert file_io.to_uri(f"{path}/dt=a%3Ab/x") == "hdfs://node:8020/data/warehouse/dt%3Da%253Ab/x"
    with pytest.raises(InvalidOptionError, match="has no name node: expected 'hdfs://host:port/path'"):
        resolve("hdfs:///data")


def test_hdfs_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.io.hdfs._LIBRARY", "no_such_library")
    with pytest.raises(UnsupportedFeatureError, match=r"pip install 'penstock\[hdfs\]'"):
        resolve("hdfs://node:8020/data")
