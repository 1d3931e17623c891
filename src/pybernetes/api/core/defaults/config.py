"""Defaults for ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from ..v1.configuration import Secret


def default_secret(obj: Secret) -> None:
    """`stringData` is only for writing: it wins over `data`, where it ends up."""
    if obj.string_data:
        data = obj.data or {}
        for key, value in obj.string_data.items():
            data[key] = b64encode(value.encode("utf-8", "replace")).decode()
        obj.data = data
    obj.string_data = None
    if not obj.type:
        obj.type = "Opaque"


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "Secret": default_secret,
}
