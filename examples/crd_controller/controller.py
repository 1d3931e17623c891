"""Keeps a ConfigMap with the text of each Greeting, owned by it. It looks at what is, not at what happened."""

from __future__ import annotations

import asyncio

from pybernetes.api import errors
from pybernetes.api.resources import Resource
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, key_of
from pybernetes.client.workqueue import WorkQueue

GREETINGS = Resource("example.com", "v1", "greetings", "Greeting", True)


async def run(client: Client) -> None:
    """Work until cancelled."""
    informers = InformerFactory(client)
    greetings = informers.metadata_informer(GREETINGS)
    queue: WorkQueue[Key] = WorkQueue("greetings", greetings.clock)
    greetings.add_handler(
        lambda new: queue.add(key_of(new)), lambda _, new: queue.add(key_of(new)), lambda old: queue.add(key_of(old))
    )
    informers.start()
    await informers.wait_synced()
    while True:
        key = await queue.get()
        try:
            await reconcile(client, key)
            queue.forget(key)
        except (errors.APIError, OSError, TimeoutError):
            queue.add_rate_limited(key)
        finally:
            queue.done(key)


async def reconcile(client: Client, key: Key) -> None:
    """Make the ConfigMap what the Greeting says, and say so in its status."""
    place = f"/apis/example.com/v1/namespaces/{key.namespace}/greetings/{key.name}"
    try:
        greeting = await client.call("GET", place)
    except errors.NotFound:
        return  # the garbage collector removes the ConfigMap
    owner = {"apiVersion": "example.com/v1", "kind": "Greeting", "name": key.name, "uid": greeting["metadata"]["uid"]}
    wanted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": key.name, "ownerReferences": [{**owner, "controller": True}]},
        "data": {"text": greeting["spec"]["text"]},
    }
    await client.call(
        "PATCH",
        f"/api/v1/namespaces/{key.namespace}/configmaps/{key.name}?fieldManager=greetings&force=true",
        wanted,
        headers={"Content-Type": "application/apply-patch+yaml"},
    )
    if greeting.get("status", {}).get("configMap") != key.name:
        merge = {"Content-Type": "application/merge-patch+json"}
        await client.call("PATCH", f"{place}/status", {"status": {"configMap": key.name}}, headers=merge)


async def main() -> None:
    """Run with the credentials of $KUBECONFIG, or of the pod that this runs in."""
    from pybernetes.client import config

    async with Client(config.load(), program="greetings") as client:
        await run(client)


if __name__ == "__main__":
    asyncio.run(main())
