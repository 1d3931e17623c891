"""The API server's credentials at webhooks: users of a kubeconfig file, found by the host that is called.

A user's name is the host (`hook.default.svc`, with or without `:port`), or a pattern: `*.default.svc`, `*`.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.api.yaml import yaml_to_json


class Identity(msgspec.Struct, frozen=True):
    """A client certificate, a token or a password."""

    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    username: str = ""
    password: str = ""

    def load(self, context: ssl.SSLContext) -> None:
        """Present the certificate."""
        if not self.certificate:
            return
        with tempfile.NamedTemporaryFile() as file:  # the library reads from files only
            file.write(self.certificate + b"\n" + self.key)
            file.flush()
            context.load_cert_chain(file.name)

    def headers(self) -> dict[str, str]:
        """The headers that authenticate us, if a certificate does not."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.username:
            pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}


ANONYMOUS = Identity()


class Identities:
    """The users of a kubeconfig file."""

    def __init__(self, users: dict[str, Identity] | None = None) -> None:
        self._users = users or {}

    @classmethod
    def read(cls, file: Path) -> Identities:
        """Raises ValueError or OSError."""
        document = msgspec.json.decode(yaml_to_json(file.read_bytes())[0])
        if not isinstance(document, dict):
            raise ValueError(f"{file}: not a kubeconfig")
        users = {}
        for entry in document.get("users") or ():
            users[str(entry.get("name"))] = _identity(entry.get("user") or {}, file.parent)
        return cls(users)

    def of(self, host: str, port: int) -> Identity:
        """The credentials for this host."""
        targets = [f"{host}:{port}"] + ([host] if port == 443 else [])
        for target in targets:
            if target in self._users:
                return self._users[target]
        for target in targets:
            labels = target.split(".")
            for index in range(1, len(labels)):
                pattern = "*." + ".".join(labels[index:])
                if pattern in self._users:
                    return self._users[pattern]
        return self._users.get("*", ANONYMOUS)


def _identity(user: dict[str, Any], folder: Path) -> Identity:
    token = user.get("token") or ""
    if not token and user.get("tokenFile"):
        token = (folder / user["tokenFile"]).read_text().strip()
    return Identity(
        _data(user, "client-certificate", folder),
        _data(user, "client-key", folder),
        token,
        user.get("username") or "",
        user.get("password") or "",
    )


def _data(user: dict[str, Any], name: str, folder: Path) -> bytes:
    inline = user.get(f"{name}-data")
    if inline:
        return base64.b64decode(inline)
    return (folder / user[name]).read_bytes() if user.get(name) else b""
