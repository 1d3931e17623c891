"""The PKI of a cluster: made once, kept good, never readable by others."""

from __future__ import annotations

import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from pybernetes import pki
from pybernetes.cluster import certificates

COMPONENTS = [
    "controller-manager",
    "controller-manager-serving",
    "scheduler",
    "scheduler-serving",
    "kube-proxy",
    "ingress",
    "local-volumes",
    "apiserver-kubelet-client",
]
FRONT_PROXY = ["front-proxy-ca", "front-proxy-client"]
ALL = ["ca", "apiserver", "admin", *COMPONENTS, *FRONT_PROXY, "sa"]


def ensure(folder: Path, *addresses: str, days: float = 0) -> list[str]:
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    return certificates.ensure(folder, ["10.96.0.1", *addresses], now)


def load(folder: Path, name: str) -> pki.Identity:
    return pki.load((folder / f"{name}.key").read_bytes(), (folder / f"{name}.crt").read_bytes())


def test_the_first_start_makes_everything_private_and_the_second_nothing(tmp_path: Path) -> None:
    assert ensure(tmp_path) == ALL
    assert {path.name for path in tmp_path.iterdir()} == {
        *("ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key", "sa.key", "sa.pub"),
        *("controller-manager.crt", "controller-manager.key"),
        *("controller-manager-serving.crt", "controller-manager-serving.key"),
        *("scheduler.crt", "scheduler.key", "scheduler-serving.crt", "scheduler-serving.key"),
        *("kube-proxy.crt", "kube-proxy.key"),
        *("ingress.crt", "ingress.key"),
        *("local-volumes.crt", "local-volumes.key"),
        *("apiserver-kubelet-client.crt", "apiserver-kubelet-client.key"),
        *("front-proxy-ca.crt", "front-proxy-ca.key", "front-proxy-client.crt", "front-proxy-client.key"),
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert ensure(tmp_path) == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_serving_certificate_has_every_name_of_the_api_server(tmp_path: Path) -> None:
    ensure(tmp_path, "192.0.2.7")
    assert pki.subject_names(load(tmp_path, "apiserver")) == {
        *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
        *("localhost", socket.gethostname().lower(), "127.0.0.1", "::1", "10.96.0.1", "192.0.2.7"),
    }


def test_the_administrator_is_in_the_group_of_masters(tmp_path: Path) -> None:
    ensure(tmp_path)
    subject = load(tmp_path, "admin").certificate.subject.rfc4514_string()
    assert subject == "CN=kubernetes-admin,O=system:masters"


@pytest.mark.parametrize(
    ("damaged", "made_again"),
    [
        ("apiserver.crt", ["apiserver"]),
        ("admin.key", ["admin"]),
        ("ca.key", ["ca", "apiserver", "admin", *COMPONENTS]),
        ("front-proxy-ca.crt", FRONT_PROXY),
        ("front-proxy-client.key", ["front-proxy-client"]),
        ("sa.key", ["sa"]),
        ("sa.pub", ["sa"]),
    ],
)
@pytest.mark.parametrize("how", ["missing", "garbage"])
def test_what_is_missing_or_unreadable_is_made_again_with_all_that_depends_on_it(
    tmp_path: Path, damaged: str, made_again: list[str], how: str
) -> None:
    ensure(tmp_path)
    if how == "missing":
        (tmp_path / damaged).unlink()
    else:
        (tmp_path / damaged).write_bytes(b"garbage")
    assert ensure(tmp_path) == made_again
    assert ensure(tmp_path) == []


def test_a_new_address_renews_only_the_serving_certificate(tmp_path: Path) -> None:
    ensure(tmp_path)
    assert ensure(tmp_path, "192.0.2.9") == ["apiserver"]


@pytest.mark.parametrize(
    ("days", "made_again"),
    [
        (330, []),
        (340, ["apiserver", "admin", *COMPONENTS, "front-proxy-client"]),
        (3650 - 365 - 31, ["apiserver", "admin", *COMPONENTS, "front-proxy-client"]),
        (3650 - 365 - 29, ["ca", "apiserver", "admin", *COMPONENTS, *FRONT_PROXY]),
    ],
)
def test_certificates_are_renewed_before_they_end(tmp_path: Path, days: int, made_again: list[str]) -> None:
    ensure(tmp_path)
    assert ensure(tmp_path, days=days) == made_again


def test_an_interrupted_write_leaves_a_pair_that_is_noticed(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / "admin.key").write_bytes(pki.private_pem(pki.new_key()))
    assert ensure(tmp_path) == ["admin"]


def test_both_sides_accept_each_other_in_a_real_handshake(tmp_path: Path) -> None:
    ensure(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.crt"))
    server.verify_mode = ssl.CERT_REQUIRED
    # What OpenSSL calls strict is what newer clients check by default.
    server.verify_flags |= ssl.VERIFY_X509_STRICT
    server.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_cert_chain(tmp_path / "admin.crt", tmp_path / "admin.key")
    left, right = socket.socketpair()
    seen: list[object] = []

    def serve() -> None:
        with server.wrap_socket(left, server_side=True) as connection:
            seen.append((connection.getpeercert() or {})["subject"])
            connection.sendall(b"ok")

    thread = threading.Thread(target=serve)
    thread.start()
    with client.wrap_socket(right, server_hostname="127.0.0.1") as connection:
        assert connection.recv(2) == b"ok"
    thread.join()
    assert seen == [((("organizationName", "system:masters"),), (("commonName", "kubernetes-admin"),))]


def test_while_it_runs_certificates_are_renewed_and_the_authority_stays(tmp_path: Path) -> None:
    ensure(tmp_path)
    authority = (tmp_path / "ca.crt").read_bytes()
    now = datetime.datetime.now(datetime.UTC)
    named = ["apiserver", "admin", *COMPONENTS, "front-proxy-client"]
    for days, expected in ((300, []), (336, named), (9 * 365 + 100, None)):
        moment = now + datetime.timedelta(days=days)
        made = certificates.ensure(tmp_path, ["10.96.0.1"], moment, running=True)
        assert expected is None or made[: len(expected)] == expected
        assert "ca" not in made
    assert (tmp_path / "ca.crt").read_bytes() == authority
    (tmp_path / "ca.crt").unlink()
    assert certificates.ensure(tmp_path, ["10.96.0.1"], running=True) == []


@pytest.mark.parametrize(("days", "expected"), [(0, False), (334, False), (336, True), (-1, True)])
def test_when_a_certificate_is_due(days: int, expected: bool) -> None:
    authority = pki.create_authority("ca")
    identity = pki.issue_server(authority, "x", ["a", "b"])
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    assert certificates.due(identity, authority, {"a"}, now) is expected
    assert certificates.due(identity, authority, {"c"}, now)
    assert certificates.due(identity, pki.create_authority("ca"), {"a"}, now)
    assert certificates.due(None, authority, set(), now)


def test_a_component_that_is_a_master_by_an_older_certificate_is_one_no_more(tmp_path: Path) -> None:
    ensure(tmp_path)
    old = pki.issue_client(load(tmp_path, "ca"), "system:kube-controller-manager", ["system:masters"])
    (tmp_path / "controller-manager.key").write_bytes(old.key_pem)
    (tmp_path / "controller-manager.crt").write_bytes(old.certificate_pem)
    assert ensure(tmp_path) == ["controller-manager"]
    assert pki.organizations(load(tmp_path, "controller-manager")) == set()
