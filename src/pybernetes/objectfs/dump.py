"""A volume's metadata as a file, to keep it or to move it to another engine: a line of JSON a record, by gzip.

Left out is what belongs to clients (sessions, locks, journals) and, unless asked for, the secrets of the object store.
A dump of a volume that is being written may be of several moments; `fsck` says so.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO, Any

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.format import SECRETS, Format
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.namespace import forget

KIND = "objectfs metadata"
VERSION = 1
# First letters of keys that belong to clients.
OF_CLIENTS = (b"S", b"F", b"L", b"J")
BATCH = 64


def dump(engine: Engine, settings: Format, file: IO[bytes], secrets: bool) -> Iterator[int]:
    """Writes everything; yields the number of records now and then."""
    kept = asdict(settings)
    if not secrets:
        kept |= dict.fromkeys(SECRETS, "")
    with gzip.open(file, "wb", compresslevel=3) as packed:
        packed.write(_line({"kind": KIND, "version": VERSION, "setting": kept}))
        count = 0
        for key, value in engine.scan(b""):
            if key == records.SETTING or key[:1] in OF_CLIENTS:
                continue
            packed.write(_line([base64.b64encode(key).decode(), base64.b64encode(value).decode()]))
            count += 1
            if count % 1000 == 0:
                yield count
        packed.write(_line({"records": count}))
        yield count


def load(engine: Engine, file: IO[bytes]) -> Iterator[int]:
    """Fills an empty database; yields the number of records now and then. The volume exists when all are there."""
    if next(iter(engine.scan(b"", limit=1)), None) is not None:
        raise ObjectFSError("the metadata database is not empty")
    try:
        with gzip.open(file, "rb") as packed:
            yield from _load(engine, packed)
    except (gzip.BadGzipFile, EOFError, ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ObjectFSError(f"this is not a whole dump of a volume's metadata: {error}") from error


def _load(engine: Engine, packed: Any) -> Iterator[int]:
    head = json.loads(packed.readline())
    if not isinstance(head, dict) or head.get("kind") != KIND:
        raise ValueError("its first line is of something else")
    if head["version"] > VERSION or head["setting"]["version"] > formats.VERSION:
        raise ObjectFSError(f"the dump has version {head['version']}; this program knows {VERSION}")
    setting = Format(**head["setting"])
    count, batch, unnamed, end = 0, [], [], None
    for line in packed:
        row = json.loads(line)
        if isinstance(row, dict):
            end = row["records"]
            break
        key, value = base64.b64decode(row[0], validate=True), base64.b64decode(row[1], validate=True)
        if key[:1] == b"A" and key[9:] == b"I":
            attributes = records.Attributes.decode(records.number_at(key, 1), value)
            if attributes.nlink == 0:
                unnamed.append(attributes)
        batch.append((key, value))
        count += 1
        if len(batch) == BATCH:
            _put(engine, batch)
            batch = []
            yield count
    if end != count:
        raise ValueError(f"it ends after {count} records")
    _put(engine, batch)
    for attributes in unnamed:
        # Removed while they were open: their clients do not use this database.
        engine.transact(lambda tx, each=attributes: forget(tx, each))  # type: ignore[misc]
    engine.transact(lambda tx: tx.put(records.SETTING, json.dumps(asdict(setting)).encode()))
    yield count


def _put(engine: Engine, batch: list[tuple[bytes, bytes]]) -> None:
    def write(tx: Transaction) -> None:
        for key, value in batch:
            tx.put(key, value)

    engine.transact(write)


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
