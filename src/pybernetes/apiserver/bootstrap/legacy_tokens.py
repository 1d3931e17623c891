"""Says since when this cluster's API servers note which legacy tokens are used.

The controller that removes unused tokens (`legacy-serviceaccount-token-cleaner-controller`) trusts their
labels only after that day, and does nothing as long as the ConfigMap is not there.
"""

from __future__ import annotations

import datetime
from typing import Any, Final

import msgspec

from pybernetes.api.core.v1 import ConfigMap
from pybernetes.api.errors import NotFound
from pybernetes.api.meta.v1 import ObjectMeta

from ..pipeline.persist import write_object
from ..registry.registry import Registry
from ..registry.server_context import own_context
from .objects import create, update

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
SINCE: Final = "since"


async def ensure_tracking(registry: Registry) -> None:
    """Write today's date, unless there is one already."""
    store = registry.store("", "v1", "configmaps")
    item = store.peek(NAMESPACE, NAME)
    today = datetime.datetime.fromtimestamp(registry.clock.now(), datetime.UTC).date().isoformat()
    if item is None:
        meta = ObjectMeta(name=NAME, namespace=NAMESPACE)
        return await create(registry, store, ConfigMap(metadata=meta, data={SINCE: today}))
    if _is_date((store.decode(item).data or {}).get(SINCE, "")):
        return None
    context = own_context(registry, NAMESPACE)

    async def change(old: Any) -> Any:
        new = msgspec.structs.replace(old, data={**(old.data or {}), SINCE: today})
        new.metadata = msgspec.structs.replace(old.metadata)
        return await update(store, new, old, context)

    try:
        await write_object(store, NAME, change, context)
    except NotFound:
        pass  # next time round


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False
