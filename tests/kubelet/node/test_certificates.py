"""Certificates on disk that cannot be used: another is made or asked for, and the kubelet starts."""

from __future__ import annotations

import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from damage import DAMAGES, damage

from pybernetes import pki
from pybernetes.kubelet.node.certificates import CertificateStore, Pair
from pybernetes.kubelet.servers import serving_certificate


def _pair(name: str = "system:node:n") -> Pair:
    made = pki.issue_client(pki.create_authority("test"), name, ["system:nodes"])
    return Pair(made.certificate_pem, made.key_pem)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_client_certificate_that_is_damaged_counts_as_none(tmp_path: Path, how: str) -> None:
    store, pair = CertificateStore(tmp_path, "kubelet-client"), _pair()
    store.save(pair, 1e9)
    assert store.load() == pair
    damage(store.current.resolve(), how)
    assert store.load() is None
    store.save(pair, 2e9)
    assert store.load() == pair


def test_a_key_of_another_certificate_counts_as_none(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path, "kubelet-client")
    store.save(Pair(_pair().certificate, _pair("other").key), 1e9)
    assert store.load() is None


def _kubelet(folder: Path) -> Any:
    config = SimpleNamespace(tls_cert_file="", tls_private_key_file="", server_tls_bootstrap=False)
    settings = SimpleNamespace(config=config, cert_dir=folder, hostname="n", node_ips=["127.0.0.1"])
    return cast(Any, SimpleNamespace(settings=settings))


@pytest.mark.parametrize("how", DAMAGES)
def test_a_serving_certificate_of_its_own_that_is_damaged_is_made_anew(tmp_path: Path, how: str) -> None:
    kubelet = _kubelet(tmp_path)
    first = serving_certificate(kubelet)
    assert serving_certificate(kubelet) == first
    before = first[0].read_bytes()
    for path in first:
        damage(path, how)
        certificate, key = serving_certificate(kubelet)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        assert certificate.read_bytes() != before
