"""A certificate for a server that was given none, kept in --cert-dir, as upstream does."""

from __future__ import annotations

import os
import time
from pathlib import Path

_KEPT = 335 * 24 * 60 * 60.0  # seconds; it is good for a year


def self_signed(folder: Path, address: str) -> tuple[Path, Path]:
    """The files of the certificate and its key, made if they are not there or will not be good for long."""
    certificate_file, key_file = folder / "apiserver.crt", folder / "apiserver.key"
    # By the file's age: looking into the certificate would load the cryptography at every start.
    if certificate_file.is_file() and key_file.is_file() and time.time() - certificate_file.stat().st_mtime < _KEPT:
        return certificate_file, key_file
    from pybernetes import pki

    # The authority signs this one certificate and is forgotten.
    authority = pki.create_authority(f"{address}-ca")
    identity = pki.issue_server(authority, address, ["localhost", "kubernetes.default.svc", "127.0.0.1", address])
    folder.mkdir(parents=True, exist_ok=True)
    certificate_file.write_bytes(identity.certificate_pem + authority.certificate_pem)
    with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(identity.key_pem)
    return certificate_file, key_file
