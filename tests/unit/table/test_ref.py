"""Options of a table reference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import InvalidOptionError
from penstock.format.schema import TableSchema
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions, WriteOptions
from penstock.table.ref import TableRef


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
