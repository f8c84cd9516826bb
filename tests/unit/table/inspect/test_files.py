"""The system table of files has the same rows by columns as by entries, and usual entries are not decoded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_predicate_laws import COLUMNS, FIELDS, Row, file_of, rows, stats_of, to_internal
from tests.unit.table.metadata_tables import MemoryTable

from penstock.format.manifest import column_steps, columns
from penstock.format.manifest.columns import EncodedEntries
from penstock.format.manifest.entry import FileSource
from penstock.format.manifest.stats import ColumnStats
from penstock.format.types.data_types import INT, STRING, ArrayType, DataField
from penstock.table.inspect import files
from penstock.table.inspect.system import load_system_table
from penstock.table.metadata_cache import clear_metadata_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

KEYS = (
    DataField(id=len(FIELDS), name="dt", type=STRING),
    DataField(id=len(FIELDS) + 1, name="nested", type=ArrayType(element=INT)),
)


def table_of(entries: Iterator[dict[str, Any]], commits: int = 3) -> MemoryTable:
    table = MemoryTable(fields=(*FIELDS, *KEYS), partition_keys=("dt",), options={"bucket": "3", "bucket-key": "big"})
    made = [table.entry(partition=[partition], total_buckets=3, **values) for partition, values in entries]
    for number in range(commits):
        table.commit(*made[number::commits])
    return table


def both_ways(table: MemoryTable, limit: int | None = None, shape: int = 128) -> list[pa.Table]:
    found = []
    for minimum in (1, 1, 10**9):  # the second time, shapes are known
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "MIN_RECORDS", minimum)
            patch.setattr(column_steps, "_MIN_ALIKE", shape)
            patch.setattr(files, "_MAX_TEXT_BYTES", 1 << 17)  # several parts
            clear_metadata_cache()
            found.append(load_system_table("files", table.ref, table.store, limit=limit))
    return found


@given(
    st.lists(rows, min_size=1, max_size=6),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 7, 1000]),
    st.sampled_from([2, 128]),
    st.data(),
)
def test_rows_by_columns_equal_those_by_entries(
    of_files: list[list[Row]], truncate: int | None, limit: int | None, shape: int, data: st.DataObject
) -> None:
    def entry(number: int, part: list[Row]) -> tuple[str | None, dict[str, Any]]:
        file = file_of(number, part, truncate, data).file
        changed = replace(
            file,
            value_stats_cols=tuple(COLUMNS) if file.value_stats_cols is None else file.value_stats_cols,
            file_name=file.file_name + (".zst" if number % 11 == 1 else ""),
            min_sequence_number=number * 100,
            max_sequence_number=number * 1000,
            creation_millis=None if number % 4 == 1 else number - 2,
            delete_row_count=None if number % 3 == 1 else number // 9,
            file_source=None if number % 5 == 1 else FileSource(number % 2),
            external_path=f"/elsewhere/{file.file_name}" if number == 8 else None,
            write_cols=("big", "s", "d", "_ROW_ID") if number == 12 else None,
            level=number % 3,
        )
        return (None, "x", "y y")[number % 3], {"file": changed, "bucket": number * 7 % 3}

    table = table_of(entry(number, part) for number, part in enumerate(of_files * 10))
    first, second, by_entries = both_ways(table, limit, shape)
    assert first == by_entries
    assert second == by_entries


ROW: dict[str, Any] = dict.fromkeys(COLUMNS)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_usual_entries_are_not_decoded(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    texts = [("abc", "abcdefghi"), ("", "q" * 40), ("äöü", "日本語" * 4)][place]
    stats = {
        name: replace(each, min=texts[0], max=texts[1]) if name == "s" else each
        for name, each in stats_of([to_internal(ROW | {"big": place, "ok": True})]).items()
    }
    del stats["raw"]
    table = MemoryTable(fields=FIELDS)
    made = [table.entry(table.file(f"data-{number}", stats, creation_millis=number)) for number in range(200)]
    table.commit(*made)
    by_entries = both_ways(table)[-1]
    clear_metadata_cache()
    monkeypatch.setattr(EncodedEntries, "entries", lambda *_: pytest.fail("an entry was decoded"))
    assert load_system_table("files", table.ref, table.store) == by_entries
    assert f"big={place}" in by_entries.column("min_value_stats")[7].as_py()
    for name in ("buckets", "partitions"):
        assert load_system_table(name, table.ref, table.store).column("last_update_time")[0].value == 199


def test_wide_entries_without_partitions_have_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_GROUP_RECORDS", 100)  # of which as many places more may look like an entry
    stats = {f"c{number}": ColumnStats(min=4, max=1024, null_count=0) for number in range(40)}
    table = MemoryTable(fields=tuple(DataField(id=place, name=name, type=INT) for place, name in enumerate(stats)))
    table.commit(*(table.entry(table.file(f"data-{number}", stats)) for number in range(200)))
    monkeypatch.setattr(EncodedEntries, "entries", lambda *_: pytest.fail("an entry was decoded"))
    clear_metadata_cache()
    monkeypatch.setattr(files, "decode_file_stats", lambda *_: pytest.fail("an entry was decoded"))
    assert load_system_table("files", table.ref, table.store).num_rows == 200
