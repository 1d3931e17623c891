"""Two controller-managers as processes: one leads, and when it is killed the other takes over."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator

import tools
from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Namespace, ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client

# The leader keeps its Lease on a busy machine; candidates check often.
TIMES = ("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s", "--leader-elect-retry-period=400ms")


@contextlib.contextmanager
def running(server: tools.ApiServer, name: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*tools.PYTHON, "controller-manager", f"--kubeconfig={server.kubeconfig}", "--secure-port=0", *TIMES]
    command += ["--controllers=serviceaccount-controller", "-v=2"]
    with open(server.folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_the_other_takes_over_when_the_leader_is_killed_and_at_once_when_it_is_asked_to_go(
    server: tools.ApiServer,
) -> None:
    async with Client(config.load(server.kubeconfig)) as client:

        async def holder() -> str:
            try:
                found = await client.get(Lease, "kube-controller-manager", "kube-system")
            except errors.NotFound:
                return ""
            return (found.spec.holder_identity if found.spec else None) or ""

        async def works(namespace: str) -> None:
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            await _until(lambda: _exists(client, namespace), f"the service account of {namespace}")

        with running(server, "one") as one:
            await _until(holder, "the first leads")
            first = await holder()
            await works("failover-1")
            with running(server, "two") as two:
                one.send_signal(signal.SIGKILL)
                one.wait()
                shorter = {"spec": {"leaseDurationSeconds": 1}}  # a minute is long
                await client.patch(Lease, "kube-controller-manager", shorter, "kube-system")
                await _until(lambda: _changed(holder, first), "the second leads")
                await works("failover-2")
                with running(server, "three") as three:
                    second = await holder()
                    two.send_signal(signal.SIGTERM)
                    assert two.wait(60) == 0
                    await _until(lambda: _changed(holder, second), "the third leads")
                    await works("failover-3")
                    assert three.poll() is None
        found = await client.get(Lease, "kube-controller-manager", "kube-system")
        assert found.spec.lease_transitions == 2


async def _changed(holder, before: str) -> bool:
    return await holder() not in ("", before)


async def _exists(client: Client, namespace: str) -> bool:
    try:
        return bool(await client.get(ServiceAccount, "default", namespace))
    except errors.NotFound:
        return False


async def _until(condition, what: str) -> None:
    deadline = time.monotonic() + tools.PATIENCE
    while not await condition():
        assert time.monotonic() < deadline, f"{what}: not within {tools.PATIENCE} s"
        await asyncio.sleep(0.05)
