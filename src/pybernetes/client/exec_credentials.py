"""Credentials that a command prints (`exec` in a kubeconfig, client.authentication.k8s.io).

`ExecPlugin` is what the kubeconfig says and runs the command once; `ExecCredentials` keeps what it printed. However
many requests need a credential at once, the command runs once; it runs again when the credential expires, and before
the next request after the server answered 401 to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field

import msgspec

from pybernetes.api.times import parse_time

from .clock import Clock

RUN_TIMEOUT = 60.0
"""Seconds after which a plugin that does not end is killed."""
EARLY = 60.0
"""Seconds before its end in which a credential is renewed, but no more than a tenth of the time it has."""


class ConfigError(ValueError):
    """There is no way to the server in what was given."""


@dataclass(frozen=True)
class ExecCredential:
    """The output of a plugin: a bearer token, a client certificate with its key (PEM), or both."""

    token: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    expires: float | None = None
    """Seconds since 1970; None = valid until the server refuses it."""


@dataclass(frozen=True)
class ExecPlugin:
    """A command that prints credentials."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"

    async def run(self) -> ExecCredential:
        """Run the command and read what it prints; `ConfigError` if that is no credential."""
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        process = await asyncio.create_subprocess_exec(
            self.command,
            *self.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **dict(self.env), "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()},
        )
        try:
            async with asyncio.timeout(RUN_TIMEOUT):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise ConfigError(f"the credential plugin {self.command} did not end in {RUN_TIMEOUT:.0f} s") from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        if process.returncode:
            raise ConfigError(f"the credential plugin {self.command} failed with exit code {process.returncode}")
        return self._decode(output)

    def _decode(self, output: bytes) -> ExecCredential:
        try:
            found = msgspec.json.decode(output, type=_ExecCredential)
            status = found.status
            expires = parse_time(status.expiration_timestamp) if status.expiration_timestamp else None
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"the credential plugin {self.command} printed no ExecCredential: {error}") from error
        if found.api_version and found.api_version != self.api_version:
            raise ConfigError(
                f"the credential plugin {self.command} printed apiVersion {found.api_version}, "
                f"the kubeconfig says {self.api_version}"
            )
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key):
            raise ConfigError(f"the credential plugin {self.command} printed only one of certificate and key")
        if not status.token and not certificate:
            raise ConfigError(f"the credential plugin {self.command} printed neither a token nor a certificate")
        return ExecCredential(status.token, certificate.encode(), key.encode(), expires)


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    status: _Status
    api_version: str = ""


class ExecCredentials:
    """The present credential of a plugin, shared by all requests of a transport."""

    def __init__(self, plugin: ExecPlugin, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._current: ExecCredential | None = None
        self._until = 0.0
        """When `_current` is renewed, by the monotonic clock."""
        self._running: asyncio.Task[ExecCredential] | None = None
        """The run of the plugin that all requests wait for."""

    async def get(self) -> ExecCredential:
        """The credential to use now."""
        if self._current is not None and self._clock.monotonic() < self._until:
            return self._current
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._renew(), name="credential plugin")
        # Shielded: a request that is cancelled does not take the credential from the others.
        return await asyncio.shield(self._running)

    def refused(self, credential: ExecCredential) -> None:
        """The server answered 401 to this credential: the next request gets a new one."""
        if self._current is credential:
            self._current = None

    async def close(self) -> None:
        """End a run of the plugin."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _renew(self) -> ExecCredential:
        try:
            found = await self._plugin.run()
        finally:
            self._running = None
        left = float("inf") if found.expires is None else found.expires - self._clock.now()
        self._current, self._until = found, self._clock.monotonic() + left - min(EARLY, max(0.0, left) / 10)
        return found
