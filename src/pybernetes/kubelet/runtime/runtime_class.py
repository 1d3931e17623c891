"""Which handler of the runtime a pod runs with: that of its RuntimeClass."""

from __future__ import annotations

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod
from pybernetes.api.node.v1 import RuntimeClass
from pybernetes.client.client import Client


async def runtime_handler(client: Client, pod: Pod) -> str:
    """The handler's name, empty for the runtime's default; raises `LookupError` with what the server says."""
    name = pod.spec.runtime_class_name if pod.spec else None
    if not name:
        return ""
    try:
        found = await client.get(RuntimeClass, name)
    except errors.NotFound as error:
        raise LookupError(str(error)) from error
    except (errors.APIError, OSError, TimeoutError) as error:
        raise LookupError(f"failed to get RuntimeClass {name}: {error}") from error
    return found.handler or ""
