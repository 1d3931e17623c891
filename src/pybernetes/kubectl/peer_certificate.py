"""Describes the error in a server's certificate, with the wording of Go's x509 package."""

from __future__ import annotations

import os
import time
from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RFC3339 = "%Y-%m-%dT%H:%M:%SZ"


def complaint(error: BaseException, host: str, certificate: bytes | None) -> str:
    """Why OpenSSL did not accept a certificate (DER, where it is known)."""
    code = getattr(error, "verify_code", 0)
    if code in (18, 19, 20, 21):
        return "certificate signed by unknown authority"
    shown = _decoded(certificate) if certificate else {}
    times = _times(shown)
    # Go looks at the times before the names, OpenSSL at the names first.
    if code in (9, 10) or times:
        return f"certificate has expired or is not yet valid: {times}".removesuffix(": ")
    if code in (62, 64):
        return _names(shown, host)
    return str(getattr(error, "verify_message", "") or error)


def _decoded(certificate: bytes) -> dict[str, Any]:
    """The fields of a certificate as `ssl.getpeercert` shows them."""
    import _ssl

    pem = b"-----BEGIN CERTIFICATE-----\n" + b2a_base64(certificate) + b"-----END CERTIFICATE-----\n"
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, pem)
        found: dict[str, Any] = _ssl._test_decode_cert(f"/proc/self/fd/{descriptor}")  # type: ignore[attr-defined]
    except OSError:
        return {}
    finally:
        os.close(descriptor)
    return found


def _times(shown: dict[str, Any]) -> str:
    """`current time T is after T`, or `is before T`."""
    now = time.time()
    from calendar import timegm

    local = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(now))
    local = f"{local[:-5]}Z" if local.endswith("+0000") else f"{local[:-2]}:{local[-2:]}"
    for key, word, late in (("notAfter", "after", True), ("notBefore", "before", False)):
        try:
            limit = timegm(time.strptime(str(shown.get(key)), "%b %d %H:%M:%S %Y GMT"))
        except ValueError:
            continue
        if (now > limit) is late:
            return f"current time {local} is {word} {time.strftime(_RFC3339, time.gmtime(limit))}"
    return ""


def _names(shown: dict[str, Any], host: str) -> str:
    """`certificate is valid for A, B, not C`, with only the addresses or only the DNS names, as the host is one."""
    address = ":" in host or host.replace(".", "").isdigit()
    wanted = "IP Address" if address else "DNS"
    valid = [str(value) for kind, value in shown.get("subjectAltName") or () if kind == wanted]
    if valid:
        return f"certificate is valid for {', '.join(valid)}, not {host}"
    if address:
        return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    return f"certificate is not valid for any names, but wanted to match {host}"
