"""Credentials from a command: how often it runs, and what may come from it."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from pybernetes import pki
from pybernetes.api import errors
from pybernetes.client.clock import FakeClock
from pybernetes.client.config import Config, ConfigError
from pybernetes.client.exec_credentials import ExecCredential, ExecCredentials, ExecPlugin
from pybernetes.client.transport import Transport

TOKEN = '{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t%s"}}'


def plugin(folder: Path, prints: str) -> ExecPlugin:
    """A command that counts its runs in the file `runs`, and prints a text with their number for %s."""
    (folder / "text").write_text(prints)
    script = folder / "plugin"
    script.write_text(f'#!/bin/sh\necho >> {folder}/runs\nn=$(wc -l < {folder}/runs)\nsed "s/%s/$n/" {folder}/text\n')
    script.chmod(0o755)
    return ExecPlugin(str(script))


def runs(folder: Path) -> int:
    """How often the command ran."""
    return len((folder / "runs").read_text())


class Server:
    """Answers 200 to the tokens it knows and 401 to others."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.accepted: set[str] = set()
        self.names: list[str] = []
        """The common name of the client certificate of each request."""
        self._tls = tls

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                return
            self.names += names
            known = names or any(f"Bearer {token}\r" in head for token in self.accepted)
            status = "200 OK" if known else "401 Unauthorized"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())


async def test_many_requests_at_once_run_the_plugin_once(tmp_path: Path) -> None:
    async with Server() as server:
        server.accepted = {"t1"}
        transport = Transport(Config(f"http://127.0.0.1:{server.port}", exec_plugin=plugin(tmp_path, TOKEN)))
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(30)))
        assert runs(tmp_path) == 1
        await transport.close()


async def test_the_plugin_runs_again_after_a_401_and_once_for_many_of_them(tmp_path: Path) -> None:
    async with Server() as server:
        server.accepted = {"t1"}
        transport = Transport(Config(f"http://127.0.0.1:{server.port}", exec_plugin=plugin(tmp_path, TOKEN)))
        await transport.request("GET", "/")
        server.accepted = {"t2"}
        refused = await asyncio.gather(*(transport.request("GET", "/") for _ in range(10)), return_exceptions=True)
        assert all(isinstance(each, errors.Unauthorized) for each in refused)
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(10)))
        assert runs(tmp_path) == 2
        await transport.close()


async def test_a_request_that_is_cancelled_leaves_the_plugin_to_the_others(tmp_path: Path) -> None:
    credentials = ExecCredentials(plugin(tmp_path, TOKEN), FakeClock())
    first = asyncio.create_task(credentials.get())
    second = asyncio.create_task(credentials.get())
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).token == "t1"


async def test_a_credential_is_renewed_before_it_expires_and_not_at_every_request(tmp_path: Path) -> None:
    clock = FakeClock(1_700_000_000.0)  # 2023-11-14T22:13:20Z
    text = '{"status": {"token": "t%s", "expirationTimestamp": "2023-11-14T22:13:50Z"}}'
    credentials = ExecCredentials(plugin(tmp_path, text), clock)
    for _ in range(3):
        assert (await credentials.get()).token == "t1"
    clock.advance(28)
    assert (await credentials.get()).token == "t2"


async def test_a_failure_of_the_plugin_fails_all_waiting_requests_and_the_next_one_retries(tmp_path: Path) -> None:
    broken = plugin(tmp_path, "not JSON")
    credentials = ExecCredentials(broken, FakeClock())
    found = await asyncio.gather(credentials.get(), credentials.get(), return_exceptions=True)
    assert all(isinstance(each, ConfigError) for each in found)
    assert runs(tmp_path) == 1
    (tmp_path / "text").write_text(TOKEN)
    assert (await credentials.get()).token == "t2"


@pytest.mark.parametrize(
    ("prints", "says"),
    [
        ("{}", "no ExecCredential"),
        ('{"status": {}}', "neither a token nor a certificate"),
        ('{"status": {"clientCertificateData": "x"}}', "only one of certificate and key"),
        ('{"status": {"token": "x", "expirationTimestamp": "tomorrow"}}', "no ExecCredential"),
        ('{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "x"}}', "printed apiVersion"),
    ],
)
async def test_what_is_no_credential_is_a_configuration_error(tmp_path: Path, prints: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        await plugin(tmp_path, prints).run()


async def test_a_certificate_of_the_plugin_is_used_and_the_next_one_after_it(tmp_path: Path) -> None:
    authority = pki.create_authority("test")
    serving = pki.issue_server(authority, "server", ["127.0.0.1"])
    (tmp_path / "tls.pem").write_bytes(serving.certificate_pem + serving.key_pem)
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "tls.pem")
    tls.load_verify_locations(tmp_path / "ca.pem")
    tls.verify_mode = ssl.CERT_OPTIONAL

    class Plugin(ExecPlugin):
        name = "anna"

        async def run(self) -> ExecCredential:
            identity = pki.issue_client(authority, self.name, [])
            return ExecCredential(certificate=identity.certificate_pem, key=identity.key_pem)

    async with Server(tls) as server:
        config = Config(f"https://127.0.0.1:{server.port}", ca_data=authority.certificate_pem, exec_plugin=Plugin(""))
        transport = Transport(config)
        await transport.request("GET", "/")
        Plugin.name = "berta"
        assert transport._exec is not None
        assert transport._exec._current is not None
        transport._exec.refused(transport._exec._current)
        await transport.request("GET", "/")
        assert server.names == ["anna", "berta"]
        await transport.close()
