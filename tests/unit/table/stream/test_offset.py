from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FormatError
from penstock.table.stream.offset import UNRESOLVED, Phase, Position, StreamOffset, decode_offset, encode_offset

POSITIONS = st.builds(
    Position, snapshot_id=st.integers(1, 2**62), index=st.integers(0, 10**6), phase=st.sampled_from(Phase)
)
OFFSETS = st.builds(
    StreamOffset,
    start=POSITIONS,
    position=POSITIONS,
    by_value=st.booleans(),
    ended=st.booleans(),
    table=st.text(),
    overwrites=st.booleans(),
    seen=st.none() | st.text(),
    created_from=st.none() | st.integers(-(2**62), 2**62),
    last_id=st.none() | st.integers(0, 2**62),
    closed=st.none() | st.text(),
    watermarks=st.none()
    | st.dictionaries(st.integers(0, 100), st.integers(-(2**62), 2**62)).map(lambda each: tuple(sorted(each.items()))),
)


@given(OFFSETS)
def test_an_offset_survives_a_checkpoint(offset: StreamOffset) -> None:
    assert decode_offset(json.loads(json.dumps(encode_offset(offset)))) == offset


def test_the_first_offset_is_a_constant() -> None:
    assert encode_offset(UNRESOLVED) == {"unresolved": True}
    assert decode_offset({"unresolved": True}) == UNRESOLVED


@pytest.mark.parametrize("encoded", [{}, {"version": 2}, {"version": 1}, {"version": 1, "start": 3}])
def test_what_is_no_offset_of_ours_is_refused(encoded: dict[str, object]) -> None:
    with pytest.raises(FormatError, match="new checkpoint"):
        decode_offset(encoded)
