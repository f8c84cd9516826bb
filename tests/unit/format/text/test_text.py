"""JSON as Java prints it: line breaks, digits and escapes."""

from __future__ import annotations

from penstock.format.text.json import encode_json, format_json, parse_json


def test_objects_and_lists_break_lines_as_javas_printer_does() -> None:
    value = {"a": [], "b": {}, "c": [1, "x", None], "d": [{"e": True}, {"f": [[1]]}]}
    assert encode_json(value).decode() == "\n".join(  # noqa: FLY002 - one line of the file a line
        [
            "{",
            '  "a" : [ ],',
            '  "b" : { },',
            '  "c" : [ 1, "x", null ],',
            '  "d" : [ {',
            '    "e" : true',
            "  }, {",
            '    "f" : [ [ 1 ] ]',
            "  } ]",
            "}",
        ]
    )


def test_fractions_keep_every_digit() -> None:
    text = '{ "a" : 31536000.000000000, "b" : 0.1234567890123456789012345 }'
    assert format_json(parse_json(text)) == text


def test_half_a_surrogate_pair_survives_as_an_escape() -> None:
    data = encode_json({"a": "\ud800é"})
    assert b"\\ud800" in data
    assert parse_json(data.decode()) == {"a": "\ud800é"}
