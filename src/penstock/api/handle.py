"""State that the methods of a table share."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from penstock.api.arguments import Filter, Options, encode_options, to_predicate
from penstock.api.lazy import lazy_progress
from penstock.catalog.checks.features import check_writable
from penstock.errors import SchemaMismatchError
from penstock.options import Side, check_batch, check_keys
from penstock.table.assumptions import check_same_table, check_schema_exists
from penstock.table.compact.write import open_appender
from penstock.table.read.query import Query, plan_query
from penstock.table.read.travel import translate_as_of
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef


# If the display does not answer, the operation goes on.
_DRAWING_SECONDS: Final = 1.0
_VARIABLE: Final = "PENSTOCK_PROGRESS"


class _Switch:
    """Whether progress is shown: by ``show_progress``, else by the environment."""

    enabled: bool | None = None


def show_progress(enabled: bool) -> None:  # noqa: FBT001 - show_progress(False) says what it does
    """Turn the progress bars of this process on or off.

    They are on, unless the environment variable ``PENSTOCK_PROGRESS`` is ``0``, ``false``, ``no`` or ``off``. The bar
    of an operation appears after two seconds, in a notebook, or on the error stream if that is a terminal; elsewhere,
    in other threads than the main one and in Spark's tasks there are none. Spark shows the progress of its jobs itself.
    """
    _Switch.enabled = bool(enabled)


def is_progress_disabled() -> bool:
    """Whether the environment turns progress bars off."""
    return os.environ.get(_VARIABLE, "").strip().lower() in {"0", "false", "off", "no"}


@dataclass(slots=True)
class Bar:
    """The progress of an operation.

    Attributes:
        counts: the rows that ``penstock.metrics.ROWS`` counts, or ``files``, which ``report`` sets.
        is_shown: whether anything is shown, so that ``total`` is of use.
        total: how many there will be; None if that is unknown.
    """

    title: str
    counts: Literal["read", "written", "files"]
    is_shown: bool
    total: int | None = None
    files: int = 0
    is_due: threading.Event = field(default_factory=threading.Event)
    is_drawn: threading.Event = field(default_factory=threading.Event)

    def draw(self) -> None:
        """Show the bar at once, before something that lets no other thread run."""
        if self.is_shown:
            self.is_due.set()
            self.is_drawn.wait(_DRAWING_SECONDS)

    def report(self, files: int, _bytes: int | None = None) -> None:
        """Set how many files are done."""
        self.files = files


def _is_progress_shown() -> bool:
    enabled = not is_progress_disabled() if _Switch.enabled is None else _Switch.enabled
    if not enabled or threading.current_thread() is not threading.main_thread():
        return False
    task: Any = sys.modules.get("pyspark.taskcontext")
    if task is not None and task.TaskContext.get() is not None:
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


class TableHandle:
    """A table with the schema it was loaded with, its metadata and its committer."""

    def __init__(self, ref: TableRef) -> None:
        self.ref = ref
        self._committer: TableCommitter | None = None
        self._bar: Bar | None = None

    @cached_property
    def store(self) -> MetadataStore:
        """The table's metadata, for plans and commits, which check themselves that the table is still the same."""
        return MetadataStore(self.ref)

    @property
    def name(self) -> str:
        """``database.table``, or the location if the table was loaded without a catalog."""
        return self.ref.name

    @property
    def checked_ref(self) -> TableRef:
        """The table, after a check that it still exists. Raises ``NotFoundError``."""
        check_same_table(self.ref)
        return self.ref

    @property
    def checked_store(self) -> MetadataStore:
        """The table's metadata, after a check that the table still exists. Raises ``NotFoundError``."""
        check_same_table(self.ref)
        return self.store

    @contextmanager
    def committing(self) -> Iterator[TableCommitter]:
        """Yield the committer; its first reads are requested while the block writes data files."""
        committer = self.committer()
        with committer.prefetch():
            committer.request_base()
            try:
                yield committer
            except SchemaMismatchError:
                # The columns may be those of a schema whose file is lost.
                check_schema_exists(self.store, self.store.load_latest_snapshot(), self.store.list_schema_files().ids)
                raise

    def committer(self) -> TableCommitter:
        """Return the committer, which the first call opens. Raises an error if the table is read-only for Penstock."""
        check_writable(self.ref)
        if self._committer is None:
            self._committer = open_appender(self.ref, self.store)
        return self._committer

    @contextmanager
    def progress(
        self, doing: str, counts: Literal["read", "written", "files"], total: int | None = None
    ) -> Iterator[Bar]:
        """Show a progress bar while the block runs, if that takes more than two seconds; see ``show_progress``.

        Inside of another such block, it yields the bar of that.
        """
        bar = self._bar or Bar(f"{doing} {self.name}", counts, is_shown=_is_progress_shown(), total=total)
        if not bar.is_shown or bar is self._bar:
            yield bar
            return
        self._bar = bar
        try:
            with lazy_progress.showing(bar, self.ref.location):
                yield bar
        finally:
            self._bar = None

    def plan(
        self,
        filter: Filter | None,
        options: Options | None,
        position: Mapping[str, str],
        zone: str | None = None,
        *,
        with_vectors: bool = False,
    ) -> Query:
        """Plan a batch read.

        Args:
            position: options that select the snapshot.
            zone: for times without a zone; None if it is unknown.
            with_vectors: the reader applies deletion vectors.

        Raises:
            TableStoreError: as ``Table.to_arrow``.
        """
        ref = self.read_ref(options, position, zone)
        return plan_query(ref, self.store, to_predicate(filter, self.name), with_vectors=with_vectors)

    def read_ref(self, options: Options | None, position: Mapping[str, str], zone: str | None = None) -> TableRef:
        """Return the table with the options of a batch read; arguments and errors as for ``plan``."""
        encoded = translate_as_of({**encode_options(options), **position}, self.name, zone)
        check_keys(encoded, table=self.name, of_batch_read=True)
        check_batch(encoded, self.name, Side.SOURCE)
        return self.ref.with_options(encoded)


class TableMethods:
    """Methods of a table, or of one of its namespaces."""

    def __init__(self, handle: TableHandle) -> None:
        self._target = self._handle = handle

    def __repr__(self) -> str:
        names = sorted(name for name in dir(type(self)) if not name.startswith("_"))
        return f"<{type(self).__name__} of {self._handle.name}: {', '.join(names)}>"
