"""Reference to a table as a picklable value: name, location, storage, schema and options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

from penstock.format.layout import TableLayout
from penstock.io.resolve import local_paths
from penstock.options import CommitOptions, metadata_limits
from penstock.options.external import PREFIX, ExternalPathOptions
from penstock.options.fixed import check_one_use
from penstock.options.group import OptionGroup
from penstock.options.write import DURABLE_KEY

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from penstock.format.avro.values import AvroLimits
    from penstock.format.schema import TableSchema
    from penstock.io.file_io import FileIO


GroupT = TypeVar("GroupT", bound=OptionGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table with one schema and the options of one handle. Picklable, so that it can be sent to Spark tasks.

    Attributes:
        name: ``db.table`` for messages, or the location where the table was opened without a catalog.
        location: the table's directory, in the form that ``file_io`` takes, without a slash at the end.
        file_io: storage of the location.
        schema: the schema to read or write with; its options are those stored on disk.
        dynamic_options: options of this handle; they override those of the schema.
    """

    name: str
    location: str
    file_io: FileIO
    schema: TableSchema
    dynamic_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def layout(self) -> TableLayout:
        """Paths of the table's files."""
        return TableLayout(self.location)

    @property
    def options(self) -> dict[str, str]:
        """Stored options, overridden by those of this handle."""
        return {**dict(self.schema.options), **dict(self.dynamic_options)}

    def parsed(self, group: type[GroupT]) -> GroupT:
        """Return one group of the options, parsed once per schema and handle.

        Raises:
            InvalidOptionError: a value is not what its key expects.
        """
        return cast("GroupT", _parsed(cast("Hashable", group), self.schema.options, self.dynamic_options, self.name))

    @property
    def limits(self) -> AvroLimits:
        """Size limits for metadata files. Raises ``InvalidOptionError``."""
        return metadata_limits(dict(self.schema.options), dict(self.dynamic_options), table=self.name)

    def with_options(self, options: Mapping[str, str]) -> TableRef:
        """Return the same table with further options.

        Raises:
            InvalidOptionError: an option would change where rows and files are stored.
        """
        check_one_use(options, dict(self.schema.options), self.name, self.location)
        merged = {**dict(self.dynamic_options), **options}
        file_io = self.file_io
        if any(key == DURABLE_KEY or key.startswith(PREFIX) for key in options):
            file_io = storage_of_table(file_io, self.location, self.schema.option_map, merged, self.name)
        return replace(self, file_io=file_io, dynamic_options=tuple(merged.items()))


# A process works on few tables and groups at a time; evicted groups are parsed again.
@lru_cache(maxsize=1024)
def _parsed(
    group: Hashable, stored: tuple[tuple[str, str], ...], given: tuple[tuple[str, str], ...], table: str
) -> OptionGroup:
    return cast("type[OptionGroup]", group).parse(dict(stored), dict(given), table=table)


def storage_of_table(
    file_io: FileIO, location: str, stored: Mapping[str, str], given: Mapping[str, str], table: str
) -> FileIO:
    """Return the storage of a table, restricted to its directory and to the external paths that the user allows.

    If the commit options ask for durability, the storage also flushes written files to disk.

    Args:
        location: the table's directory.
        stored: options of the table.
        given: options of the catalog and of one handle; they override those of the table, and only they can allow
            external paths.
        table: its name, for messages.

    Raises:
        InvalidOptionError: an option has an invalid value.
    """
    allowed = ExternalPathOptions.parse(given, table=table)
    is_durable = CommitOptions.parse(stored, given, table=table).durable
    bounded = file_io.confined(
        location, readable=local_paths(allowed.readable), deletable=local_paths(allowed.deletable)
    )
    return bounded.with_durability(durable=is_durable)
