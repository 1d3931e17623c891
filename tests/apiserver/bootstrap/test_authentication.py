"""`extension-apiserver-authentication`."""

from __future__ import annotations

import datetime
import json

import pytest
from apiserver.client import Client
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

import tools
from pybernetes import pki
from pybernetes.apiserver.bootstrap.authentication import combined

PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
NOW = datetime.datetime.now(datetime.UTC).timestamp()


def test_it_says_who_signs_clients_and_nothing_of_proxies_where_there_are_none(client: Client) -> None:
    data = client.get(PATH).json["data"]
    assert data == {"client-ca-file": client.server.ca_file.read_text()}


def test_it_says_how_proxies_are_known(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("proxies")
    proxies = pki.create_authority("proxies")
    (folder / "proxies.crt").write_bytes(proxies.certificate_pem)
    flags = [
        f"--requestheader-client-ca-file={folder}/proxies.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]
    with tools.api_server(folder, *flags) as server:
        data = Client(server).get(PATH).json["data"]
    assert data.pop("client-ca-file") == server.ca_file.read_text()
    assert data == {
        "requestheader-client-ca-file": proxies.certificate_pem.decode(),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


def test_what_other_servers_wrote_stays_until_it_ends() -> None:
    ours, theirs = (pki.create_authority(name).certificate_pem.decode() for name in ("ours", "theirs"))
    wanted = {"client-ca-file": ours, "requestheader-client-ca-file": ours, "requestheader-allowed-names": '["a"]'}
    present = {
        "client-ca-file": theirs + _ended(),
        "requestheader-client-ca-file": theirs,
        "requestheader-allowed-names": '["b"]',
        "nonsense": "x",
    }
    data = combined(present, wanted, NOW)
    assert data["client-ca-file"] == theirs + ours
    assert json.loads(data["requestheader-allowed-names"]) == ["b", "a"]
    assert "nonsense" not in data
    assert combined(data, wanted, NOW) == data
    assert combined({"client-ca-file": "garbage"}, {}, NOW) == {}


def _ended() -> str:
    key = pki.new_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ended")])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - 2 * day).not_valid_after(now - day)
    return pki.Identity(key, made.sign(key, hashes.SHA256())).certificate_pem.decode()
