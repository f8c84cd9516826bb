"""Rows of the table of options, for the documentation and for the command that lists options."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.options.group import OptionField, option_fields
from penstock.options.status.foreign import DOCUMENTED
from penstock.options.status.keys import Status, status_of
from penstock.options.status.known import GROUPS


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One row of the table of options.

    Attributes:
        key: the key, or the pattern of a family of keys, with ``*`` for the free part.
        default: default as text that the key accepts; empty if unset differs from every value.
        honoured: whether Penstock acts on it today.
        status: whether the key is honoured, ignored or refused.
    """

    key: str
    type: str
    default: str
    group: str
    meaning: str
    honoured: bool
    status: Status


def describe_options() -> tuple[OptionRow, ...]:
    """List every documented option once, by group; a key of two groups is listed in the first one."""
    rows: dict[str, OptionRow] = {}
    for group, options in GROUPS.items():
        for field in option_fields(options):
            rows.setdefault(field.option.name, _row(group, field))
    for known in DOCUMENTED:
        rows.setdefault(
            known.name,
            OptionRow(
                key=known.name,
                type=known.type,
                default=known.default,
                group=known.group,
                meaning=known.meaning,
                honoured=status_of(known.name) is Status.HONOURED,
                status=status_of(known.name) or Status.IGNORED,
            ),
        )
    return tuple(rows.values())


def _row(group: str, field: OptionField) -> OptionRow:
    unset = field.default in (None, ())
    return OptionRow(
        key=field.option.name,
        type=field.option.kind.name,
        default="" if unset else field.option.kind.encode(field.default),
        group=group,
        meaning=field.option.meaning,
        honoured=field.option.honoured,
        status=Status.HONOURED if field.option.honoured else status_of(field.option.name) or Status.IGNORED,
    )
