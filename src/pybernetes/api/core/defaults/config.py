"""What ConfigMaps, Secrets and ServiceAccounts are filled in with."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from ..v1.configuration import ConfigMap, Secret


def default_config_map(obj: ConfigMap) -> None:
    """Nothing to fill in; empty maps are not kept."""
    obj.data = obj.data or None
    obj.binary_data = obj.binary_data or None


def default_secret(obj: Secret) -> None:
    """`stringData` is only for writing: it wins over `data`, where it ends up."""
    if obj.string_data:
        data = obj.data or {}
        for key, value in obj.string_data.items():
            data[key] = b64encode(value.encode("utf-8", "replace")).decode()
        obj.data = data
    obj.data = obj.data or None
    obj.string_data = None
    if not obj.type:
        obj.type = "Opaque"


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "ConfigMap": default_config_map,
    "Secret": default_secret,
}
