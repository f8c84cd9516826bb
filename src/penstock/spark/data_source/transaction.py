"""Options of a write through ``format("penstock")`` that is in the table once, however often it runs.

Source:
    Delta Lake's ``txnAppId`` and ``txnVersion``, for writes in ``foreachBatch``; Paimon's commit user and identifier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from penstock.errors import InvalidOptionError
from penstock.table.stream_sink.committer import Batch

if TYPE_CHECKING:
    from collections.abc import Mapping

APP_ID: Final = "txnAppId"
VERSION: Final = "txnVersion"
AFTER: Final = "penstock.txn-after-snapshot"

# PySpark passes option names in lower case.
_KEYS: Final = {key.lower(): key for key in (APP_ID, VERSION, AFTER)}
TRANSACTION_OPTIONS: Final = frozenset(_KEYS)
"""Options of a batch write that are not options of the table."""

# A file has this name.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Identity of a write.

    Attributes:
        batch: the application, as commit user, and the number of the write in it.
        after_id: the write is in no snapshot up to this one; None if that is unknown.
    """

    batch: Batch
    after_id: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], table: str) -> Self | None:
        """Read the options of a write; None if it has no identity.

        Args:
            options: with keys in lower case.

        Raises:
            InvalidOptionError: one of the two options is missing, or has another form.
        """
        app, version, after = (options.get(key.lower()) for key in (APP_ID, VERSION, AFTER))
        if app is None and version is None and after is None:
            return None
        if app is None or version is None:
            raise InvalidOptionError(f"table {table}: options '{APP_ID}' and '{VERSION}' go together: give both")
        if after is None and not _NAME.fullmatch(app):
            raise InvalidOptionError(
                f"table {table}: option '{APP_ID}' = '{app}': expected up to 200 letters, digits, '.', '_' and '-', "
                "such as the name of the query"
            )
        return cls(
            batch=Batch(commit_user=app, id=_number(VERSION, version, table)),
            after_id=None if after is None else _number(AFTER, after, table),
        )

    def options(self) -> dict[str, str]:
        """Return the options of the write."""
        named = {APP_ID: self.batch.commit_user, VERSION: str(self.batch.id)}
        return named if self.after_id is None else {**named, AFTER: str(self.after_id)}


def check_no_transaction(table: str, options: Mapping[str, str], what: str) -> None:
    """Refuse the identity of a write on an operation that has another or none.

    Args:
        options: with keys in lower case.
        what: the operation, such as ``a stream``.
    """
    found = next((name for key, name in _KEYS.items() if key in options), None)
    if found is not None:
        raise InvalidOptionError(
            f"table {table}: option '{found}' = '{options[found.lower()]}' has no meaning for {what}: give it to "
            "df.write"
        )


def _number(key: str, text: str, table: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidOptionError(f"table {table}: option '{key}' = '{text}': expected a number, 0 or greater")
    return int(text)
