"""A kubelet's first certificate: with a bootstrap token it may ask for one, and then it is itself.

The kubeconfig that is written names the file of the newest certificate, so that it stays true after renewals.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import yaml

from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock

from .certificates import CLIENT_SIGNER, CertificateStore, request_certificate

CLIENT_USAGES = ("digital signature", "client auth")
log = logging.getLogger(__name__)


async def bootstrap(
    kubeconfig: Path, bootstrap_kubeconfig: Path, node: str, store: CertificateStore, clock: Clock
) -> None:
    """See to it that there is a kubeconfig with a certificate that is good; nothing to do if there is."""
    if _is_good(kubeconfig, clock.now()):
        return
    settings = clientconfig.load(str(bootstrap_kubeconfig))
    pair = store.load()
    if pair is None or pair.life[1] < clock.now():
        async with Client(settings, program="kubelet", component="bootstrap", clock=clock) as client:
            log.info("asking %s for a client certificate", settings.server)
            pair = await request_certificate(client, clock, node, signer=CLIENT_SIGNER, usages=CLIENT_USAGES)
        store.save(pair, clock.now())
    _write(kubeconfig, bootstrap_kubeconfig, store)


def _is_good(kubeconfig: Path, now: float) -> bool:
    if not kubeconfig.exists():
        return False
    try:
        settings = clientconfig.load(str(kubeconfig))
    except clientconfig.ConfigError:
        return False
    if not settings.client_certificate_data:
        return True  # a token or the like: not ours to judge
    from cryptography import x509

    return x509.load_pem_x509_certificate(settings.client_certificate_data).not_valid_after_utc.timestamp() > now


def _write(kubeconfig: Path, bootstrap_kubeconfig: Path, store: CertificateStore) -> None:
    """The same server as the bootstrap's, and our own certificate."""
    document = yaml.safe_load(bootstrap_kubeconfig.read_text())
    context = next(each for each in document["contexts"] if each["name"] == document["current-context"])
    cluster = next(each for each in document["clusters"] if each["name"] == context["context"]["cluster"])
    authority = cluster["cluster"].get("certificate-authority")
    if authority and not os.path.isabs(authority):
        cluster["cluster"]["certificate-authority"] = str((bootstrap_kubeconfig.parent / authority).absolute())
    current = str(store.current.absolute())
    result = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster["cluster"]}],
        "contexts": [
            {
                "name": "default-context",
                "context": {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"},
            }
        ],
        "current-context": "default-context",
        "preferences": {},
        "users": [{"name": "default-auth", "user": {"client-certificate": current, "client-key": current}}],
    }
    kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(kubeconfig, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(result, file)
