"""The kinds of certificates/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..types import Always, Base64, Enum, Int32, ListType, Pointer, Required, Time


class CertificateSigningRequest(Kind):
    """Asks a signer for a certificate."""

    spec: Annotated[CertificateSigningRequestSpec | None, Required, Always({})] = None
    status: Annotated[CertificateSigningRequestStatus | None, Always({})] = None


class CertificateSigningRequestSpec(Struct):
    request: Annotated[Base64 | None, Required, Always(None)] = None
    signer_name: Annotated[str | None, Required, Always("")] = None
    expiration_seconds: Annotated[Int32 | None, Pointer] = None
    usages: Annotated[
        list[str] | None,
        Enum(
            "any",
            "cert sign",
            "client auth",
            "code signing",
            "content commitment",
            "crl sign",
            "data encipherment",
            "decipher only",
            "digital signature",
            "email protection",
            "encipher only",
            "ipsec end system",
            "ipsec tunnel",
            "ipsec user",
            "key agreement",
            "key encipherment",
            "microsoft sgc",
            "netscape sgc",
            "ocsp signing",
            "s/mime",
            "server auth",
            "signing",
            "timestamping",
        ),
        ListType("atomic"),
    ] = None
    username: str | None = None
    uid: str | None = None
    groups: Annotated[list[str] | None, ListType("atomic")] = None
    extra: dict[str, list[str]] | None = None


class CertificateSigningRequestStatus(Struct):
    conditions: Annotated[list[CertificateSigningRequestCondition] | None, ListType("map", keys=("type",))] = None
    certificate: Base64 | None = None


class CertificateSigningRequestCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    reason: str | None = None
    message: str | None = None
    last_update_time: Annotated[Time | None, Always(None)] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
