"""The `pod-template-hash`: a short name for a pod template, the same one every time.

FNV-1a of 32 bits, as upstream has it, over the template's JSON with sorted keys; the count of collisions seen so far
makes another hash of the same template. In the letters of generated names, so that no words come out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pybernetes.api.names import safe_encode

POD_TEMPLATE_HASH: Final = "pod-template-hash"


def fnv32a(data: bytes) -> int:
    """The FNV-1a hash of 32 bits."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def compute_hash(template: Any, collisions: int | None) -> str:
    """The hash of a template, or of anything else that can be encoded."""
    data = msgspec.json.encode(template, order="sorted")
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_encode(str(fnv32a(data)))
