"""What ConfigMaps, Secrets and ServiceAccounts are filled in with."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from ..v1.configuration import ConfigMap, Secret
from ..wire import canonical_base64


def default_config_map(obj: ConfigMap) -> None:
    """Nothing to fill in; empty maps are not kept."""
    obj.data = obj.data or None
    if obj.binary_data:
        canonical_base64(obj.binary_data, "ConfigMap")
    else:
        obj.binary_data = None


def default_secret(obj: Secret) -> None:
    """`stringData` is only for writing: it wins over `data`, where it ends up."""
    if obj.data:
        canonical_base64(obj.data, "Secret")
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
