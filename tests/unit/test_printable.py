"""Nothing that others wrote acts on what shows it."""

from __future__ import annotations

import json
import logging
import pickle
import unicodedata
import warnings

import pytest

from penstock.errors import NotFoundError, OptionWarning, StorageError, TableStoreError
from penstock.printable import one_line, open_log, visible, visible_json, visible_lines

HOSTILE = "a\x1b]0;title\x07b\x1b[31m\x9b2J\u202e\u2066\u2028\ud800\x7f\r"


def acts(text: str) -> bool:
    return any(unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for letter in text)


def test_control_characters_are_spelled_out() -> None:
    assert visible(HOSTILE + "\n") == (r"a\x1b]0;title\x07b\x1b[31m\x9b2J\u202e\u2066\u2028\ud800\x7f\r\n")
    assert not acts(visible(HOSTILE))
    assert visible("plain \u00e9\u6771\u4eac") == "plain \u00e9\u6771\u4eac"


def test_line_ends_stay_where_text_has_lines() -> None:
    assert visible_lines("a\n\tb\x1b") == "a\n\tb\\x1b"
    assert one_line("a\nb") == "a b"


def test_json_stays_the_same_value() -> None:
    text = visible_json(json.dumps([HOSTILE, "\u00e9\U0001f6b0"], ensure_ascii=False))
    assert not acts(text)
    assert "\u00e9\U0001f6b0" in text
    assert json.loads(text) == [HOSTILE, "\u00e9\U0001f6b0"]


@pytest.mark.parametrize("kind", [TableStoreError, NotFoundError, StorageError, OptionWarning])
def test_a_message_is_one_printable_line_and_keeps_its_arguments(kind: type[Exception]) -> None:
    error = kind(f"table t: tag '{HOSTILE}'\nCRITICAL root logged in")
    assert not acts(str(error))
    assert str(error).endswith("' CRITICAL root logged in")
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_warnings_are_printable() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(f"option '{HOSTILE}'", OptionWarning, stacklevel=1)
    assert not acts(str(caught[0].message))


def test_a_record_of_a_log_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    open_log("penstock.test").warning("table %s, %d files: %s", HOSTILE, 3, NotFoundError("x\n2026-01-01 ERROR forged"))
    open_log("penstock.test").warning("nothing to fill in, 100%")
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert not acts(caplog.records[0].getMessage())
    assert "3 files" in caplog.records[0].getMessage()
