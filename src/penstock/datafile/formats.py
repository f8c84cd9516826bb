"""The file formats, by the format name of a data file's extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.datafile.avro.reader import read_avro
from penstock.datafile.avro.writer import AvroFileWriter
from penstock.datafile.data_format import DataFileWriter, DataFormat, WrittenFile
from penstock.datafile.orc.reader import read_orc
from penstock.datafile.orc.writer import OrcFileWriter
from penstock.datafile.parquet.reader import read_parquet
from penstock.datafile.parquet.writer import ParquetFileWriter
from penstock.format.layout import FileFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMATS", "DataFileWriter", "DataFormat", "WrittenFile"]

FORMATS: Final[Mapping[FileFormat, DataFormat]] = {
    FileFormat.PARQUET: DataFormat(open_writer=ParquetFileWriter, read=read_parquet),
    FileFormat.ORC: DataFormat(open_writer=OrcFileWriter, read=read_orc),
    FileFormat.AVRO: DataFormat(open_writer=AvroFileWriter, read=read_avro),
}
