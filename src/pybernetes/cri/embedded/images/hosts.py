"""Which servers are asked for the images of a registry: containerd's `hosts.toml`, read as containerd reads it.

In each of the folders, the first of `HOST_PORT_/`, `HOST:PORT/` and `_default/` that exists counts; the first folder
that has one wins. Its `[host."URL"]` tables are mirrors, asked in the order they are written; `server` (or the registry
itself, over HTTPS) is asked last. Without any of them the registry itself is asked.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FILE = "hosts.toml"
CAPABILITIES = ("pull", "resolve", "push")
_KEYS = {"capabilities", "ca", "client", "skip_verify", "header", "override_path", "dial_timeout"}


class BadHosts(ValueError):
    """A `hosts.toml` that does not say what it should; names the file."""


@dataclass(frozen=True)
class Host:
    """One server: where its API is, and how it is spoken to."""

    scheme: str
    authority: str
    path: str = "/v2"
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    authorities: tuple[Path, ...] = ()
    """Certificates of authorities beside the machine's."""
    client: tuple[tuple[Path, Path | None], ...] = ()
    """Certificates to show, each with its key (or with the key in the same file)."""
    skip_verify: bool = False
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dial_timeout: float | None = None
    plain_too: bool = False
    """A registry on loopback may speak plain HTTP without configuration."""

    def tls(self) -> ssl.SSLContext:
        """For HTTPS. BadHosts if the certificates cannot be read."""
        context = ssl.create_default_context()
        for path in self.authorities:
            try:
                context.load_verify_locations(path)
            except OSError as error:
                raise BadHosts(f"{path}: no certificates of authorities: {error}") from None
        for certificate, key in self.client:
            try:
                context.load_cert_chain(certificate, key)
            except OSError as error:
                raise BadHosts(f"{certificate}: no certificate with a key: {error}") from None
        if self.skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def hosts(folders: Iterable[Path], registry: str) -> list[Host]:
    """The servers of a registry, in the order to ask; `registry` is the host of an image's name."""
    for root in folders:
        for name in _names(registry):
            folder = root / name
            if folder.is_dir():
                return _read(folder, registry)
    return [_itself(registry)]


def _names(registry: str) -> list[str]:
    host, colon, port = registry.rpartition(":")
    return [*([f"{host}_{port}_"] if colon else []), registry, "_default"]


def _itself(registry: str) -> Host:
    if registry == "docker.io":
        return Host("https", "registry-1.docker.io")
    host = urlsplit(f"//{registry}").hostname or ""
    loopback = host == "localhost" or host == "::1" or host.startswith("127.")
    return Host("https", registry, plain_too=loopback)


def _read(folder: Path, registry: str) -> list[Host]:
    import tomllib

    path = folder / FILE
    try:
        content = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return [_with_certificates(_itself(registry), folder)]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadHosts(f"{path}: {error}") from None
    mirrors = content.pop("host", {})
    if not isinstance(mirrors, dict):
        raise BadHosts(f'{path}: host must be tables, as [host."https://mirror"]')
    found = [_host(path, str(url), table) for url, table in mirrors.items()]
    server = content.pop("server", "")
    if not isinstance(server, str):
        raise BadHosts(f"{path}: server must be a URL")
    if server:
        return [*found, _host(path, server, content)]
    itself = _itself(registry)
    return [*found, _host(path, f"{itself.scheme}://{itself.authority}", content, plain_too=itself.plain_too)]


def _with_certificates(host: Host, folder: Path) -> Host:
    """docker's way: `*.crt` are authorities, `X.cert` and `X.key` are shown."""
    shown = [(each, each.with_suffix(".key")) for each in sorted(folder.glob("*.cert"))]
    return Host(
        host.scheme, host.authority, authorities=tuple(sorted(folder.glob("*.crt"))), client=tuple(shown),
        plain_too=host.plain_too,
    )  # fmt: skip


def _host(path: Path, url: str, table: Any, *, plain_too: bool = False) -> Host:
    if not isinstance(table, dict):
        raise BadHosts(f"{path}: {url} must be a table")
    parts = urlsplit(url if "://" in url else f"https://{url}")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise BadHosts(f"{path}: {url!r} is not the URL of a server: http or https")
    if "@" in parts.netloc:
        raise BadHosts(f"{path}: the URL of a server has no password in it")
    if unknown := sorted(set(table) - _KEYS):
        raise BadHosts(f"{path}: {url}: unknown {', '.join(unknown)}")
    prefix = parts.path.rstrip("/")
    if not _typed(path, table, "override_path", bool, False) and not prefix.endswith("/v2"):
        prefix += "/v2"
    capabilities = _strings(path, table, "capabilities") or list(CAPABILITIES)
    if unknown := sorted(set(capabilities) - {*CAPABILITIES, "referrers"}):
        raise BadHosts(f"{path}: {url}: unknown capability {', '.join(unknown)}")
    return Host(
        parts.scheme,
        parts.netloc,
        prefix,
        frozenset(capabilities),
        tuple(path.parent / each for each in _strings(path, table, "ca")),
        _pairs(path, table),
        _typed(path, table, "skip_verify", bool, False),
        _headers(path, table),
        _seconds(path, _typed(path, table, "dial_timeout", str, "")),
        plain_too,
    )


def _typed(path: Path, table: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    value = table.get(key, default)
    if not isinstance(value, kind):
        raise BadHosts(f"{path}: {key} must be a {kind.__name__}")
    return value


def _strings(path: Path, table: dict[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise BadHosts(f"{path}: {key} must be a string or strings")
    return values


def _pairs(path: Path, table: dict[str, Any]) -> tuple[tuple[Path, Path | None], ...]:
    value = table.get("client", [])
    pairs = [[each] if isinstance(each, str) else each for each in ([value] if isinstance(value, str) else value)]
    for pair in pairs:
        if not isinstance(pair, list) or not 1 <= len(pair) <= 2 or not all(isinstance(each, str) for each in pair):
            raise BadHosts(f"{path}: client must be certificates, or pairs of a certificate and its key")
    return tuple((path.parent / each[0], path.parent / each[1] if each[1:] and each[1] else None) for each in pairs)


def _headers(path: Path, table: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    values = _typed(path, table, "header", dict, {})
    return {str(name): tuple(_strings(path, values, name)) for name in values}


def _seconds(path: Path, text: str) -> float | None:
    if not text:
        return None
    for unit, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0)):
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * factor
            except ValueError:
                break
    raise BadHosts(f'{path}: dial_timeout {text!r} is no duration, as "3s"')
