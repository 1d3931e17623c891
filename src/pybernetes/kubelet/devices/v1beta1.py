"""The messages of deviceplugin/v1beta1 by their names: `v1beta1.AllocateRequest`. Declared in `v1beta1.proto`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pybernetes.protofile import Method, Proto, read

VERSION = "v1beta1"
HEALTHY = "Healthy"
KUBELET_SOCKET = "kubelet.sock"


@cache
def proto() -> Proto:
    """Everything that the file declares."""
    return read(Path(__file__).with_name("v1beta1.proto"))


def methods(service: str) -> list[Method]:
    """The calls of `Registration` or `DevicePlugin`."""
    return [each for each in proto().methods if each.service == service]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        value = proto().names[name]
    except KeyError:
        raise AttributeError(f"deviceplugin/v1beta1 has no {name}") from None
    globals()[name] = value
    return value
