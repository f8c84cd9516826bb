"""Metadata files: ``decode(encode(x)) == x``, and nothing but a ``FormatError`` comes of broken bytes."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import strategies

from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.consumer import decode_consumer, encode_consumer
from penstock.format.schema import TableSchema, decode_schema, encode_schema
from penstock.format.snapshot import Snapshot, decode_hint, decode_snapshot, encode_hint, encode_snapshot
from penstock.format.tag import Tag, decode_tag, encode_tag
from penstock.format.text.json import format_json, parse_json

DECODERS: list[Callable[[bytes, str], object]] = [decode_schema, decode_snapshot, decode_tag, decode_consumer]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(strategies.schemas())
def test_schema_survives_its_file(schema: TableSchema) -> None:
    assert decode_schema(encode_schema(schema), "p") == schema


@given(strategies.schemas(), st.sampled_from([None, 1, 2]))
def test_options_implied_by_an_old_version_survive_an_upgrade(schema: TableSchema, version: int | None) -> None:
    values = json.loads(encode_schema(schema)) | {"version": version}
    old = decode_schema(json.dumps(values).encode(), "p")
    assert dict(old.options) == {"file.format": "orc"} | ({} if version == 2 else {"bucket": "1"}) | dict(
        schema.options
    )
    assert decode_schema(encode_schema(old), "p") == old


@given(strategies.snapshots())
def test_snapshot_survives_its_file(snapshot: Snapshot) -> None:
    assert decode_snapshot(encode_snapshot(snapshot), "p") == snapshot


@given(strategies.tags())
def test_tag_survives_its_file(tag: Tag) -> None:
    assert decode_tag(encode_tag(tag), "p") == tag


@given(strategies.long_integers())
def test_consumer_survives_its_file(next_snapshot: int) -> None:
    assert decode_consumer(encode_consumer(next_snapshot), "p") == next_snapshot


@given(st.integers(0, 2**63 - 1))
def test_hint_survives_its_file(snapshot_id: int) -> None:
    assert decode_hint(encode_hint(snapshot_id)) == snapshot_id


@given(st.binary())
def test_any_bytes_are_a_hint_or_none(data: bytes) -> None:
    hint = decode_hint(data)
    assert hint is None or hint >= 0


@given(JSON, st.booleans())
def test_json_survives_both_prints(value: object, pretty: bool) -> None:  # noqa: FBT001 - drawn
    assert parse_json(format_json(value, pretty=pretty)) == value
    assert json.loads(format_json(value, pretty=pretty)) == value


@pytest.mark.parametrize("decode", DECODERS)
@given(data=st.one_of(st.binary(), JSON.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_refused_naming_the_path(decode: Callable[[bytes, str], object], data: bytes) -> None:
    with pytest.raises(FormatError, match="/some/path"):
        decode(data, "/some/path")


@given(strategies.snapshots(), st.data())
def test_any_change_of_one_key_is_read_or_refused_naming_the_path(snapshot: Snapshot, data: st.DataObject) -> None:
    values = json.loads(encode_snapshot(snapshot))
    values[data.draw(st.sampled_from(sorted(values)))] = data.draw(JSON)
    try:
        decode_snapshot(json.dumps(values).encode(), "/some/path")
    except FormatError as error:
        assert "/some/path" in str(error)  # noqa: PT017 - some changes are legal


@given(strategies.schemas(), st.data())
def test_any_change_of_one_schema_key_is_read_or_refused_naming_the_path(
    schema: TableSchema, data: st.DataObject
) -> None:
    values = json.loads(encode_schema(schema))
    place = data.draw(st.sampled_from([values, values["fields"][0]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    try:
        decode_schema(json.dumps(values).encode(), "/some/path")
    except (FormatError, UnsupportedFeatureError) as error:
        assert "/some/path" in str(error)  # noqa: PT017 - some changes are legal
