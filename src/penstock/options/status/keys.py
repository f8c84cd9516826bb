"""The status of each known key: Penstock acts on it, ignores it with a warning, or refuses it.

design/0021 has the reasons.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from penstock.options.group import Family, Key, option_fields
from penstock.options.status.features import feature_of
from penstock.options.status.foreign import DOCUMENTED, HONOURED, HONOURED_PREFIXES
from penstock.options.status.known import GROUPS, is_known
from penstock.options.status.refused import DEFAULT_VALUE, DEFAULT_VALUE_REFUSAL, REFUSED, Refusal


class Status(StrEnum):
    """The status of a key, by its name in the documentation."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"


def status_of(key: str) -> Status | None:
    """Return the status of a key; None for an unknown key."""
    if refusal_of(key) is not None:
        return Status.REFUSED
    if key in _HONOURED or key.startswith(HONOURED_PREFIXES) or any(_is_of(key, family) for family in _FAMILIES):
        return Status.HONOURED
    return Status.IGNORED if is_known(key) else None


def refusal_of(key: str) -> Refusal | None:
    """Return why a key is refused; None if it is not refused."""
    start, end = DEFAULT_VALUE
    if key.startswith(start) and key.endswith(end):
        return DEFAULT_VALUE_REFUSAL
    refusal, feature = REFUSED.get(key), feature_of(key)
    if refusal is None and feature is not None and key not in _HONOURED:
        return Refusal(cure=feature.reason, inert=feature.inert, is_own=True)
    return refusal


def asks_for_nothing(key: str, value: str) -> bool:
    """Whether it is safe to ignore a key with this value, because the value is the default."""
    refusal = refusal_of(key)
    text = value.strip().lower()
    return text in refusal.inert if refusal is not None else text == _DEFAULTS.get(key)


def _is_of(key: str, family: Family) -> bool:
    return key.startswith(family.prefix) and key.endswith(family.suffix)


_FIELDS: Final = tuple(field for group in GROUPS.values() for field in option_fields(group))
_FAMILIES: Final = tuple(
    field.option for field in _FIELDS if isinstance(field.option, Family) and field.option.honoured
)
_HONOURED: Final = HONOURED | {
    name
    for field in _FIELDS
    if isinstance(field.option, Key) and field.option.honoured
    for name in (field.option.name, *field.option.fallbacks)
}
_DEFAULTS: Final = {known.name: known.default for known in DOCUMENTED if known.default} | {
    name: field.option.kind.encode(field.default).lower()
    for field in _FIELDS
    if isinstance(field.option, Key) and field.default not in (None, ())
    for name in (field.option.name, *field.option.fallbacks)
}
