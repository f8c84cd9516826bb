"""Concatenate Parquet files by copying their row groups undecoded.

A file's data is copied as a whole, and the places in its footer move by the same number. Page indexes are dropped, as
they contain places of their own; readers do without them, and Penstock's own writer writes none.

Source:
    The Parquet format's ``parquet.thrift`` for the field numbers; parquet-java ``ParquetFileWriter.appendFile``.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.datafile.parquet.footer import CODECS, MAGIC, encode_footer, load_metadata
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.thrift import Kind, ThriftList, ThriftStruct, encode_struct, unzigzag, zigzag
from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.io.file_io import FileIO

_COPIED_BYTES: Final = 8 * 1024 * 1024
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROWS, _ROW_GROUPS, _ENCRYPTION = 3, 4, 8
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
_FILE_PATH, _CHUNK_OFFSET, _META_DATA, _CRYPTO = 1, 2, 3, (8, 9)
_PAGE_INDEXES: Final = (4, 5, 6, 7)
_PATH, _CODEC, _CHUNK_BYTES, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 3, 4, 7, 9, 10, 11, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The footer of a file.

    Attributes:
        start: its position: the data ends there.
        encoded_bytes: its size in the file.
    """

    path: str
    start: int
    encoded_bytes: int
    metadata: ThriftStruct

    @property
    def row_count(self) -> int:
        """Number of rows of the file."""
        return unzigzag(self.metadata.get(_ROWS))

    @property
    def group_count(self) -> int:
        """Number of row groups."""
        return len(self.metadata.get(_ROW_GROUPS).items)

    def shared_part(self) -> bytes:
        """Return what must be equal in files to be concatenated: schema, writer, key-value metadata, orders."""
        fields = {key: value for key, value in self.metadata.fields.items() if key not in (_ROWS, _ROW_GROUPS)}
        return encode_struct(ThriftStruct(fields))

    def is_plain(self, columns: Sequence[str], compression: str, row_count: int) -> bool:
        """Whether the file is of these columns, codec and rows, not encrypted, and places in it are inside of it."""
        with reading(self.path):
            groups = self.metadata.get(_ROW_GROUPS).items
            rows = sum(unzigzag(group.get(_GROUP_ROWS)) for group in groups)
            codec = CODECS[compression].number
            has_rows = rows == self.row_count == row_count
            return has_rows and all(self._is_plain(group, columns, codec) for group in groups)

    def _is_plain(self, group: ThriftStruct, columns: Sequence[str], codec: int) -> bool:
        chunks = group.get(_COLUMNS).items
        return len(chunks) == len(columns) and all(
            self._is_plain_chunk(chunk, column, codec) for chunk, column in zip(chunks, columns, strict=True)
        )

    def _is_plain_chunk(self, chunk: ThriftStruct, column: str, codec: int) -> bool:
        if any(chunk.get(field) is not None for field in (_FILE_PATH, *_CRYPTO)):
            return False
        meta = chunk.get(_META_DATA)
        if meta.get(_INDEX_PAGE) is not None:
            return False
        places = [unzigzag(meta.get(field)) for field in (_DATA_PAGE, _DICTIONARY_PAGE) if meta.get(field)]
        first, size = min(places), unzigzag(meta.get(_CHUNK_BYTES))
        return (
            0 <= unzigzag(meta.get(_BLOOM_FILTER) or 0) < self.start
            and b".".join(meta.get(_PATH).items) == column.encode()
            and unzigzag(meta.get(_CODEC)) == codec
            and size >= 0
            and len(MAGIC) <= first <= max(places) <= first + size <= self.start
        )

    def moved_groups(self, distance: int, ordinal: int) -> Iterator[ThriftStruct]:
        """Move the places of the row groups, in place, and yield the row groups with numbers from ``ordinal`` on."""
        for number, group in enumerate(self.metadata.get(_ROW_GROUPS).items, ordinal):
            _move(group, _GROUP_OFFSET, distance)
            if group.get(_ORDINAL) is not None:
                # 16 bits; readers of files with more row groups than that do without the number.
                del group.fields[_ORDINAL]
                if number < 1 << 15:
                    group.fields[_ORDINAL] = (Kind.I16, zigzag(number))
            for chunk in group.get(_COLUMNS).items:
                _move(chunk, _CHUNK_OFFSET, distance)
                for field in _PAGE_INDEXES:
                    chunk.fields.pop(field, None)
                for field in (_DATA_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER):
                    _move(chunk.get(_META_DATA), field, distance)
            yield group


def _move(struct: ThriftStruct, field: int, distance: int) -> None:
    kind, place = struct.fields.get(field, (Kind.I64, 0))
    if isinstance(place, int) and place:  # some writers write 0 for no place
        struct.fields[field] = (kind, zigzag(unzigzag(place) + distance))


def load_footer(file_io: FileIO, path: str, *, max_bytes: int) -> Footer:
    """Return the footer of a file. Raises ``FormatError`` for damaged and encrypted files, and for longer footers."""
    with reading(path), closing(file_io.open_input(path)) as opened:
        source = as_native_file(opened)
        metadata, start = load_metadata(source, max_bytes=max_bytes)
        if metadata.get(_ENCRYPTION) is not None or not metadata.get(_ROW_GROUPS).items:
            raise FormatError("has no row groups that can be copied")
        return Footer(path=path, start=start, encoded_bytes=source.size() - start, metadata=metadata)


def concatenate(file_io: FileIO, footers: Sequence[Footer], target: Any) -> int:  # noqa: ANN401 - from open_output
    """Write one file with the row groups of all; return its size. The footers cannot be used again.

    Args:
        footers: of files with equal ``shared_part``, in order.
    """
    target.write(MAGIC)
    position = len(MAGIC)
    groups: list[Any] = []
    rows = sum(footer.row_count for footer in footers)
    for footer in footers:
        groups += footer.moved_groups(position - len(MAGIC), len(groups))
        for data in _load_data(file_io, footer):
            target.write(data)
        position += footer.start - len(MAGIC)
    fields = dict(footers[0].metadata.fields)
    fields[_ROWS] = (Kind.I64, zigzag(rows))
    fields[_ROW_GROUPS] = (Kind.LIST, ThriftList(Kind.STRUCT, groups))
    footer_bytes = encode_footer(ThriftStruct(fields))
    target.write(footer_bytes)
    return position + len(footer_bytes)


def _load_data(file_io: FileIO, footer: Footer) -> Iterator[bytes]:
    """Yield the bytes between magic and footer; errors of whoever takes them are not errors of this file."""
    with reading(footer.path), closing(file_io.open_input(footer.path)) as source:
        source.seek(len(MAGIC))
        left = footer.start - len(MAGIC)
        while left:
            data = source.read(min(left, _COPIED_BYTES))
            if not data:
                raise FormatError(f"ends {left} bytes before its footer")
            yield data
            left -= len(data)
