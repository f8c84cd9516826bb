"""All decoders of files, each with a valid file."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.api.catalog import Catalog
from penstock.datafile.formats import FORMATS
from penstock.datafile.types import to_arrow_schema
from penstock.format.avro.container import Block, encode_container
from penstock.format.avro.values import encode_long, encode_text
from penstock.format.consumer import decode_consumer, encode_consumer
from penstock.format.layout import FileFormat, TableLayout
from penstock.format.manifest.files import decode_file_numbers, decode_manifest, decode_manifest_list
from penstock.format.manifest.index_manifest import decode_index_files
from penstock.format.schema import assign_field_ids, decode_schema
from penstock.format.snapshot import decode_hint, decode_snapshot, encode_hint
from penstock.format.success_file import SuccessFile, decode_success_file, encode_success_file
from penstock.format.tag import decode_tag
from penstock.format.text.json import decode_json, encode_json
from penstock.format.types.ddl import parse_columns
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions
from penstock.table.lease import LeaseFiles, LeaseRecord
from penstock.table.mark_done.marks import Ledger, Marked, load_ledger, save_ledger
from penstock.table.process import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STORE: Final = MemoryFileIO("fuzz")
_ROOT: Final = "memory://fuzz/t"
_COLUMNS: Final = (
    "id BIGINT NOT NULL, v STRING, x DOUBLE, d DECIMAL(20, 3), day DATE, at TIMESTAMP(6), b BYTES, tags ARRAY<STRING>, "
    "r ROW<a INT, s STRING>, m MAP<STRING, INT>"
)
_ROWS: Final = 400
_INDEX_SCHEMA: Final = (
    '{"type":"record","name":"r","fields":[{"name":"_KIND","type":"int"},{"name":"_INDEX_TYPE","type":"string"},'
    '{"name":"_FILE_NAME","type":"string"}]}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A decoder for one kind of file.

    Attributes:
        name: name of the kind.
        valid: bytes of a valid file.
        decode: decodes bytes to a value that can be compared; raises subclasses of ``TableStoreError``.
    """

    name: str
    valid: bytes
    decode: Callable[[bytes], object]


def load_decoders() -> dict[str, Decoder]:
    """Return every decoder by name, with a file from our own writers."""
    decoders = [*_metadata_decoders(), *_state_decoders(), *_data_decoders()]
    return {decoder.name: decoder for decoder in decoders}


def _metadata_decoders() -> Iterable[Decoder]:
    with tempfile.TemporaryDirectory() as root:
        catalog = Catalog(root)
        catalog.create_database("d")
        for name, codec in (("t", "zstd"), ("plain", "none")):
            options = {"manifest.compression": codec}
            table = catalog.create_table(
                f"d.{name}", "id BIGINT, v STRING, dt STRING", partition_by=["dt"], options=options
            )
            for day in range(4):
                table.append(pa.table({"id": [day, 2], "v": ["a", "b"], "dt": [f"2026-01-0{day + 1}", "2026-02-01"]}))
            location = Path(table.location)
            suffix = "" if codec == "zstd" else "-plain"
            manifests = sorted(location.glob("manifest/manifest-*"), key=lambda path: path.stat().st_size)
            lists = [path.read_bytes() for path in manifests if path.name.startswith("manifest-list-")]
            entries = [path.read_bytes() for path in manifests if not path.name.startswith("manifest-list-")]
            yield Decoder(name=f"manifest{suffix}", valid=entries[-1], decode=partial(decode_manifest, path="m"))
            yield Decoder(name=f"numbers{suffix}", valid=entries[-1], decode=partial(decode_file_numbers, path="m"))
            yield Decoder(name=f"list{suffix}", valid=lists[-1], decode=partial(decode_manifest_list, path="l"))
        table.create_tag("a", time_retained="1 d")
        for name, file, decode in (
            ("snapshot", "snapshot/snapshot-4", partial(decode_snapshot, path="snapshot/snapshot-4")),
            ("schema", "schema/schema-0", partial(decode_schema, path="schema-0")),
            ("tag", "tag/tag-a", partial(decode_tag, path="tag-a")),
        ):
            yield Decoder(name=name, valid=(location / file).read_bytes(), decode=decode)


def _state_decoders() -> Iterable[Decoder]:
    """Yield decoders of index manifests, and of small files that do not belong to a snapshot."""
    record = encode_long(0) + encode_text("DELETION_VECTORS") + encode_text("index-1")
    yield Decoder(
        name="index-manifest",
        valid=encode_container(_INDEX_SCHEMA, [Block(3, record * 3)]),
        decode=partial(decode_index_files, path="i"),
    )
    statistics = encode_json({"snapshotId": 1, "schemaId": 0, "mergedRecordCount": 7, "colStats": {"id": {"colId": 0}}})
    yield Decoder(
        name="statistics",
        valid=statistics,
        decode=lambda data: decode_json(data, "statistics file", "s").integer("schemaId"),
    )
    yield Decoder(name="hint", valid=encode_hint(1234), decode=decode_hint)
    yield Decoder(name="consumer", valid=encode_consumer(17), decode=partial(decode_consumer, path="c"))
    success = encode_success_file(SuccessFile(creation_millis=1, modification_millis=2))
    yield Decoder(name="success", valid=success, decode=partial(decode_success_file, path="_SUCCESS"))
    save_ledger(_STORE, _ROOT, Ledger(checked_millis=5, partitions={"dt=1": Marked(rows=3, millis=4)}))
    yield Decoder(name="ledger", valid=_STORE.read(TableLayout(_ROOT).done_ledger_path), decode=_load_ledger)
    # With a process: a lease without one counts as damaged, and then is dated by its file.
    process = Process(host="h", machine="m", pid=7, started=5)
    lease = LeaseRecord(epoch=1, token="a", process=process, acquired_millis=1, expires_millis=2, ttl_ms=3)  # noqa: S106 - none
    LeaseFiles(_STORE, _ROOT, "q").put(lease)
    path = f"{_ROOT}/.penstock/leases/q-1"
    yield Decoder(name="lease", valid=_STORE.read(path), decode=partial(_load_lease, path))


def _load_ledger(data: bytes) -> object:
    _STORE.write(TableLayout(_ROOT).done_ledger_path, data)
    return load_ledger(_STORE, _ROOT)


def _load_lease(path: str, data: bytes) -> object:
    _STORE.write(path, data)
    return LeaseFiles(_STORE, _ROOT, "q").load_newest()


def _data_decoders() -> Iterable[Decoder]:
    fields, _ = assign_field_ids(parse_columns(_COLUMNS))
    batch = pa.RecordBatch.from_pylist([_row(number) for number in range(_ROWS)], schema=to_arrow_schema(fields))

    def read(file_format: FileFormat, data: bytes) -> pa.Table:
        path = f"{_ROOT}/damaged.{file_format}"
        _STORE.write(path, data)
        batches = FORMATS[file_format].read(_STORE, path, fields, batch_rows=100)
        # Not converted to Python values: Arrow's dates go beyond the year 9999, Python's do not.
        return pa.Table.from_batches(batches, schema=batch.schema)

    for file_format in FileFormat:
        if file_format not in FORMATS:
            continue
        path = f"{_ROOT}/valid.{file_format}"
        _STORE.delete(path)
        writer = FORMATS[file_format].open_writer(_STORE, path, fields, FormatOptions())
        writer.write(batch)
        writer.close()
        yield Decoder(name=file_format.value, valid=_STORE.read(path), decode=partial(read, file_format))


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "v": None if number % 7 == 0 else f"value {number % 50}",
        "x": number / 3,
        "day": number,
        "at": number * 86_400_000_000,
        "b": bytes([number % 256]),
        "tags": [str(number)] * (number % 3),
        "r": {"a": number, "s": "x"},
        "m": [(f"k{number}", number)],
    }
