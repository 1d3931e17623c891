"""Keys and bytes with revisions: what a store promises (`base`), the stores, and the watch cache above them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybernetes.store.base import Store


def open_store(
    url: str | Sequence[str],
    *,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
    writing: Callable[[], int] = int,
) -> Store:
    """The store behind a URL, not yet started: `memory://`, `sqlite:///path/to/file.db`, or etcd's endpoints.

    Endpoints are `http://host:port` or `https://host:port`, several in a list or separated by commas; the files are for
    their TLS. `writing` tells how many writes the caller has in hand. Each back end is imported when it is asked for.
    """
    urls = [part.strip() for part in url.split(",")] if isinstance(url, str) else list(url)
    first = urls[0] if urls else ""
    if first.startswith(("http://", "https://")):
        from pybernetes.store.etcd import EtcdStore

        return EtcdStore(urls, ca_file=ca_file, cert_file=cert_file, key_file=key_file)
    if first == "memory://":
        from pybernetes.store.memory import MemoryStore

        return MemoryStore()
    if isinstance(url, str) and url.startswith("sqlite:///"):
        from pybernetes.store.sqlite import SQLiteStore

        return SQLiteStore("/" + url.removeprefix("sqlite:///").lstrip("/"), writing=writing)
    raise ValueError(f"not a store: {url!r}; use memory://, sqlite:///path/to/file.db or http(s)://host:port of etcd")
