"""Options of tables of files, of generated rows and of printed rows."""

from __future__ import annotations

import re

import pytest

from penstock.errors import InvalidOptionError
from penstock.options.connectors import (
    DatagenTable,
    FieldKind,
    StoredFormat,
    parse_blackhole,
    parse_datagen,
    parse_filesystem,
    parse_print,
)
from penstock.options.kafka import CsvFormat

FILES = {"connector": "filesystem", "path": "/data", "format": "csv"}


def generated(**options: str) -> DatagenTable:
    given = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    return parse_datagen({"connector": "datagen", **given}, ["id", "name"], "t")


def test_files_have_the_options_of_their_format() -> None:
    found = parse_filesystem({**FILES, "csv.field-delimiter": ";", "sink.parallelism": "2"}, [], "t")
    assert (found.options.format, found.options.path) == (StoredFormat.CSV, "/data")
    assert found.value_format == CsvFormat(delimiter=";")
    assert found.options.monitor_interval_ms is None
    assert parse_filesystem({**FILES, "format": "ORC", "source.monitor-interval": "2 s"}, [], "t").value_format is None


def test_generated_rows_end_with_the_shortest_sequence() -> None:
    assert generated().row_count is None
    assert generated(number__of__rows="7").row_count == 7
    sequence = {"fields_id_kind": "sequence", "fields_id_start": "3", "fields_id_end": "5"}
    found = generated(number__of__rows="7", fields_name_length="4", **sequence)
    assert (found.row_count, found.fields["id"].kind, found.fields["name"].length) == (3, FieldKind.SEQUENCE, 4)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"connector": "filesystem", "format": "csv"}, "option 'path' is missing"),
        ({"connector": "filesystem", "path": "/data"}, "option 'format' is missing"),
        ({**FILES, "format": "avro"}, "'format' = 'avro'.*parquet"),
        (
            {**FILES, "csv.field-delimeter": ";"},
            "'csv.field-delimeter' is not known: did you mean 'csv.field-delimiter'?",
        ),
        ({**FILES, "format": "orc", "csv.field-delimiter": ";"}, "'csv.field-delimiter' is not known: a table with"),
        ({**FILES, "patch": "/x"}, "did you mean 'path'?"),
    ],
)
def test_wrong_options_of_files_are_named_with_the_nearest_one(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"^table t: .*{says.replace('?', '[?]')}"):
        parse_filesystem(options, [], "t")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rows_per_second": "5"}, "option 'rows.per.second' is not known: did you mean 'rows-per-second'?"),
        ({"fields_nam_min": "5"}, "option 'fields.nam.min' is not known: did you mean 'fields.name.min'?"),
        ({"fields_id_mim": "5"}, "option 'fields.id.mim' is not known: did you mean 'fields.id.min'?"),
        ({"fields_id_kind": "sequence", "fields_id_start": "5"}, "needs 'fields.id.start' and an 'fields.id.end'"),
        ({"fields_id_start": "5"}, "are those of a sequence"),
        ({"fields_id_null__rate": "2"}, "a share from 0 to 1"),
        ({"fields_id_kind": "any"}, "column 'id'.*'kind' = 'any'"),
    ],
)
def test_wrong_options_of_generated_rows_are_named(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"^table t.*{re.escape(says) if '.*' not in says else says}"):
        generated(**options)


def test_tables_that_only_take_rows_have_few_options() -> None:
    assert parse_print({"connector": "print", "print-identifier": "out"}, [], "t").identifier == "out"
    with pytest.raises(InvalidOptionError, match="did you mean 'print-identifier'"):
        parse_print({"connector": "print", "identifier": "out"}, [], "t")
    with pytest.raises(InvalidOptionError, match="'path' is not known: a table with 'connector' = 'blackhole'"):
        parse_blackhole({"connector": "blackhole", "path": "/x"}, [], "t")
