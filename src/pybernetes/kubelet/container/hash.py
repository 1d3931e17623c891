"""Whether a running container is still the one that its pod asks for.

Only the fields whose change means another container are looked at (name and image, as upstream): everything else in a
pod's spec is immutable, or can change without a new container.
"""

from __future__ import annotations

from pybernetes.api.core.containers import AnyContainer

_OFFSET, _PRIME = 0x811C9DC5, 0x01000193


def fnv32a(data: bytes) -> int:
    """The hash that Kubernetes uses for short names."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return value


def hash_container(container: AnyContainer) -> str:
    """The hash in the container's annotation `io.kubernetes.container.hash`."""
    key = f"{container.name}\0{container.image}"
    return f"{fnv32a(key.encode()):x}"
