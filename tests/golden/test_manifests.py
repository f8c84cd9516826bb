"""Manifests and manifest lists of real engines: all versions decode, and what we write has Java 1.4.2's layout."""

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from penstock.format.avro.container import AvroCodec, decode_container
from penstock.format.manifest.entry import FileKind, FileSource, ManifestEntry, ManifestFileMeta, SimpleStats
from penstock.format.manifest.files import (
    decode_file_numbers,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)

WAREHOUSE = Path(__file__).parent / "data" / "warehouse"
EPOCH_MILLIS = 1000


def find_tables() -> Iterator[Any]:
    for directory in sorted(WAREHOUSE.glob("*.db/*/manifest")):
        lists = sorted(directory.glob("manifest-list-*"))
        manifests = sorted(path for path in directory.glob("manifest-*") if path not in lists)
        if lists:
            yield pytest.param(manifests, lists, id=directory.parent.name)


TABLES = tuple(find_tables())


def fast_records(data: bytes) -> list[dict[str, Any]]:
    """The records as an independent reader sees them, timestamps as ms."""
    records = list(fastavro.reader(BytesIO(data)))
    for record in records:
        created = record.get("_FILE", {}).get("_CREATION_TIME")
        if created is not None:
            record["_FILE"]["_CREATION_TIME"] = round(created.timestamp() * EPOCH_MILLIS)
    return records


def stats_record(stats: SimpleStats) -> dict[str, Any]:
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }


def names(values: tuple[str, ...] | None) -> list[str] | None:
    return None if values is None else list(values)


def entry_record(entry: ManifestEntry) -> dict[str, Any]:
    """What the newest schema that we know would have for an entry."""
    file = entry.file
    return {
        "_VERSION": 2,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": {
            "_FILE_NAME": file.file_name,
            "_FILE_SIZE": file.file_size,
            "_ROW_COUNT": file.row_count,
            "_MIN_KEY": file.min_key,
            "_MAX_KEY": file.max_key,
            "_KEY_STATS": stats_record(file.key_stats),
            "_VALUE_STATS": stats_record(file.value_stats),
            "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
            "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
            "_SCHEMA_ID": file.schema_id,
            "_LEVEL": file.level,
            "_EXTRA_FILES": list(file.extra_files),
            "_CREATION_TIME": file.creation_millis,
            "_DELETE_ROW_COUNT": file.delete_row_count,
            "_EMBEDDED_FILE_INDEX": file.embedded_file_index,
            "_FILE_SOURCE": file.file_source,
            "_VALUE_STATS_COLS": names(file.value_stats_cols),
            "_EXTERNAL_PATH": file.external_path,
            "_FIRST_ROW_ID": file.first_row_id,
            "_WRITE_COLS": names(file.write_cols),
        },
    }


def meta_record(meta: ManifestFileMeta) -> dict[str, Any]:
    return {
        "_VERSION": 2,
        "_FILE_NAME": meta.file_name,
        "_FILE_SIZE": meta.file_size,
        "_NUM_ADDED_FILES": meta.num_added_files,
        "_NUM_DELETED_FILES": meta.num_deleted_files,
        "_PARTITION_STATS": stats_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        "_MIN_BUCKET": meta.min_bucket,
        "_MAX_BUCKET": meta.max_bucket,
        "_MIN_LEVEL": meta.min_level,
        "_MAX_LEVEL": meta.max_level,
        "_MIN_ROW_ID": meta.min_row_id,
        "_MAX_ROW_ID": meta.max_row_id,
    }


def assert_same_where_both_have(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Fields that the writer did not know are None with us; those that we do not know are null in append tables."""
    for name in ours.keys() | theirs.keys():
        if isinstance(ours.get(name), dict):
            assert_same_where_both_have(ours[name], theirs[name])
        else:
            assert ours.get(name) == theirs.get(name), name


@pytest.mark.parametrize(("manifests", "lists"), TABLES)
def test_every_file_decodes_to_what_an_independent_reader_sees(manifests: list[Path], lists: list[Path]) -> None:
    for path in manifests:
        data = path.read_bytes()
        for entry, record in zip(decode_manifest(data, str(path)), fast_records(data), strict=True):
            assert_same_where_both_have(entry_record(entry), record)
        for entry, numbers in zip(decode_manifest(data, str(path)), decode_file_numbers(data, str(path)), strict=True):
            for name in ("kind", "partition", "bucket", "total_buckets"):
                assert getattr(numbers, name) == getattr(entry, name)
            assert numbers.file.file_name == entry.file.file_name
            assert numbers.file.max_sequence_number == entry.file.max_sequence_number
    for path in lists:
        data = path.read_bytes()
        for meta, record in zip(decode_manifest_list(data, str(path)), fast_records(data), strict=True):
            # Only pypaimon 2.1 writes these two, the bucket count of bucketed tables among them; nobody reads them.
            record.pop("_TOTAL_BUCKETS", None)
            record.pop("_EXTRA_FILES", None)
            assert_same_where_both_have(meta_record(meta), record)


@pytest.mark.parametrize(("manifests", "lists"), TABLES)
def test_what_is_encoded_again_decodes_to_the_same(manifests: list[Path], lists: list[Path]) -> None:
    for path in manifests:
        entries = decode_manifest(path.read_bytes(), str(path))
        again = encode_manifest(entries)
        assert decode_manifest(again, "again") == entries
        assert fast_records(again) == [entry_record(entry) for entry in entries]
    for path in lists:
        metas = decode_manifest_list(path.read_bytes(), str(path))
        again = encode_manifest_list(metas)
        assert decode_manifest_list(again, "again") == metas
        assert fast_records(again) == [meta_record(meta) for meta in metas]


@pytest.mark.parametrize("codec", ["zstd", "null", "snappy", "deflate", "bzip2", "xz"])
def test_java_1_4_2_tables_are_written_back_letter_by_letter(codec: str) -> None:
    paths = [
        (path, lists)
        for manifests, lists in (param.values for param in TABLES)
        for path in (*manifests, *lists)
        if path.parts[-4] == "java142.db"
    ]
    assert len(paths) > 300
    # The codec changes nothing but the bytes of a block: all files with the usual one, some with the others.
    for path, lists in paths if codec == "zstd" else paths[::10]:
        original = path.read_bytes()
        encode: Callable[..., bytes]
        values: list[Any]
        if path in lists:
            encode, values = encode_manifest_list, decode_manifest_list(original, str(path))
        else:
            encode, values = encode_manifest, decode_manifest(original, str(path))
        theirs, ours = decode_container(original, str(path)), decode_container(encode(values, codec=codec), "ours")
        assert ours.schema == json.dumps(json.loads(theirs.schema), separators=(",", ":"))
        assert b"".join(block.payload for block in ours.blocks) == b"".join(block.payload for block in theirs.blocks)


def only(table: str, pattern: str) -> list[Path]:
    """Files of a table with at least one record."""
    paths = sorted(WAREHOUSE.glob(f"*/{table}/manifest/{pattern}"))
    assert paths
    return [path for path in paths if fast_records(path.read_bytes())]


def test_manifests_of_0_9_have_no_stats_columns_so_their_stats_are_of_all_columns() -> None:
    entries = [
        entry
        for path in only("s09_append", "manifest-[0-9a-f]*")
        for entry in decode_manifest(path.read_bytes(), str(path))
    ]
    assert entries
    assert {entry.file.value_stats_cols for entry in entries} == {None}
    assert {entry.file.write_cols for entry in entries} == {None}
    assert {entry.kind for entry in entries} == {FileKind.ADD, FileKind.DELETE}
    assert {entry.total_buckets for entry in entries} == {-1}


def test_manifest_lists_of_0_9_know_neither_buckets_nor_levels() -> None:
    for path in only("s09_bucket8", "manifest-list-*"):
        for meta in decode_manifest_list(path.read_bytes(), str(path)):
            assert (meta.min_bucket, meta.max_bucket, meta.min_level, meta.max_level, meta.min_row_id) == (None,) * 5


def test_no_statistics_and_all_statistics_stay_apart() -> None:
    python = [
        entry for path in only("p21_append", "manifest-[0-9a-f]*") for entry in decode_manifest(path.read_bytes(), "")
    ]
    java = [
        entry for path in only("append_plain", "manifest-[0-9a-f]*") for entry in decode_manifest(path.read_bytes(), "")
    ]
    assert {entry.file.value_stats_cols for entry in python} == {()}
    assert {entry.file.value_stats_cols for entry in java} == {None}


def test_compactions_add_files_of_another_source() -> None:
    entries = [
        entry
        for path in only("bucket8_stream", "manifest-[0-9a-f]*")
        for entry in decode_manifest(path.read_bytes(), str(path))
    ]
    assert {entry.file.file_source for entry in entries if entry.kind is FileKind.DELETE} == {FileSource.APPEND}
    assert FileSource.COMPACT in {entry.file.file_source for entry in entries}


def test_tables_with_other_codecs_are_among_them() -> None:
    codecs = {
        table: {decode_container(path.read_bytes(), str(path)).codec for path in only(table, "manifest-*")}
        for table in ("append_plain", "append_snappy", "append_zstd_none")
    }
    assert codecs == {
        "append_plain": {AvroCodec.ZSTANDARD},
        "append_snappy": {AvroCodec.SNAPPY},
        "append_zstd_none": {AvroCodec.NULL},
    }
