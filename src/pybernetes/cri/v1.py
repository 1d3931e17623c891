"""The messages and enum values of CRI v1 by their names: `v1.ContainerConfig`, `v1.CONTAINER_RUNNING`.

They are declared in `v1.proto` and made at the first use of one. Names in a message are snake_case as on the wire.
A present but empty message differs from an absent one (`seccomp` unset means unconfined): ask with `HasField`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pybernetes.protofile import Method, Proto, read

VERSION = "v1"
"""The value of `VersionResponse.runtime_api_version`."""


@cache
def proto() -> Proto:
    """Everything that `v1.proto` declares."""
    return read(Path(__file__).with_name("v1.proto"))


def methods() -> list[Method]:
    """All calls of RuntimeService and ImageService."""
    return proto().methods


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        value = proto().names[name]
    except KeyError:
        raise AttributeError(f"CRI v1 has no {name}") from None
    globals()[name] = value
    return value
