"""Finds credentials for a registry: the docker config of secrets, looked up by an image's name.

An entry's key is a host, or a host and a path that the image's must begin with; parts of the host may have wildcards.
The most specific entry comes first, and all that match are tried.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pybernetes.api.core.v1 import Secret

CONFIG_JSON: Final = "kubernetes.io/dockerconfigjson"
CONFIG: Final = "kubernetes.io/dockercfg"
_DEFAULT_REGISTRY: Final = "index.docker.io"


class InvalidSecret(ValueError):
    """A pull secret is not what its type says."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A name and password, and the secret that they are from."""

    username: str
    password: str
    secret: tuple[str, str, str] = ("", "", "")
    """uid, namespace and name; empty: the node's own."""

    @property
    def hash(self) -> str:
        """Recognises the credential without telling it."""
        text = msgspec.json.encode([self.username, self.password])
        return hashlib.sha256(text).hexdigest()


class Keyring:
    """All credentials that a pull may use."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Credential]] = {}

    @classmethod
    def of(cls, secrets: Iterable[Secret]) -> Keyring:
        """A keyring from pull secrets; those of other types have nothing to give. Raises `InvalidSecret`."""
        keyring = cls()
        for secret in secrets:
            keyring._add_secret(secret)
        return keyring

    def add(self, location: str, credential: Credential) -> None:
        """One more entry."""
        text = location if location.startswith(("https://", "http://")) else f"https://{location}"
        parsed = urllib.parse.urlsplit(text)
        path = parsed.path[3:] if parsed.path.startswith(("/v1/", "/v2/")) else parsed.path
        key = parsed.netloc + (path if path != "/" else "")
        self._entries.setdefault(key, []).append(credential)

    def lookup(self, repository: str) -> list[Credential]:
        """The credentials to try for a repository such as `docker.io/library/nginx`, in this order."""
        found = [
            each
            for key in sorted(self._entries, reverse=True)
            if _matches(key, repository)
            for each in self._entries[key]
        ]
        if not found and _is_default_registry(repository):
            found = self._entries.get(_DEFAULT_REGISTRY, [])
        return found

    def _add_secret(self, secret: Secret) -> None:
        data = secret.data or {}
        metadata = secret.metadata
        assert metadata is not None
        source = (metadata.uid or "", metadata.namespace or "", metadata.name or "")
        try:
            if secret.type == CONFIG_JSON and ".dockerconfigjson" in data:
                entries = _document(data[".dockerconfigjson"]).get("auths") or {}
            elif secret.type == CONFIG and ".dockercfg" in data:
                entries = _document(data[".dockercfg"])
            else:
                return
            for location, entry in entries.items():
                self.add(location, Credential(*_identity(entry), secret=source))
        except (ValueError, AttributeError, TypeError) as error:
            raise InvalidSecret(f"secret {metadata.namespace}/{metadata.name}: {error}") from error


def _document(data: Any) -> dict[str, Any]:
    raw = data if isinstance(data, bytes) else base64.b64decode(data)
    document = msgspec.json.decode(raw)
    if not isinstance(document, dict):
        raise InvalidSecret("not a JSON object")
    return document


def _identity(entry: dict[str, Any]) -> tuple[str, str]:
    auth = entry.get("auth")
    if auth:
        try:
            text = base64.b64decode(auth + "=" * (-len(auth) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidSecret("unable to parse auth field") from None
        username, colon, password = text.partition(":")
        if not colon:
            raise InvalidSecret("unable to parse auth field, must be formatted as base64(username:password)")
        return username, password
    return entry.get("username") or "", entry.get("password") or ""


def _matches(key: str, repository: str) -> bool:
    glob, target = urllib.parse.urlsplit(f"https://{key}"), urllib.parse.urlsplit(f"https://{repository}")
    glob_host, _, glob_port = glob.netloc.partition(":")
    host, _, port = target.netloc.partition(":")
    patterns, parts = glob_host.split("."), host.split(".")
    return (
        glob_port == port
        and len(patterns) == len(parts)
        and target.path.startswith(glob.path)
        and all(fnmatch.fnmatchcase(part, pattern) for part, pattern in zip(parts, patterns, strict=True))
    )


def _is_default_registry(repository: str) -> bool:
    host, slash, _ = repository.partition("/")
    return bool(host) and (not slash or host in ("docker.io", _DEFAULT_REGISTRY) or not (set(".:") & set(host)))
