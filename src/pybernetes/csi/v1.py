"""The messages of CSI v1 by their names: `v1.CreateVolumeRequest`, `v1.AccessMode.SINGLE_NODE_WRITER`.

They are declared in `csi.proto` and made at the first use of one. Fields of messages, such as `block` and `mount` of a
VolumeCapability, are present or absent: ask with `HasField`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pybernetes.protofile import Method, Proto, read


@cache
def proto() -> Proto:
    """Everything that `csi.proto` declares."""
    return read(Path(__file__).with_name("csi.proto"))


@cache
def methods() -> dict[str, Method]:
    """All calls of Identity, Controller and Node by their names, which are unique."""
    return {each.name: each for each in proto().methods}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        value = proto().names[name]
    except KeyError:
        raise AttributeError(f"CSI v1 has no {name}") from None
    globals()[name] = value
    return value
