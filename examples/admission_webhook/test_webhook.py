"""The webhook in a thread of the test, asked by the cluster's API server over TLS."""

from __future__ import annotations

import datetime
import ipaddress
import threading

import pytest
import webhook
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pybernetes.api import errors

POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


@pytest.fixture
def authority(tmp_path):
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhook")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "tls.key").write_bytes(encoded)
    return tmp_path / "tls.crt", tmp_path / "tls.key"


def test_pods_get_the_label_and_none_comes_by_without_it(pyb_client, authority):
    server = webhook.server(*authority)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"https://127.0.0.1:{server.server_port}/"
        pyb_client.create(webhook.configuration(url, authority[0].read_bytes()))
        made = pyb_client.create({**POD, "metadata": {"name": "one"}})
        assert made["metadata"]["labels"] == {"checked": "yes"}
        made = pyb_client.create({**POD, "metadata": {"name": "two", "labels": {"a": "b"}}})
        assert made["metadata"]["labels"] == {"a": "b", "checked": "yes"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    with pytest.raises(errors.InternalError, match="failed calling webhook"):
        pyb_client.create({**POD, "metadata": {"name": "three"}})
