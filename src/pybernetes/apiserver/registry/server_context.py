"""The API server as a client of itself: its user, its name, the `Context` of its own writes."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from pybernetes.api.times import rfc3339

from ..user import User
from .registry import Registry
from .strategy import Context

SERVER: Final = User("system:apiserver", groups=("system:masters",))
MANAGER: Final = "kube-apiserver"


def own_context(registry: Registry, namespace: str = "", manager: str = MANAGER) -> Context:
    """A request of the server to itself."""
    return Context(registry, SERVER, rfc3339(registry.clock.now()), namespace, field_manager=manager, warnings=[])


def server_name(hostname: str) -> str:
    """The name of the lease of the API server on this machine."""
    parts = (hostname.encode(), MANAGER.encode())
    digest = hashlib.sha256(b"".join(len(each).to_bytes(2, "big") + each for each in parts)).digest()
    return f"apiserver-{base64.b32encode(digest[:16]).decode().rstrip('=').lower()}"
