"""TLS of the server: versions and ciphers as upstream's defaults, certificates by name, read again when they change.

A context cannot forget a certificate or an authority, so a new one is made from the files when they have
changed, and put in place of the old one while a client says hello (`sni_callback` is called for every handshake, also
for one that names no host). Existing connections stay as they are. An unreadable file is logged and the old one kept.

A client that names no host gets the certificate for the address it has come to, if one was given for that.
"""

from __future__ import annotations

import argparse
import ipaddress
import logging
import re
import ssl
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from . import tls_curves as key_exchanges
from .tls_handshakes import be_patient
from .watched_files import Watched

log = logging.getLogger(__name__)

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""TLS 1.2 by upstream's names, OpenSSL's are the values: what Go offers by default, but no CBC.

Each client of Kubernetes has one of these, and attacks on CBC (Lucky 13) return with each new way to measure time.
"""

INSECURE_CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""Cipher suites that upstream accepts, too, the first four without a warning.

RC4 and 3DES, which it still names, OpenSSL has given up.
"""

TLS13_CIPHERS = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Always on where TLS 1.3 is, in Go as in OpenSSL; naming them changes nothing."""

_HOST = re.compile(r"\*|(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

_ALIASES = {
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}


class Authority(Protocol):
    """The CAs of client certificates; `generation` grows when they change."""

    generation: int
    pem: str

    def refresh(self) -> None: ...


class _Connection(ssl.SSLObject):
    """Reads and writes with OpenSSL's own methods; those of `ssl` only call them, twice for every request."""

    read = property(lambda self: self._sslobj.read)
    write = property(lambda self: self._sslobj.write)


class Context(ssl.SSLContext):
    """A context, and which generation of the first authority it trusts."""

    sslobject_class = _Connection
    generation = 0


class NamedCertificate(msgspec.Struct, frozen=True):
    """A certificate for some names; none given = those in the certificate."""

    certificate: Path
    key: Path
    names: tuple[str, ...] = ()


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags about TLS, but for the certificate itself."""
    add = parser.add_argument_group("TLS").add_argument
    add("--tls-min-version", choices=VERSIONS, default="VersionTLS12", help="the oldest version of TLS")
    add("--tls-cipher-suites", type=cipher_suites, default=tuple(CIPHERS), help="ciphers for TLS 1.2, by Go's names")
    add(
        "--tls-curve-preferences", type=curve_preferences, default=(), help="key exchanges, by Go's numbers; empty: all"
    )
    add(
        "--tls-sni-cert-key", type=named_certificate, action="append", default=[], help="CERT,KEY[:NAME,*.NAME,ADDRESS]"
    )


def cipher_suites(text: str) -> tuple[str, ...]:
    """The ciphers of a flag. Raises ArgumentTypeError."""
    names = [_ALIASES.get(each.strip(), each.strip()) for each in text.split(",") if each.strip()]
    for name in names:
        if name not in CIPHERS and name not in INSECURE_CIPHERS and name not in TLS13_CIPHERS:
            raise argparse.ArgumentTypeError(f"Cipher suite {name} not supported or doesn't exist")
    return tuple(names) or tuple(CIPHERS)


def curve_preferences(text: str) -> tuple[int, ...]:
    """The key exchanges of a flag. Raises ArgumentTypeError."""
    try:
        found = tuple(int(each) for each in text.split(",") if each.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"not numbers with commas between them: {text}") from None
    for problem in key_exchanges.check(found):
        raise argparse.ArgumentTypeError(problem)
    return found


def named_certificate(text: str) -> NamedCertificate:
    """A certificate with its key and names. Raises ArgumentTypeError."""
    files, _, names = text.partition(":")
    pair = [Path(each) for each in files.split(",")]
    if len(pair) != 2:
        raise argparse.ArgumentTypeError("expected comma separated certificate and key file paths")
    for path in pair:
        if not path.is_file():
            raise argparse.ArgumentTypeError(f"no such file: {path}")
    wanted = tuple(_canonical(each.strip().lower()) for each in names.split(",") if each.strip())
    return NamedCertificate(pair[0], pair[1], wanted)


class ServingTLS:
    """The contexts of a server."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        authorities: Sequence[Authority] = (),
        *,
        minimum: str = "VersionTLS12",
        ciphers: Sequence[str] = tuple(CIPHERS),
        named: Sequence[NamedCertificate] = (),
        curves: Sequence[int] = (),
    ) -> None:
        self._default = NamedCertificate(certificate, key)
        self._authorities = tuple(authorities)
        self._minimum = VERSIONS[minimum]
        self._ciphers = tuple(ciphers)
        self._named = tuple(named)
        self._curves = tuple(curves)
        files = [file for each in (self._default, *named) for file in (each.certificate, each.key)]
        self._watched = Watched(files)
        self._trusted: list[int] = []
        self._contexts: dict[str, Context] = {}
        self._load()
        self.context = self._make(self._default)
        """The context to listen with."""
        self.context.sni_callback = self._hello
        self._by_address: dict[str, Context] = {}
        for address in {name for each in named for name in each.names if _is_address(name)}:
            context = self._by_address[address] = self._make(self._default)
            context.sni_callback = partial(self._hello, address=address)

    def at(self, address: str) -> Context:
        """The context for clients that connected to this address."""
        return self._by_address.get(_canonical(address), self.context) if self._by_address else self.context

    def refresh(self) -> None:
        """Read what has changed."""
        for authority in self._authorities:
            authority.refresh()
        if not self._watched.changed() and self._trusted == [each.generation for each in self._authorities]:
            return
        try:
            self._load()
            log.info("certificates were read again")
        except (OSError, ValueError) as error:
            log.error("certificates have changed and cannot be read, the old ones stay: %s", error)

    def _load(self) -> None:
        given: dict[str, Context] = {}
        found: dict[str, Context] = {}
        for each in self._named:
            context = self._make(each)
            for name in each.names or _names_in(each.certificate):
                (given if each.names else found).setdefault(name, context)  # who comes first wins
        # Names that were given win over those in a certificate.
        self._contexts = {"": self._make(self._default), **found, **given}
        self._trusted = [each.generation for each in self._authorities]

    def _hello(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext, address: str = ""
    ) -> None:
        self.refresh()
        connection.context = self._chosen((name or address).lower())

    def _chosen(self, name: str) -> Context:
        contexts = self._contexts
        if name in contexts:
            return contexts[name]
        labels = name.split(".")
        for hidden in range(1, len(labels)):
            pattern = ".".join(["*"] * hidden + labels[hidden:])
            if pattern in contexts:
                return contexts[pattern]
        return contexts[""]

    def _make(self, files: NamedCertificate) -> Context:
        context = Context(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum
        old = [name for name in self._ciphers if name not in TLS13_CIPHERS]
        known = {**CIPHERS, **INSECURE_CIPHERS}
        suites = ":".join(known[name] for name in old or CIPHERS)
        # What came before TLS 1.2 signs with SHA-1, which OpenSSL allows only at its lowest level.
        context.set_ciphers(f"{suites}:@SECLEVEL=0" if self._minimum < ssl.TLSVersion.TLSv1_2 else suites)
        key_exchanges.restrict(context, self._curves)
        context.load_cert_chain(files.certificate, files.key)
        context.set_alpn_protocols(["http/1.1"])
        for authority in self._authorities:
            context.load_verify_locations(cadata=authority.pem)
        if self._authorities:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.generation = self._authorities[0].generation
            be_patient(context)
        return context


def _names_in(certificate: Path) -> list[str]:
    """The names of hosts in a certificate. Not its addresses, which no client can ask for by name."""
    from cryptography import x509

    from pybernetes.pki import names_of

    read = x509.load_pem_x509_certificate(certificate.read_bytes())
    common = [str(each.value) for each in read.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    names = [each.lower() for each in (*common, *names_of(read))]
    return [each for each in names if _HOST.fullmatch(each) and not _is_address(each)]


def _canonical(name: str) -> str:
    """An address in its shortest form; an IPv4 address that came as an IPv6 one is itself. Names stay as they are."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    return str(getattr(address, "ipv4_mapped", None) or address)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
