"""`pyb objectfs format META NAME --storage file --bucket WHERE`: makes a volume.

On an existing volume it changes what may change (credentials, limits) and nothing else.
"""

from __future__ import annotations

import argparse
import os
import re
import time
import uuid
from pathlib import Path

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.data.codec import COMPRESSIONS, open_codec
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.format import Format
from pybernetes.objectfs.meta.urls import connect
from pybernetes.objectfs.objects.store import ObjectStore, open_store

NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META", help="metadata database, e.g. sqlite:///var/lib/volume.db")
    parser.add_argument("name", metavar="NAME", help="name of the volume")
    parser.add_argument("--storage", default="file", help="kind of object store: file, s3 (also minio, ceph, oss)")
    parser.add_argument("--bucket", required=True, metavar="WHERE", help="folder or bucket of the objects")
    for flag in ("access-key", "secret-key", "session-token"):
        variable = flag.replace("-", "_").upper()
        parser.add_argument(
            f"--{flag}", default=os.environ.get(variable, ""), help=f"also by {variable}; @FILE reads it from a file"
        )
    parser.add_argument("--block-size", type=int, default=4096, metavar="KIB", help="size of objects")
    parser.add_argument("--capacity", type=float, default=0, metavar="GIB", help="limit of bytes; 0 is none")
    parser.add_argument("--inodes", type=int, default=0, help="limit of files; 0 is none")
    parser.add_argument("--trash-days", type=float, default=0, help="how long removed files are kept in .trash")
    parser.add_argument("--enable-acl", action="store_true", help="POSIX access control lists")
    parser.add_argument("--compress", default="none", choices=COMPRESSIONS, help="of objects")
    parser.add_argument("--encrypt-rsa-key", default="", metavar="FILE", help="PEM; its passphrase in RSA_PASSPHRASE")
    parser.add_argument("--upload-limit", type=int, default=0, metavar="MBIT/S", help="of each client; 0 is none")
    parser.add_argument("--download-limit", type=int, default=0, metavar="MBIT/S", help="of each client; 0 is none")


def run(arguments: argparse.Namespace) -> int:
    if not NAME.fullmatch(arguments.name):
        raise ObjectFSError(
            f"volume name {arguments.name!r}: 3 to 63 lower-case letters, digits and '-' are wanted, no '-' at the ends"
        )
    if not 64 <= arguments.block_size <= 16384 or arguments.block_size & (arguments.block_size - 1):
        raise ObjectFSError(f"--block-size {arguments.block_size}: a power of two from 64 to 16384 (KiB) is wanted")
    for flag in ("capacity", "inodes", "trash_days", "upload_limit", "download_limit"):
        if getattr(arguments, flag) < 0:
            raise ObjectFSError(f"--{flag.replace('_', '-')} cannot be negative")
    bucket = os.path.abspath(arguments.bucket) if arguments.storage == "file" else arguments.bucket
    wanted = Format(
        name=arguments.name,
        storage=arguments.storage,
        bucket=bucket,
        access_key=read_secret(arguments.access_key),
        secret_key=read_secret(arguments.secret_key),
        session_token=read_secret(arguments.session_token),
        block_size=arguments.block_size << 10,
        capacity=int(arguments.capacity * (1 << 30)),
        inodes=arguments.inodes,
        trash_days=arguments.trash_days,
        acl=arguments.enable_acl,
        compression=arguments.compress,
        encrypt_key=Path(arguments.encrypt_rsa_key).read_text() if arguments.encrypt_rsa_key else "",
        upload_limit=arguments.upload_limit << 17,
        download_limit=arguments.download_limit << 17,
    )
    open_codec(wanted)
    store = open_store(wanted)
    store.create()
    check_store(store, wanted)
    engine = connect(arguments.meta)
    try:
        saved = formats.save(engine, wanted, time.time_ns())
        engine.sync()
    finally:
        engine.close()
    print(f"Volume {saved.name!r} is formatted: {saved.public()}")
    return 0


def read_secret(value: str) -> str:
    """A secret, or what is in the file that `@FILE` names."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ObjectFSError(f"cannot read a secret from {value[1:]}: {error}") from None


def check_store(store: ObjectStore, wanted: Format) -> None:
    """Writes, reads and deletes one object, so that wrong credentials show here and not at the first write."""
    key, data = f"testing/{uuid.uuid4()}", os.urandom(100)
    store.put(key, data)
    found = store.get(key)
    store.delete(key)
    if found != data:
        raise ObjectFSError(f"object store {wanted.bucket} returned other bytes than were written")
