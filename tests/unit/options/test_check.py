"""Options of one use that would change where rows and files lie."""

import pytest

from penstock.errors import InvalidOptionError
from penstock.options.check import check_one_use

_STORED = {"deletion-vectors.enabled": "true", "bucket": "4", "bucket-key": "a, b", "partition.legacy-name": "TRUE"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bucket", "8"),
        ("bucket", "-1"),
        ("bucket-key", "b"),
        ("bucket-function.type", "mod"),
        ("bucket-append-ordered", "false"),
        ("data-file.path-directory", "data"),
        ("partition.legacy-name", "false"),
        ("partition.default-name", "NONE"),
        ("partition", "dt"),
        ("primary-key", "a"),
        ("path", "/elsewhere"),
        ("type", "format-table"),
        ("deletion-vectors.enabled", "false"),
    ],
)
def test_what_decides_the_layout_is_refused_for_one_use(key: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"table d\.t: option '{key}' = '{value}' .*every reader"):
        check_one_use({"write-only": "true", key: value}, _STORED, "d.t", "/w/d.db/t")


def test_a_stored_option_may_be_repeated() -> None:
    given = {
        "bucket": " 4",
        "bucket-key": "a, b",
        "bucket-function.type": "DEFAULT",
        "partition.legacy-name": "true",
        "partition.default-name": "__DEFAULT_PARTITION__",
        "path": "/w/d.db/t/",
        "target-file-size": "1 mb",
    }
    check_one_use(given, _STORED, "d.t", "/w/d.db/t")
