"""The kubelet's certificates: asked for by a CertificateSigningRequest, kept in a folder, and renewed in time.

A certificate and its key are one file `NAME-<time>.pem`, and `NAME-current.pem` is a link to the newest, as upstream
keeps them. A new one is asked for after 70 to 90 % of the old one's life, at a moment that is different for each node.
"""

from __future__ import annotations

import base64
import datetime
import logging
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pybernetes import pki
from pybernetes.api import errors
from pybernetes.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.component import state_files

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER: Final = "kubernetes.io/kubelet-serving"
LOOK: Final = 300.0
"""Seconds between two looks at certificates that others may have renewed."""
PATIENCE: Final = 900.0
"""Seconds that a request is waited for; upstream's."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    @property
    def life(self) -> tuple[float, float]:
        """From when until when it is good, in seconds since 1970."""
        from cryptography import x509

        found = x509.load_pem_x509_certificate(self.certificate)
        return found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()

    def check(self) -> None:
        """Raise ValueError if these are not a certificate and its key."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        certificate = x509.load_pem_x509_certificate(self.certificate)
        key = serialization.load_pem_private_key(self.key, None)
        form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        if key.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
            raise ValueError("the key is not that of the certificate")

    def renew_at(self, part: float) -> float:
        """When so much of its life is over."""
        begin, end = self.life
        return begin + (end - begin) * part


class CertificateStore:
    """The pairs of one name in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    @property
    def current(self) -> Path:
        """The file that is always the newest pair."""
        return self._folder / f"{self._name}-current.pem"

    def load(self) -> Pair | None:
        """The newest signed pair, if there is one. (What is no link was made here to begin with.)

        One that cannot be used is set aside, and another is asked for.
        """
        return load_pair(self.current, self.current) if self.current.is_symlink() else None

    def save(self, pair: Pair, now: float) -> None:
        """Keep a new pair."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        when = datetime.datetime.fromtimestamp(now, datetime.UTC)
        path = self._folder / f"{self._name}-{when:%Y-%m-%d-%H-%M-%S}.pem"
        state_files.write(path, pair.certificate + pair.key)
        link = self.current.with_suffix(".tmp")
        link.unlink(missing_ok=True)
        link.symlink_to(path.name)
        os.replace(link, self.current)
        state_files.sync_folder(self._folder)


def read_pair(certificate: Path, key: Path) -> Pair | None:
    """The pair in two files (or one); None if it is not there."""
    try:
        return Pair(_blocks(certificate, "CERTIFICATE"), _blocks(key, "PRIVATE KEY"))
    except FileNotFoundError:
        return None


def load_pair(certificate: Path, key: Path) -> Pair | None:
    """The pair in two files (or one) of ours; None if it is not there, or had to be set aside."""
    try:
        pair = read_pair(certificate, key)
        if pair is not None:
            pair.check()
        return pair
    except (OSError, ValueError) as error:
        for path in {certificate, key}:
            state_files.set_aside(path, error)
        return None


def _blocks(path: Path, kind: str) -> bytes:
    wanted, inside = [], False
    for line in state_files.content(path).decode().splitlines():
        if line.startswith("-----BEGIN") and kind in line:
            inside = True
        if inside:
            wanted.append(line)
        if line.startswith("-----END"):
            inside = False
    return ("\n".join(wanted) + "\n").encode()


async def request_certificate(
    client: Client, clock: Clock, node: str, *, signer: str, usages: Sequence[str], names: Sequence[str] = ()
) -> Pair:
    """Ask for a certificate as this node, and wait until it is approved and signed; raises `TimeoutError`."""
    key = pki.new_key()
    request = pki.signing_request(key, f"system:node:{node}", ["system:nodes"], names)
    csr = CertificateSigningRequest(
        metadata=ObjectMeta(generate_name="csr-"),
        spec=CertificateSigningRequestSpec(
            request=base64.b64encode(request).decode(), signer_name=signer, usages=list(usages)
        ),
    )
    created = await client.create(csr)
    assert created.metadata is not None
    name = created.metadata.name or ""
    deadline = clock.monotonic() + PATIENCE
    delay = 0.05
    while clock.monotonic() < deadline:
        found = await client.get(CertificateSigningRequest, name)
        status = found.status
        for condition in (status.conditions if status else None) or ():
            if condition.type in ("Denied", "Failed"):
                raise TimeoutError(f"certificate signing request {name} was {condition.type}: {condition.message}")
        if status is not None and status.certificate:
            return Pair(base64.b64decode(status.certificate), pki.private_pem(key))
        await clock.sleep(delay)
        delay = min(2 * delay, 2.0)
    raise TimeoutError(f"certificate signing request {name} was not signed in time")


class Rotation:
    """Renews one certificate for ever. `use` is called with each new one, also one that another process put there."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        node: str,
        store: CertificateStore,
        use: Callable[[Pair], None],
        *,
        signer: str,
        usages: Sequence[str],
        names: Sequence[str] = (),
        initial: Pair | None = None,
        reread: Callable[[], Pair | None] = lambda: None,
    ) -> None:
        """`initial` is what is used now; `reread` checks whether another process has replaced the file."""
        self._reread = reread
        self._client, self._clock, self._node, self._store, self._use = client, clock, node, store, use
        self._signer, self._usages, self._names = signer, usages, names
        self._part = 0.7 + 0.2 * random.random()
        self._pair = initial or store.load()
        self.failures = 0
        """Requests that brought no certificate."""

    def expires(self) -> float | None:
        """When the certificate in use ends, in seconds since 1970; None without one."""
        return self._pair.life[1] if self._pair else None

    async def run(self) -> None:
        """Renew until cancelled."""
        failures = 0
        while True:
            if self._pair is not None:
                self._take_others()
                left = self._pair.renew_at(self._part) - self._clock.now()
                if left > 0:
                    await self._clock.sleep(min(left, LOOK))
                    continue
            try:
                self._pair = await request_certificate(
                    self._client,
                    self._clock,
                    self._node,
                    signer=self._signer,
                    usages=self._usages,
                    names=self._names,
                )
                self._store.save(self._pair, self._clock.now())
                self._use(self._pair)
                failures = 0
            except (errors.APIError, OSError, TimeoutError) as error:
                failures += 1
                self.failures += 1
                log.warning("a new certificate cannot be had from %s: %s", self._signer, error)
                await self._clock.sleep(min(2.0**failures, 300.0))

    def _take_others(self) -> None:
        other = self._reread()
        if other is not None and self._pair is not None and other.life[1] > self._pair.life[1]:
            log.info("the certificate was renewed by another process")
            self._pair = other
            self._use(other)
