"""Removes finished and stale CertificateSigningRequests.

Woken by: CertificateSigningRequests, and their time. Writes: deletes them: an hour after they were issued, denied or
failed, a day after they were made or approved without more, and when their certificate has expired.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from cryptography import x509

from pybernetes.api import errors
from pybernetes.api.certificates.v1 import CertificateSigningRequest
from pybernetes.client.keys import Key

from ..base import Controller
from ..common.meta import created, seconds
from .requests import is_issued

_HOUR: Final = 3600.0
DECIDED: Final = _HOUR
PENDING: Final = 24 * _HOUR


class CertificateSigningRequestCleanerController(Controller[CertificateSigningRequest]):
    """Cleans."""

    name = "certificatesigningrequest-cleaner-controller"
    kind = CertificateSigningRequest

    async def reconcile(self, key: Key) -> float | None:
        """Delete a request whose time is over; otherwise come back when it is."""
        csr = self.own.get(key)
        if csr is None:
            return None
        ends = min(deadlines(csr), default=None)
        if ends is None:
            return None
        wait = ends - self.clock.now()
        if wait > 0:
            return wait
        try:
            await self.client.delete(CertificateSigningRequest, key.name)
        except errors.NotFound:
            return None
        return None


def deadlines(csr: CertificateSigningRequest) -> Iterable[float]:
    """The moments from each of which on a request is to be deleted."""
    conditions = (csr.status.conditions if csr.status else None) or ()
    issued = is_issued(csr)
    if not conditions:
        yield created(csr) + PENDING
    for each in conditions:
        updated = seconds(each.last_update_time)
        if updated and each.type in ("Denied", "Failed"):
            yield updated + DECIDED
        if each.type == "Approved":
            if updated:
                yield updated + (DECIDED if issued else PENDING)
            if issued:
                yield from _expiry(csr)


def _expiry(csr: CertificateSigningRequest) -> Iterable[float]:
    try:
        encoded = base64.b64decode((csr.status.certificate if csr.status else None) or "")
        yield x509.load_pem_x509_certificate(encoded).not_valid_after_utc.timestamp()
    except ValueError:
        return
