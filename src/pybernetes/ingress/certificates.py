"""The certificates of hosts, from Secrets of type kubernetes.io/tls, chosen by the name that a client says (SNI).

A Secret that is missing or broken concerns its hosts alone: they are served with a certificate that we sign ourselves,
as are hosts without one. An expired certificate is used, so that clients see why they refuse it. What changes is used
by the next handshake; connections that are there go on.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import ssl
from collections.abc import Callable, Mapping

from pybernetes.api.core.v1 import Secret
from pybernetes.client.keys import Key

from .rules import Certificate

log = logging.getLogger(__name__)
TYPE = "kubernetes.io/tls"


class BadSecret(ValueError):
    """A Secret that no certificate can be made of."""


class Loaded:
    """A Secret's certificate, ready to be served."""

    def __init__(self, version: str, context: ssl.SSLContext, names: frozenset[str], until: float) -> None:
        self.version, self.context, self.names, self.until = version, context, names, until

    def fits(self, host: str) -> bool:
        """Whether it names a host."""
        return host in self.names or f"*.{host.partition('.')[2]}" in self.names


class Certificates:
    """The TLS certificates, selected by server name."""

    def __init__(self, secrets: Callable[[Key], Secret | None], now: Callable[[], float]) -> None:
        self._secrets, self._now = secrets, now
        self._loaded: dict[Key, Loaded] = {}
        self._hosts: dict[str, ssl.SSLContext | None] = {}
        self._own: ssl.SSLContext | None = None
        self._first = _context()
        self._first.sni_callback = self._hello

    def at(self, address: str) -> ssl.SSLContext:
        """The context to begin a handshake with; the client's hello decides which one it goes on with."""
        return self._first

    def covers(self, host: str) -> bool:
        """Whether an Ingress asks for TLS for this host, and not just for any."""
        return bool(host) and (host in self._hosts or f"*.{host.partition('.')[2]}" in self._hosts)

    def update(self, wanted: Mapping[str, tuple[Key, Certificate]]) -> dict[Key, list[str]]:
        """Follow the Ingresses and Secrets; the problems of each Ingress."""
        problems: dict[Key, list[str]] = {}
        hosts: dict[str, ssl.SSLContext | None] = {}
        used: set[Key] = set()
        for host, (ingress, certificate) in wanted.items():
            hosts[host], shown = None, host or "*"
            if not certificate.secret.name:
                continue
            try:
                loaded = self._load(certificate.secret)
            except BadSecret as error:
                self._loaded.pop(certificate.secret, None)
                problems.setdefault(ingress, []).append(f"host {shown}: {error}; a self-signed certificate is served")
                continue
            used.add(certificate.secret)
            hosts[host] = loaded.context
            if loaded.until <= self._now():
                when = datetime.datetime.fromtimestamp(loaded.until, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
                what = f"host {shown}: the certificate in secret {certificate.secret.name} expired at {when} UTC"
                problems.setdefault(ingress, []).append(what)
            elif host and not loaded.fits(host):
                what = f"host {host}: the certificate in secret {certificate.secret.name} does not name it"
                problems.setdefault(ingress, []).append(what)
        self._hosts = hosts
        for gone in self._loaded.keys() - used:
            del self._loaded[gone]
        return problems

    def next_expiry(self) -> float | None:
        """When the next certificate expires that has not yet."""
        return min((each.until for each in self._loaded.values() if each.until > self._now()), default=None)

    def _load(self, key: Key) -> Loaded:
        secret = self._secrets(key)
        if secret is None:
            raise BadSecret(f"there is no secret {key.name} of type {TYPE}")
        version = (secret.metadata.resource_version if secret.metadata else None) or ""
        known = self._loaded.get(key)
        if known is None or known.version != version:
            known = self._loaded[key] = _read(key.name, version, secret)
        return known

    def _hello(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        host = (name or "").lower().rstrip(".")
        found = self._hosts.get(host)
        if found is None and host not in self._hosts:
            wildcard = f"*.{host.partition('.')[2]}"
            found = self._hosts.get(wildcard if wildcard in self._hosts else "")
        connection.context = found or self._self_signed()

    def _self_signed(self) -> ssl.SSLContext:
        if self._own is None:
            from pybernetes import pki  # costs 10 MB

            authority = pki.create_authority("pybernetes-ingress")
            identity = pki.issue_server(authority, "ingress.local", ["ingress.local"])
            self._own = _context()
            _load_pair(self._own, identity.certificate_pem, identity.key_pem)
        return self._own


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _read(name: str, version: str, secret: Secret) -> Loaded:
    from cryptography import x509

    from pybernetes.pki import names_of

    data = secret.data or {}
    certificate, key = _bytes(data.get("tls.crt")), _bytes(data.get("tls.key"))
    if not certificate or not key:
        raise BadSecret(f"secret {name} has no tls.crt or no tls.key")
    context = _context()
    try:
        _load_pair(context, certificate, key)
        parsed = x509.load_pem_x509_certificate(certificate)
        names = frozenset(str(each).lower() for each in names_of(parsed))
        until = parsed.not_valid_after_utc.timestamp()
    except (ssl.SSLError, OSError, ValueError) as error:
        raise BadSecret(f"secret {name} has no usable certificate with its key: {_words(error)}") from None
    return Loaded(version, context, names, until)


def _words(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error)[:200]


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """`ssl` reads certificates from files only: one in memory, gone with the call."""
    descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
    with contextlib.closing(os.fdopen(descriptor, "wb", closefd=True)) as file:
        file.write(key + b"\n" + certificate)
        file.flush()
        # A key that asks for its password would wait for a terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: b"")


def _bytes(value: bytes | str | None) -> bytes:
    if isinstance(value, str):
        import base64

        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            return b""
    return value or b""
