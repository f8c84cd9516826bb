"""Streams between storage and pyarrow, and what pyarrow raises as errors of the tree that name the file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import FormatError, SchemaMismatchError
from penstock.io.failures import to_storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn what storage refuses into a ``StorageError``, and rows that make no file into a ``SchemaMismatchError``."""
    try:
        yield
    except OSError as error:
        raise to_storage_error("write", path, error) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatchError(f"cannot write rows to {path}: {error}") from error


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what storage refuses into a ``StorageError``, and bytes that make no sense into a ``FormatError``."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    except OSError as error:
        if error.errno is None:  # pyarrow's decoders, not the system
            raise FormatError(f"{path} is damaged: {error}") from error
        raise to_storage_error("read", path, error) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        raise FormatError(f"{path} cannot be decoded: {error}") from error


def as_native_file(stream: ArrowAny) -> pa.NativeFile:
    """Return what ``FileIO.open_input`` gives as a file of pyarrow, which knows its size."""
    return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
