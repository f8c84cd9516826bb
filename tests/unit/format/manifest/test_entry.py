"""Which files live when several manifests are taken together."""

from dataclasses import replace

import pytest

from penstock.errors import FormatError
from penstock.format.manifest.entry import EMPTY_ROW, DataFileMeta, FileKind, ManifestEntry, merge_entries


def add(name: str, *, bucket: int = 0) -> ManifestEntry:
    file = DataFileMeta(
        file_name=name, file_size=1, row_count=1, min_sequence_number=0, max_sequence_number=0, schema_id=0
    )
    return ManifestEntry(kind=FileKind.ADD, partition=EMPTY_ROW, bucket=bucket, total_buckets=-1, file=file)


def delete(name: str, *, bucket: int = 0) -> ManifestEntry:
    return replace(add(name, bucket=bucket), kind=FileKind.DELETE)


def test_a_delete_cancels_the_add_before_it() -> None:
    merged = merge_entries([add("a"), add("b"), delete("a"), add("c")])
    assert list(merged.values()) == [add("b"), add("c")]
    assert list(merged) == [add("b").identity, add("c").identity]


def test_a_delete_of_a_file_in_an_older_manifest_stays() -> None:
    assert list(merge_entries([delete("a"), add("b")]).values()) == [delete("a"), add("b")]


def test_a_second_delete_does_not_bring_the_file_back() -> None:
    assert list(merge_entries([delete("a"), delete("a")]).values()) == [delete("a")]


def test_everything_in_the_identity_keeps_files_apart() -> None:
    one = add("a")
    others = [
        replace(one, bucket=1),
        replace(one, partition=b"\0\0\0\1" + bytes(16)),
        replace(one, file=replace(one.file, level=1)),
        replace(one, file=replace(one.file, file_name="b")),
        replace(one, file=replace(one.file, extra_files=("a.index",))),
        replace(one, file=replace(one.file, embedded_file_index=b"x")),
        replace(one, file=replace(one.file, external_path="memory://elsewhere/a")),
    ]
    assert len(merge_entries([one, *others])) == len(others) + 1


def test_sizes_and_statistics_are_not_part_of_the_identity() -> None:
    one = add("a")
    gone = replace(one, kind=FileKind.DELETE, file=replace(one.file, value_stats_cols=None, row_count=9, file_size=9))
    assert merge_entries([one, gone]) == {}


@pytest.mark.parametrize("first", [add("a"), delete("a")])
def test_a_file_added_twice_is_refused_by_name(first: ManifestEntry) -> None:
    with pytest.raises(FormatError, match=r"data file a in bucket 0 .* added twice"):
        merge_entries([first, add("a")])


def test_nothing_merges_to_nothing() -> None:
    assert merge_entries([]) == {}
