"""The file formats, by the name that a data file's extension gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.datafile.avro.format import Avro
from penstock.datafile.data_format import DataFileWriter, DataFormat, WrittenFile
from penstock.datafile.orc.format import Orc
from penstock.datafile.parquet.format import Parquet
from penstock.format.file_format import FileFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMATS", "DataFileWriter", "DataFormat", "WrittenFile"]

FORMATS: Final[Mapping[FileFormat, DataFormat]] = {
    FileFormat.PARQUET: Parquet(),
    FileFormat.ORC: Orc(),
    FileFormat.AVRO: Avro(),
}
