"""Tables that other engines made with features of theirs: each operation does what the table of features states."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from tests.feature_tables import CASES, option_of, outcomes
from tests.interop import ours
from tests.interop.engines import Engine, EngineError, Row

from penstock.errors import UnsupportedFeatureError
from penstock.options.status.features import Operation

MAP: Final = {"type": "MAP", "key": "STRING", "value": "INT"}
ROWS: Final[list[Row]] = [{"a": number, "m": [["k", number]]} for number in range(3)]
# Java 1.4 does not create an append table with it, or writes nothing where the value is only one of a test.
NOT_MADE: Final = frozenset(
    {
        "blob-descriptor-field",
        "chain-table.enabled",
        "commit.callbacks",
        "data-evolution.enabled",
        "file.format",
        "rowkind.field",
        "tag.callbacks",
        "type",
        "vector.file.format",
    }
)


def test_tables_of_java_with_each_feature(java: Engine, tmp_path: Path) -> None:
    not_made = set()
    for number, (feature, key) in enumerate(CASES):
        option = option_of(key)
        location = tmp_path / "w" / "d.db" / f"t{number}"
        try:
            java.create(location, [("a", "INT"), ("m", MAP)], options={"bucket": "-1", **option})
            java.append(location, ROWS)
        except EngineError:
            not_made.add(key)
            continue
        for operation, text in outcomes(lambda at=location: ours.load(at)).items():
            assert bool(text) == (operation in feature.refused), (key, operation, text)
        if Operation.READ not in feature.refused:
            assert java.read(location) == ours.read(location), key
    assert not_made == NOT_MADE


AGE_AND_CITY: Final = {
    "metadata": "0x0102000307" + b"agecity".hex(),
    "value": "0x02020001000207" + "0c1e" + "11" + b"Rome".hex(),
}
SHREDDED: Final = {
    "type": "ROW",
    "fields": [{"id": 0, "name": "v", "type": {"type": "ROW", "fields": [{"id": 1, "name": "age", "type": "BIGINT"}]}}],
}


def test_shredded_variants_are_neither_read_nor_rewritten_without_their_fields(
    pypaimon: Engine, location: Path
) -> None:
    options = {"bucket": "-1", "variant.shreddingSchema": json.dumps(SHREDDED)}
    pypaimon.create(location, [("id", "INT"), ("v", "VARIANT")], options=options)
    rows: list[dict[str, Any]] = [{"id": number, "v": AGE_AND_CITY} for number in (1, 2)]
    pypaimon.append(location, rows)
    before = pypaimon.read(location)
    for act in (
        lambda: ours.read(location),
        lambda: list(ours.load(location).follow(once=True)),
        lambda: ours.load(location).delete("id = 2"),
        lambda: ours.load(location).update({"id": 3}, "id = 2"),
    ):
        with pytest.raises(UnsupportedFeatureError, match="column 'v': the file keeps fields of a VARIANT"):
            act()
    ours.append(location, [{"id": 5, "v": AGE_AND_CITY}])
    with pytest.raises(UnsupportedFeatureError, match="column 'v': the file keeps fields of a VARIANT"):
        ours.load(location).compact()
    assert [row for row in pypaimon.read(location) if row["id"] != 5] == before
    assert len(pypaimon.read(location)) == 3
    assert ours.load(location).to_arrow(["id"]).num_rows == 3
