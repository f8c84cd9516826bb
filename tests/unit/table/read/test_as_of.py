import pytest

from penstock.errors import InvalidOptionError
from penstock.table.read.as_of import translate_as_of

TEN = 1_767_261_600_000  # 2026-01-01T10:00:00Z


@pytest.mark.parametrize("value", ["3", "first"])
def test_a_version_is_a_tag_or_the_id_of_a_snapshot(value: str) -> None:
    assert translate_as_of({"VERSIONASOF": value, "a": "1"}, "t") == {"a": "1", "scan.version": value}


@pytest.mark.parametrize(
    ("text", "zone", "millis"),
    [
        ("2026-01-01T10:00:00Z", None, TEN),
        ("2026-01-01 11:00:00.5+01:00", "America/New_York", TEN + 500),
        ("2026-01-01 11:00:00 Europe/Berlin", None, TEN),
        (" 2026-01-01 11:00:00 ", "Europe/Berlin", TEN),
        ("2026-01-01 12:00:00", "+02:00", TEN),
        ("2026-01-01", "UTC", TEN - 36_000_000),
    ],
)
def test_a_time_is_of_its_own_zone_or_else_of_the_readers(text: str, zone: str | None, millis: int) -> None:
    assert translate_as_of({"timestampAsOf": text}, "t", zone) == {"scan.timestamp-millis": str(millis)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timestampAsOf": "2026-01-01 10:00:00"}, r"zone of this time is not known here: .*'2026-01-01T10:00:00Z'"),
        ({"timestampAsOf": "yesterday"}, "expected a time such as"),
        (
            {"timestampAsOf": "2026-01-01 10:00:00 Nowhere/At_All"},
            "'timestampAsOf' = 'Nowhere/At_All': expected the name",
        ),
        ({"timestampAsOf": "0001-01-01 00:00:00+10:00"}, "outside of the calendar"),
        ({"versionAsOf": "1", "timestampAsOf": "2026-01-01"}, "'versionAsOf' and 'timestampAsOf' contradict"),
        ({"versionAsOf": "1", "scan.snapshot-id": "1"}, "'versionAsOf' and 'scan.snapshot-id' contradict"),
    ],
)
def test_what_names_no_single_state_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"table t: .*{words}"):
        translate_as_of(options, "t")


def test_options_without_either_stay_as_they_are() -> None:
    assert translate_as_of({"scan.mode": "latest"}, "t") == {"scan.mode": "latest"}
