"""From the URL of a metadata database to its engine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, urlsplit

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.engine import Engine

ENGINES = ("sqlite", "postgres", "redis", "etcd")
NOT_BUILT = {"tikv": "TiKV", "mysql": "MySQL", "badger": "BadgerDB", "fdb": "FoundationDB"}


def resolved(url: str) -> str:
    """`env:NAME` stands for the address in that environment variable."""
    if not url.startswith("env:"):
        return url
    found = os.environ.get(url.removeprefix("env:"))
    if not found:
        raise ObjectFSError(f"metadata address {url}: there is no such environment variable")
    return found


def connect(url: str) -> Engine:
    """The engine of a URL such as `sqlite:///var/lib/volume.db`. A password may come from META_PASSWORD instead."""
    url = resolved(url)
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ObjectFSError(f"metadata address {masked(url)!r} has no scheme (sqlite://FILE)")
    if not rest:
        raise ObjectFSError(f"metadata address '{scheme}://' names no {'file' if scheme == 'sqlite' else 'host'}")
    if scheme == "sqlite":
        from pybernetes.objectfs.meta.sqlite import SQLiteEngine

        return SQLiteEngine(Path(rest))
    url = with_password(url, os.environ.get("META_PASSWORD", ""))
    if scheme in ("postgres", "postgresql"):
        from pybernetes.objectfs.meta.postgres import PostgresEngine

        return PostgresEngine(url)
    if scheme in ("redis", "rediss"):
        from pybernetes.objectfs.meta.redis import RedisEngine

        return RedisEngine(url)
    if scheme == "etcd":
        from pybernetes.objectfs.meta.etcd import EtcdEngine

        return EtcdEngine(url)
    what = f"{NOT_BUILT[scheme]} ({scheme}://)" if scheme in NOT_BUILT else repr(scheme)
    raise ObjectFSError(f"metadata engine {what} is not built in; there are: {', '.join(ENGINES)}")


def with_password(url: str, password: str) -> str:
    """The URL with a password that was given apart from it."""
    found = re.fullmatch(r"([a-z]+://)(?:([^@/]*)@)?(.*)", url)
    if not password or found is None or ":" in (found[2] or ""):
        return url
    return f"{found[1]}{found[2] or ''}:{quote(password, safe='')}@{found[3]}"


def masked(url: str) -> str:
    """The URL without its password, for logs and process lists."""
    try:
        password = urlsplit(url).password
    except ValueError:
        return url.partition("://")[0] + "://..."
    return url.replace(f":{password}@", ":****@", 1) if password else url
