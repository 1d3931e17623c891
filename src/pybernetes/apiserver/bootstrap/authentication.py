"""`extension-apiserver-authentication` in kube-system: how this server knows its clients, for servers that extend it.

What other servers of the cluster have written stays: certificates and names are added, and only what has ended is
dropped. Data as upstream writes it.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.core.v1 import ConfigMap
from pybernetes.api.errors import NotFound
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.pem import blocks

from ..pipeline.persist import write_object
from ..registry.registry import Registry
from ..registry.server_context import own_context
from .objects import create, update

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
LISTS = tuple(
    f"requestheader-{each}"
    for each in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix", "allowed-names")
)
CLIENT_CA, PROXY_CA = "client-ca-file", "requestheader-client-ca-file"


async def ensure_authentication(registry: Registry) -> None:
    """Write what is missing; nothing, if clients are known by tokens alone."""
    tell: Callable[[], dict[str, str]] | None = registry.authentication_info
    if tell is None:
        return
    wanted = tell()
    store = registry.store("", "v1", "configmaps")
    item = store.peek(NAMESPACE, NAME)
    now = registry.clock.now()
    if item is None:
        data = combined({}, wanted, now)
        if data:
            await create(registry, store, ConfigMap(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE), data=data))
        return
    present = store.decode(item).data or {}
    if combined(present, wanted, now) == present:
        return
    context = own_context(registry, NAMESPACE)

    async def change(old: Any) -> Any:
        new = msgspec.structs.replace(old, data=combined(old.data or {}, wanted, now) or None)
        new.metadata = msgspec.structs.replace(old.metadata)
        return await update(store, new, old, context)

    try:
        await write_object(store, NAME, change, context)
    except NotFound:
        pass


def combined(present: dict[str, str], wanted: dict[str, str], now: float) -> dict[str, str]:
    """Merge the ConfigMap's present data with ours."""
    data: dict[str, str] = {}
    for key in (CLIENT_CA, PROXY_CA):
        bundle = _bundle(present.get(key, ""), wanted.get(key, ""), now)
        if bundle:
            data[key] = bundle
    if PROXY_CA not in data:
        return data
    for key in LISTS:
        names = list(dict.fromkeys(_names(present.get(key, "")) + _names(wanted.get(key, ""))))
        if names or key != "requestheader-uid-headers":
            data[key] = msgspec.json.encode(names).decode()
    return data


def _names(text: str) -> list[str]:
    try:
        return msgspec.json.decode(text or "[]", type=list[str])
    except msgspec.MsgspecError:
        return []


def _bundle(present: str, wanted: str, now: float) -> str:
    """Every certificate once; what is only there already is kept while it is good."""
    ours = [each.data for each in blocks(wanted.encode()) if each.type == "CERTIFICATE"]
    theirs = [each.data for each in blocks(present.encode()) if each.type == "CERTIFICATE"]
    kept = [each for each in theirs if each in ours or _good(each, now)]
    return "".join(map(_pem, dict.fromkeys(kept + ours)))


def _pem(der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = "\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"


def _good(der: bytes, now: float) -> bool:
    from cryptography import x509

    try:
        ends = x509.load_der_x509_certificate(der).not_valid_after_utc
    except ValueError:
        return False
    return ends > datetime.datetime.fromtimestamp(now, datetime.UTC)
