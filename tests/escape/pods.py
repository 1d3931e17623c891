"""Pods of attackers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from cri.embedded.machine import EmbeddedMachine
from node import cri_pods

from pybernetes.cri import v1 as cri
from pybernetes.cri.hidden import MASKED_PATHS, READONLY_PATHS
from pybernetes.cri.remote import Runtime


def confined(*capabilities: str, pid: int = cri.CONTAINER, **more: Any) -> Any:
    """An ordinary container, with a few capabilities more."""
    context = {
        "seccomp": {"profile_type": 1},  # unconfined: the filter must not be what holds
        "masked_paths": MASKED_PATHS,
        "readonly_paths": READONLY_PATHS,
        "namespace_options": {"pid": pid},
        "capabilities": {"add_capabilities": list(capabilities)},
        **more,
    }
    return cri.LinuxContainerConfig(security_context=context)


@contextlib.asynccontextmanager
async def attacker(
    machine: EmbeddedMachine, script: str, linux: Any, **more: Any
) -> AsyncIterator[tuple[Runtime, Any, str, str]]:
    """A pod with a container that runs a script; the runtime, the pod's configuration, sandbox and container."""
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        try:
            id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script, linux=linux, **more)
            yield runtime, config, sandbox, id
        finally:
            await cri_pods.remove(runtime, sandbox)
