"""The format of a volume: what `pyb objectfs format` writes once and every client reads.

Secrets of the object store are kept in it, so it is never printed as it is: `public` masks them.
"""

from __future__ import annotations

import json
import uuid as uuids
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta import records, usage
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.records import Attributes

VERSION = 1
SECRETS = ("access_key", "secret_key", "session_token", "encrypt_key")


@dataclass(frozen=True)
class Format:
    """A volume's settings."""

    name: str
    storage: str
    bucket: str
    uuid: str = field(default_factory=lambda: str(uuids.uuid4()))
    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""
    block_size: int = records.BLOCK_SIZE
    compression: str = "none"
    encrypt_key: str = ""
    capacity: int = 0
    inodes: int = 0
    trash_days: float = 0.0
    acl: bool = False
    upload_limit: int = 0
    download_limit: int = 0
    version: int = VERSION

    def public(self) -> dict[str, Any]:
        """The settings as they may be shown."""
        shown = asdict(self)
        for secret in SECRETS:
            if shown[secret]:
                shown[secret] = "removed"
        return shown


def load(engine: Engine) -> Format | None:
    """The volume's format, or None where the database holds no volume."""
    value = engine.read(lambda tx: tx.get(records.SETTING))
    if value is None:
        return None
    try:
        settings = json.loads(value)
        version = settings["version"]
        if version > VERSION:
            raise ObjectFSError(f"the volume has format version {version}; this program knows {VERSION}")
        return Format(**settings)
    except (ValueError, TypeError, KeyError) as error:
        raise ObjectFSError(f"the metadata database holds settings that are not a volume's: {error}") from error


def save(engine: Engine, wanted: Format, now: int) -> Format:
    """Writes the format of a new volume, or changes what may change of an existing one (credentials, limits)."""

    def write(tx: Transaction) -> Format:
        value = tx.get(records.SETTING)
        if value is None:
            root = Attributes(records.ROOT, 0o040777, 0, 0, now, records.ROOT)
            records.store(tx, root)
            records.take_numbers(tx, records.NEXT_INODE, 1)
            usage.charge(tx, 0, records.space(root), 1)
            saved = wanted
        else:
            old = Format(**json.loads(value))
            if wanted.encrypt_key and wanted.encrypt_key != old.encrypt_key:
                raise ObjectFSError(f"the database holds volume {old.name!r}, whose RSA key cannot change")
            for fixed in ("name", "storage", "bucket", "block_size", "compression", "acl"):
                if getattr(old, fixed) != getattr(wanted, fixed):
                    raise ObjectFSError(
                        f"the database holds volume {old.name!r} with {fixed.replace('_', ' ')} "
                        f"{getattr(old, fixed)!r}, which cannot become {getattr(wanted, fixed)!r}"
                    )
            saved = replace(wanted, uuid=old.uuid, encrypt_key=old.encrypt_key)
        tx.put(records.SETTING, json.dumps(asdict(saved)).encode())
        return saved

    return engine.transact(write)
