"""Nothing that others wrote acts on what shows it."""

from __future__ import annotations

import json
import logging
import pickle
import time
import unicodedata
import warnings

import pytest

from penstock.errors import NotFoundError, OptionWarning, StorageError, TableStoreError
from penstock.options.group import Key, option_fields
from penstock.options.object_store import ObjectStoreOptions
from penstock.options.status.keys import KNOWN_KEYS
from penstock.printable import (
    MASK,
    is_secret,
    mask_options,
    mask_text,
    mask_value,
    one_line,
    open_log,
    visible,
    visible_json,
    visible_lines,
)

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


@pytest.mark.parametrize(
    "key",
    [
        "fs.s3a.secret.key", "fs.s3a.access.key", "fs.oss.accessKeyId", "s3.access-key", "fs.azure.account.key.x",
        "properties.sasl.jaas.config", "properties.ssl.keystore.password", "TOKEN", "dlf.token", "my_credential",
        "google.cloud.auth.private_key", "header.Authorization", "header.Cookie", "fs.s3a.encryption.key",
    ],
)  # fmt: skip
def test_keys_of_secrets_are_known_by_their_words(key: str) -> None:
    assert is_secret(key)
    assert mask_options([(key, "x")]) == {key: MASK}


def test_no_documented_option_is_a_secret_but_the_keys_of_stores() -> None:
    stores = {
        name
        for field in option_fields(ObjectStoreOptions)
        if isinstance(field.option, Key)
        for name in (field.option.name, *field.option.fallbacks)
    }
    assert {key for key in KNOWN_KEYS if is_secret(key)} < stores
    assert all(is_secret(key) for key in ("s3.access-key", "s3.secret-key", "s3.session.token"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("option 'a.password' = 'x''y'; then", "option 'a.password' = '******'; then"),
        ("option 'bucket' = '2'", "option 'bucket' = '2'"),
        ("s3://key:x@bucket/a?b: gone", "s3://******@bucket/a?b: gone"),
        ("https://h/a?sig=x&y=z at", "https://h/a?****** at"),
        ("did you mean file:///data/a@b?", "did you mean file:///data/a@b?"),
    ],
)
def test_messages_hold_no_secrets(text: str, shown: str) -> None:
    assert mask_text(text) == shown
    assert str(TableStoreError(text)) == shown


@pytest.mark.parametrize("text", ["a.b" * 100_000 + "://=", "a://" * 50_000 + "=", "'a" * 100_000 + "="])
def test_long_messages_are_masked_fast(text: str) -> None:
    before = time.process_time()
    mask_text(text)
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "key",
    [
        "s3.acces-key", "s3.acess.key", "s3.secert-key", "s3.secrt", "s3.pasword", "s3.passwrod", "s3.pwd",
        "jdbc.passward",
        "s3.sesion-tokn", "fs.azure.acount.key", "sasl.jaas", "api-kee", "x.credental", "fs.s3a.secret.ky",
    ],
)  # fmt: skip
def test_misspelled_keys_of_secrets_are_secret(key: str) -> None:
    assert mask_value(key, "TOPSECRET") == MASK


def test_similar_words_are_no_secrets() -> None:
    for key in (
        "clustering.incremental", "s3.path-style-access", "source.split.open-file-cost", "scan.file-creation-time",
        "s3.endpoint", "lock.enabled", "sequence.field", "commit.force-create-snapshot",
    ):  # fmt: skip
        assert not is_secret(key), key
