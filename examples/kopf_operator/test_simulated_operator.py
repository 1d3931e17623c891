"""The same operator inside of a simulation: kopf, aiohttp and the cluster on one event loop, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from pybernetes.simulation import Faults, simulate

kopf = pytest.importorskip("kopf")


def operator(sim):
    """kopf with a handler that talks to the API by aiohttp."""
    import aiohttp

    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_):
        return kopf.ConnectionInfo(server=sim.server, token=sim.token)

    @kopf.on.create("namespaces", labels={"quota": kopf.PRESENT}, registry=registry)
    async def limit(name, labels, **_):
        quota = {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": labels["quota"]}}}
        headers = {"Authorization": f"Bearer {sim.token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            url = f"{sim.server}/api/v1/namespaces/{name}/resourcequotas"
            async with session.post(url, json=quota) as answer:
                if answer.status not in (201, 409):
                    raise kopf.TemporaryError(await answer.text(), delay=5)

    async def run(client):
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        await kopf.operator(registry=registry, settings=settings, clusterwide=True, standalone=True)

    return run


@simulate(seeds=5, nodes=0, faults=Faults(slow=0.0))
async def test_a_namespace_gets_its_quota_whatever_happens(sim):
    sim.start(operator(sim), "operator")
    for number in range(3):
        labels = {"quota": str(number + 1)}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"small-{number}", "labels": labels}}
        await sim.create(namespace)
        await asyncio.sleep(20)  # not a wait: it is virtual time

    async def all_have_one():
        return [await sim.get("resourcequotas", "pods", f"small-{number}") for number in range(3)]

    await sim.until(all_have_one, within=900)
