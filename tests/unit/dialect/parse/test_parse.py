"""What statements that cannot be run are told, word for word: read ``messages.txt`` as their authors would."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.dialect.conftest import Sql


def told(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each statement of a file with the message below it."""
    lines: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("    "):
            yield "\n".join(lines), line.strip()
            lines.clear()
        else:
            lines.append(line)


@pytest.mark.parametrize(("text", "message"), [*told(Path(__file__).with_name("messages.txt"))])
def test_the_error_of_a_statement_says_what_is_wrong_and_what_works(shop: Sql, text: str, message: str) -> None:
    with pytest.raises(TableStoreError) as caught:
        shop(text)
    assert f"{type(caught.value).__name__}: {caught.value}" == message
