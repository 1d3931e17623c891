"""Certificates by SNI: from Secrets, changed while clients are connected, broken for one host alone."""

from __future__ import annotations

import base64
import datetime
import ssl
import time

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from ingress.proxy import Proxy, echo, ingress, proxy

from pybernetes import pki
from pybernetes.api.core.v1 import Secret
from pybernetes.client.keys import Key
from pybernetes.ingress.certificates import Certificates

WEB = ("/", "Prefix", "web")


class Secrets:
    """Secrets in memory, signed by an authority that the clients trust."""

    def __init__(self) -> None:
        self.authority = pki.create_authority("test")
        self.there: dict[Key, Secret] = {}
        self.version = 0

    def put(self, name: str, *hosts: str, key: bytes | None = None, certificate: bytes | None = None) -> None:
        made = pki.issue_server(self.authority, hosts[0], hosts)
        self.version += 1
        pair = {"tls.crt": certificate or made.certificate_pem, "tls.key": made.key_pem if key is None else key}
        data = {name: base64.b64encode(value).decode() for name, value in pair.items()}
        metadata = {"name": name, "namespace": "default", "resourceVersion": str(self.version)}
        self.there[Key("default", name)] = msgspec.convert({"metadata": metadata, "data": data}, Secret)

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.certificate_pem.decode())


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


def certificates(secrets: Secrets) -> Certificates:
    return Certificates(secrets.there.get, time.time)


def tls(secret: str, *hosts: str) -> list[dict[str, object]]:
    return [{"secretName": secret, "hosts": list(hosts)}]


async def serial(p: Proxy, host: str, context: ssl.SSLContext) -> int:
    """The number of the certificate that a host is served with."""
    client = await p.connect(context, host)
    presented = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    client.writer.close()
    return x509.load_der_x509_certificate(presented).serial_number


async def test_each_host_has_its_own_certificate_and_a_change_is_seen_by_the_next_client(secrets: Secrets) -> None:
    made = certificates(secrets)
    secrets.put("one", "one.example")
    secrets.put("two", "*.two.example")
    async with proxy(certificates=made) as p:
        p.put(
            ingress("a", WEB, host="one.example", tls=tls("one", "one.example")),
            ingress("b", WEB, host="x.two.example", tls=tls("two", "*.two.example")),
        )
        assert made.update(p.routes.certificates()) == {}
        await p.serve("web", echo("one"))
        client = await p.connect(secrets.client(), "one.example")
        first = await client.ask("/", "one.example")
        assert "X-Forwarded-Proto: https" in first.sent
        assert f"X-Forwarded-Port: {p.tls_port}" in first.sent
        assert (await (await p.connect(secrets.client(), "x.two.example")).ask("/", "x.two.example")).status == 200
        before = await serial(p, "one.example", secrets.client())
        secrets.put("one", "one.example")
        assert made.update(p.routes.certificates()) == {}
        assert await serial(p, "one.example", secrets.client()) != before
        assert (await client.ask("/", "one.example")).status == 200  # who was connected goes on


async def test_tls_without_hosts_is_for_the_hosts_of_the_rules_and_for_clients_that_name_no_other(
    secrets: Secrets,
) -> None:
    made = certificates(secrets)
    secrets.put("rules", "one.example")
    secrets.put("any", "unknown.example")
    secrets.put("own", "two.example")
    async with proxy(certificates=made) as p:
        p.put(
            ingress("a", WEB, host="one.example", tls=tls("rules")),
            ingress("b", WEB, tls=tls("any")),
            ingress("c", WEB, host="two.example", tls=tls("own", "two.example")),
        )
        assert made.update(p.routes.certificates()) == {}
        await p.serve("web", echo("one"))
        for host in ("one.example", "two.example", "unknown.example"):
            assert (await (await p.connect(secrets.client(), host)).ask("/", host)).status == 200
        assert (await p.ask("/", "one.example")).status == 308
        assert (await p.ask("/", "unknown.example")).status == 200, "plain requests of any host are redirected by none"
        del secrets.there[Key("default", "any")]
        (problem,) = made.update(p.routes.certificates())[Key("default", "b")]
        assert problem.startswith("host *: there is no secret any of type kubernetes.io/tls")


async def test_a_broken_secret_concerns_its_host_alone(secrets: Secrets) -> None:
    made = certificates(secrets)
    secrets.put("good", "good.example")
    other = pki.issue_server(secrets.authority, "x", ["x"])
    secrets.put("mixed", "mixed.example", key=other.key_pem)
    secrets.put("empty", "empty.example", key=b"", certificate=b"nonsense")
    secrets.put("wrong", "elsewhere.example")
    names = ("good", "mixed", "empty", "missing", "wrong")
    async with proxy(certificates=made) as p:
        for name in names:
            p.put(ingress(name, WEB, host=f"{name}.example", tls=tls(name, f"{name}.example")))
        problems = made.update(p.routes.certificates())
        said = {key.name: texts for key, texts in problems.items()}
        assert said.keys() == set(names) - {"good"}
        assert "mixed.example: secret mixed has no usable certificate with its key" in said["mixed"][0]
        assert "secret empty has no tls.crt or no tls.key" in said["empty"][0]
        assert "there is no secret missing of type kubernetes.io/tls" in said["missing"][0]
        assert "does not name it" in said["wrong"][0]
        await p.serve("web", echo("one"))
        assert (await (await p.connect(secrets.client(), "good.example")).ask("/", "good.example")).status == 200
        careless = ssl.create_default_context()
        careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
        for name in ("mixed", "empty", "missing", "unknown"):
            with pytest.raises(ssl.SSLCertVerificationError):
                await p.connect(secrets.client(), f"{name}.example")
            client = await p.connect(careless, f"{name}.example")
            assert (await client.ask("/", f"{name}.example")).status == (404 if name == "unknown" else 200)


async def test_an_expired_certificate_is_served_with_an_event(secrets: Secrets) -> None:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "old.example")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=9)).not_valid_after(
        now - datetime.timedelta(days=1)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("old.example")]), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    made = certificates(secrets)
    secrets.put("old", "old.example", key=pki.private_pem(key), certificate=signed.public_bytes(Encoding.PEM))
    async with proxy(certificates=made) as p:
        p.put(ingress("old", WEB, host="old.example", tls=tls("old", "old.example")))
        problems = made.update(p.routes.certificates())
        assert "old.example: the certificate in secret old expired at" in problems[Key("default", "old")][0]
        with pytest.raises(ssl.SSLCertVerificationError, match=r"self.signed|expired"):
            await p.connect(secrets.client(), "old.example")


async def test_plain_requests_are_redirected_where_a_host_has_tls_unless_an_ingress_says_no(secrets: Secrets) -> None:
    made = certificates(secrets)
    secrets.put("one", "one.example", "two.example")
    async with proxy(certificates=made) as p:
        p.put(
            ingress("a", WEB, host="one.example", tls=tls("one", "one.example")),
            ingress("b", WEB, host="two.example", tls=tls("one", "two.example"), annotations={"ssl-redirect": "false"}),
            ingress("c", WEB, host="three.example"),
            ingress("d", WEB, host="four.example", annotations={"force-ssl-redirect": "true"}),
        )
        made.update(p.routes.certificates())
        await p.serve("web", echo("one"))
        answer = await p.ask("/x?y=1", "one.example:81")
        assert (answer.status, answer.headers["location"]) == (308, f"https://one.example:{p.tls_port}/x?y=1")
        found = [(await p.ask("/", f"{name}.example")).status for name in ("two", "three", "four")]
        assert found == [200, 200, 308]


def test_the_next_expiry_is_known(secrets: Secrets) -> None:
    made = certificates(secrets)
    secrets.put("one", "one.example")
    p = ingress("a", WEB, host="one.example", tls=tls("one", "one.example"))
    from pybernetes.ingress.routes import Routes
    from pybernetes.ingress.rules import compile_ingress

    routes = Routes()
    assert made.next_expiry() is None
    routes.put(compile_ingress(p))
    made.update(routes.certificates())
    assert (made.next_expiry() or 0) > time.time()
