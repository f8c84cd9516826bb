"""Adapt streams of the storage to pyarrow, and map pyarrow's errors to Penstock's errors that name the file."""

from __future__ import annotations

import contextlib
import errno
import struct
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from penstock.errors import FormatError, SchemaMismatchError, TableStoreError, UnsupportedFeatureError
from penstock.format.avro.container import CODEC_ERRORS
from penstock.io.failures import FAILURES, to_storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Map errors of the storage to ``StorageError``, and rows that cannot be encoded to ``SchemaMismatchError``."""
    try:
        yield
    except TableStoreError:
        raise
    except FAILURES as error:
        raise to_storage_error("write", path, error) from error
    # UnicodeDecodeError: rows for Avro from a Parquet file whose text is not UTF-8.
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, UnicodeDecodeError) as error:
        raise SchemaMismatchError(f"cannot write rows to {path}: {error}") from error


# Errors of decoders on damaged bytes: Arrow's, Penstock's, fastavro's and the codecs'. ``reading`` wraps only such
# code.
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
# The system refuses a negative position or size, which results from damaged numbers.
_DAMAGED_PLACES: Final = frozenset({None, errno.EINVAL, errno.EOVERFLOW})


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Map errors of the storage to ``StorageError``, and errors of decoders to ``FormatError``.

    Penstock's own errors pass unchanged, except that errors about the content of the file get the path as prefix.
    """
    try:
        yield
    except (FormatError, UnsupportedFeatureError) as error:
        raise type(error)(f"{path}: {error}") from error
    except TableStoreError:
        raise
    except OSError as error:
        if error.errno in _DAMAGED_PLACES:  # an error of pyarrow's decoders, not of the storage
            raise FormatError(f"{path} is damaged: {error}") from error
        raise to_storage_error("read", path, error) from error
    except MemoryError as error:
        raise FormatError(f"{path} is damaged, or holds more than fits into memory: {error!r}") from error
    except _DAMAGES as error:
        raise FormatError(f"{path} cannot be decoded: {type(error).__name__}: {error}") from error


def as_native_file(stream: ArrowAny) -> pa.NativeFile:
    """Return the result of ``FileIO.open_input`` as a pyarrow file, which knows its size."""
    return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
