"""Create and replace tables so that the definition and the rows take effect together, or neither does.

First the definition is *staged*: nothing that others see changes, and data files of the new rows can be written into
the staged table. Then it is committed with these files, or aborted. There are three kinds:

* ``NewTable``: the first schema is put after the rows are written, right before the snapshot with them.
* ``NewState``: an existing table keeps its directory, snapshots, tags and branches, and gets one more snapshot, which
  replaces all rows, and before that one more schema, if the definition differs.
* ``Successor``: where the format allows no such schema, a new table under another name takes the name of the old one,
  whose history is lost. Object stores and REST catalogs do not rename directories, so there this is refused.

See design/0074-tables-replaced-in-one-step.md.

Source:
    Paimon (the development branch after 1.4) ``core:catalog/AbstractCatalog.java`` (``replaceTable``): the table keeps
    its directory, snapshots and earlier schemas, and gets another schema; its field ids start again at 0, where ours
    do not.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from penstock.catalog.checks.options import check_option_changes, is_chosen
from penstock.catalog.names import join_name, split_name
from penstock.catalog.new_schema import TableDefinition, build_schema, table_defaults
from penstock.catalog.place import has_snapshots, list_schema_ids, load_latest_schema, ref_of
from penstock.clocks import utc_millis
from penstock.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidOptionError,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.format.schema import highest_field_id, next_field
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import DataField, with_nullability
from penstock.printable import open_log
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.bulk_files import delete_empty_directories
from penstock.table.commit.cleanup import commit_or_discard, delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.put import put_schema
from penstock.table.compact.write import open_appender
from penstock.table.partition_scope import WholeTable
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.catalog.backend import Backend
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_LOG = open_log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table that does not exist yet.

    Attributes:
        ref: with the schema that will be the table's first one.
        is_created: the server of a REST catalog has created it already, since only the server knows its directory.
    """

    warehouse: Backend
    name: str
    ref: TableRef
    is_created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewState:
    """The next definition of an existing table, in which no row of today remains.

    Attributes:
        ref: with the next schema, or the current one if the definition stays.
        base: with the current schema.
    """

    ref: TableRef
    base: TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """A new table that takes the name of an existing one."""

    table: NewTable
    name: str

    @property
    def ref(self) -> TableRef:
        """The new table."""
        return self.table.ref


StagedTable: TypeAlias = NewTable | NewState | Successor


def stage_table(warehouse: Backend, name: str, definition: TableDefinition) -> NewTable:
    """Stage a table that does not exist yet.

    Raises:
        TableStoreError: as ``tables.create_table``.
    """
    planned = warehouse.plan_table(name, definition)
    if planned is None:
        raise _exists(name)
    return NewTable(warehouse=warehouse, name=name, ref=planned, is_created=not warehouse.puts_schemas)


def stage_replacement(warehouse: Backend, name: str, definition: TableDefinition) -> NewState | Successor:
    """Stage another definition of an existing table.

    Raises:
        NotFoundError: the table does not exist.
        UnsupportedFeatureError: the table is on an object store or in a REST catalog, and the definition needs another
            directory.
        TableStoreError: as ``tables.load_table`` and ``tables.create_table``.
    """
    base = warehouse.load_table(name)
    schema = build_replacement(
        base.schema,
        definition,
        defaults=table_defaults(dict(warehouse.options)),
        table=base.name,
        time_millis=utc_millis(),
    )
    reason = why_not_in_place(base.schema, schema, MetadataStore(base).load_latest_snapshot(), base.name)
    if not warehouse.puts_schemas and schema is not base.schema:
        reason = reason or "the server of a REST catalog changes schemas step by step, and not in one"
    if reason is None:
        new = base if schema is base.schema else ref_of(warehouse.place_of(name), schema)
        return NewState(ref=new, base=base)
    if not warehouse.puts_schemas or base.file_io.is_object_store:
        place = "an object store" if warehouse.puts_schemas else "a REST catalog"
        raise UnsupportedFeatureError(
            f"table {base.name}: {reason}; so the new table would need a directory of its own, which cannot take the "
            f"place of the old one on {place}: drop the table and create it, or keep this part of its definition"
        )
    return Successor(table=stage_table(warehouse, _temporary_name(name, "new"), definition), name=name)


def commit_staged(staged: StagedTable, ref: TableRef, messages: tuple[CommitMessage, ...]) -> TableCommitter:
    """Let a staged table and its rows take effect.

    Args:
        ref: ``staged.ref``, with the options of the write.
        messages: of the rows.

    Returns:
        The committer, for maintenance afterwards.

    Raises:
        AlreadyExistsError: others have created a table of that name.
        CommitConflictError: others have altered the table.
        TableStoreError: as ``TableCommitter.commit``. Unless the outcome is unknown, everything is as it was before
            ``stage_table`` or ``stage_replacement``.
    """
    match staged:
        case NewTable():
            return _create(staged, ref, messages)
        case NewState():
            return _replace(staged, ref, messages)
        case Successor():
            committer = _create(staged.table, ref, messages)
            _take_name(staged)
            return committer
        case other:
            assert_never(other)


def abort_staged(staged: StagedTable) -> None:
    """Remove what staging has created; data files are deleted by whoever wrote them."""
    match staged:
        case NewTable():
            _remove(staged)
        case NewState():
            return
        case Successor():
            _remove(staged.table)
        case other:
            assert_never(other)


def _create(staged: NewTable, ref: TableRef, messages: tuple[CommitMessage, ...]) -> TableCommitter:
    committer = open_appender(ref)
    if not staged.is_created:
        _put_first_schema(staged, ref, messages)
    try:
        commit_append(committer, messages)
    except BaseException:
        if not committer.may_be_committed:
            with suppress(TableStoreError):  # the error of the commit says more
                # Others may have committed since the schema was put.
                if not has_snapshots(ref.file_io, ref.location):
                    staged.warehouse.drop_table(staged.name, if_exists=True)
        raise
    return committer


def _put_first_schema(staged: NewTable, ref: TableRef, messages: tuple[CommitMessage, ...]) -> None:
    try:
        is_put = put_schema(ref.file_io, ref.location, ref.schema)
    except TableStoreError:
        delete_new_files(ref, messages)
        raise
    if not is_put:
        delete_new_files(ref, messages)
        raise _exists(staged.name)


def _replace(staged: NewState, ref: TableRef, messages: tuple[CommitMessage, ...]) -> TableCommitter:
    base = staged.base
    is_altered = staged.ref.schema is not base.schema
    if not is_altered and list_schema_ids(base.file_io, base.location)[-1:] != (base.schema.id,):
        delete_new_files(ref, messages)
        raise CommitConflictError(
            f"table {base.name}: others have altered or dropped it while its replacement was written; nothing was "
            "committed: repeat the statement"
        )
    committer = open_committer(replace(base, dynamic_options=ref.dynamic_options) if is_altered else ref)
    request = CommitRequest(
        commit_user=new_commit_user(committer.options.user_prefix),
        kind=CommitKind.OVERWRITE,
        messages=messages,
        scope=WholeTable(),
        schema=staged.ref.schema if is_altered else None,
        commit_empty=True,
    )
    try:
        commit_or_discard(committer, request)
    except BaseException:
        if is_altered and not committer.may_be_committed:
            _restore_schema(staged)
        raise
    return committer


def _restore_schema(staged: NewState) -> None:
    """Let the table have its former columns and options again, if the commit failed after its schema was put.

    The schema that was put stays, since others may use its number by now.
    """
    base, tried = staged.base, staged.ref.schema
    with suppress(TableStoreError):  # the error of the commit says more
        if load_latest_schema(base.file_io, base.location, base.name) != tried:
            return
        former = replace(
            base.schema, id=tried.id + 1, highest_field_id=tried.highest_field_id, time_millis=utc_millis()
        )
        put_schema(base.file_io, base.location, former)


def _take_name(staged: Successor) -> None:
    """Rename the new table to the name of the old one, and delete the old one. In between, the name is free."""
    warehouse, aside = staged.table.warehouse, _temporary_name(staged.name, "old")
    is_moved = False
    try:
        warehouse.rename_table(staged.name, aside)
        is_moved = True
        warehouse.rename_table(staged.table.name, staged.name)
    except BaseException:
        if is_moved:
            warehouse.rename_table(aside, staged.name)
        with suppress(TableStoreError):  # the error of the renaming says more
            warehouse.drop_table(staged.table.name, if_exists=True)
        raise
    try:
        warehouse.drop_table(aside)
    except StorageError as error:
        _LOG.warning("table %s: replaced, but the table before it is still there as %s: %s", staged.name, aside, error)


def _remove(staged: NewTable) -> None:
    if staged.is_created:
        staged.warehouse.drop_table(staged.name, if_exists=True)
        return
    ref = staged.ref
    with suppress(StorageError):  # directories without files
        if not list_schema_ids(ref.file_io, ref.location):
            directories = tuple(_directories(ref.file_io, ref.location))
            delete_empty_directories(ref.file_io, directories, root=ref.location.rpartition("/")[0])


def _directories(file_io: FileIO, directory: str) -> Iterator[str]:
    yield directory
    for status in file_io.list(directory):
        if status.is_dir:
            yield from _directories(file_io, status.path)


def _temporary_name(name: str, what: str) -> str:
    *database, table = split_name(name)
    return join_name((*database, f"{table}__{what}_{uuid.uuid4().hex[:8]}"))


def _exists(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"table {name} already exists; choose another name, or replace the table")


_NO_COLUMN = -1


def build_replacement(
    base: TableSchema,
    definition: TableDefinition,
    *,
    defaults: Mapping[str, str],
    table: str,
    time_millis: int,
) -> TableSchema:
    """Build the schema that replaces another one of the same table.

    A column keeps its id if its name and type stay; others get ids that were never used, so no file that was written
    before has values for them.

    Args:
        defaults, table, time_millis: as for ``build_schema``.

    Returns:
        The schema with the next id; ``base`` itself if the definition is that of the table.

    Raises:
        TableStoreError: as ``build_schema``.
    """
    built = build_schema(definition, defaults=defaults, table=table, time_millis=time_millis)
    fields, highest_id = _with_ids(built.fields, base)
    schema = replace(built, id=base.id + 1, fields=fields, highest_field_id=highest_id)
    is_same = replace(schema, id=base.id, options=(), time_millis=base.time_millis) == replace(base, options=())
    return base if is_same and schema.option_map == base.option_map else schema


def why_not_in_place(base: TableSchema, schema: TableSchema, latest: Snapshot | None, table: str) -> str | None:
    """Return why snapshots and earlier files could not be read after this change of the schema; None if they could.

    Args:
        latest: the table's latest snapshot; None if it has none.
    """
    if _partition_columns(base) != _partition_columns(schema) and latest is not None:
        return "its partition columns change, and manifests hold their values without names"
    if latest is not None and latest.index_manifest is not None:
        return f"snapshot {latest.id} has index files, which belong to the files that would be replaced"
    try:
        check_option_changes(
            base.option_map,
            schema.option_map,
            has_snapshots=latest is not None,
            key_is_free=is_chosen(base.option_map),
            explicit=frozenset(schema.option_map),
            table=table,
        )
    except InvalidOptionError as error:
        reason, _, _ = str(error).removeprefix(f"table {table}: ").partition(";")
        return reason
    return None


def _partition_columns(schema: TableSchema) -> list[tuple[str, object]]:
    return [(field.name, with_nullability(field.type, nullable=True)) for field in schema.partition_fields]


def _with_ids(fields: Iterable[DataField], base: TableSchema) -> tuple[tuple[DataField, ...], int]:
    before = {field.name: field for field in base.fields}
    # Some engines number nested fields separately, so their ids may exceed the highest id in the schema.
    highest = max(base.highest_field_id, highest_field_id(base.fields))
    numbered = []
    for field in fields:
        old = before.get(field.name)
        if old is not None and _keeps_values(old, field):
            kept = with_nullability(old.type, nullable=field.type.nullable)
            numbered.append(replace(field, id=old.id, type=kept))
            continue
        new, highest = next_field(
            field.name, field.type, highest, description=field.description, default_value=field.default_value
        )
        numbered.append(new)
    return tuple(numbered), highest


def _keeps_values(old: DataField, new: DataField) -> bool:
    """Whether values of the old column are values of the new one, without a cast."""
    if old.type.nullable and not new.type.nullable:
        return False
    types = [next_field("", with_nullability(each.type, nullable=True), _NO_COLUMN)[0].type for each in (old, new)]
    return types[0] == types[1]
