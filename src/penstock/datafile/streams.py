"""Streams between storage and pyarrow, and what pyarrow raises as errors of the tree that name the file."""

from __future__ import annotations

import contextlib
import errno
import struct
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from penstock.errors import FormatError, SchemaMismatchError, TableStoreError
from penstock.format.avro.codecs import CODEC_ERRORS
from penstock.io.failures import FAILURES, to_storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn what storage refuses into a ``StorageError``, and rows that make no file into a ``SchemaMismatchError``."""
    try:
        yield
    except TableStoreError:
        raise
    except FAILURES as error:
        raise to_storage_error("write", path, error) from error
    # UnicodeDecodeError: rows for Avro, read from a Parquet file whose text is no UTF-8.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, UnicodeDecodeError) as error:
        raise SchemaMismatchError(f"cannot write rows to {path}: {error}") from error


# What decoders make of damaged bytes: Arrow's and ours, fastavro, and the codecs. Nothing else runs below ``reading``.
_DAMAGES: Final = (
    pa.ArrowException,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RecursionError,
    AssertionError,
    MemoryError,
    struct.error,
    SchemaParseException,
    UnknownType,
    *CODEC_ERRORS,
)
# A place before the start of a file or a size below 0, which the system refuses, comes from damaged numbers.
_DAMAGED_PLACES: Final = frozenset({None, errno.EINVAL, errno.EOVERFLOW})


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what storage refuses into a ``StorageError``, and bytes that make no sense into a ``FormatError``.

    Errors of the tree pass as they are, a ``FormatError`` with the path in front.
    """
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    except TableStoreError:
        raise
    except OSError as error:
        if error.errno in _DAMAGED_PLACES:  # pyarrow's decoders, not the system
            raise FormatError(f"{path} is damaged: {error}") from error
        raise to_storage_error("read", path, error) from error
    except MemoryError as error:
        raise FormatError(f"{path} is damaged, or holds more than fits into memory: {error!r}") from error
    except _DAMAGES as error:
        raise FormatError(f"{path} cannot be decoded: {type(error).__name__}: {error}") from error


def as_native_file(stream: ArrowAny) -> pa.NativeFile:
    """Return what ``FileIO.open_input`` gives as a file of pyarrow, which knows its size."""
    return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
