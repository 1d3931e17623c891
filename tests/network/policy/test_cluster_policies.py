"""ClusterNetworkPolicies are followed where a cluster has them, and cost nothing where it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml
from waiting import wait_for

import tools
from pybernetes.api import errors
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory
from pybernetes.network.policy import cluster_policies
from pybernetes.network.policy.cluster_facts import ClusterPolicy
from pybernetes.network.policy.cluster_policies import PATH, ClusterPolicies, definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "clusternetworkpolicies.policy.networking.k8s.io"


def policy(name: str, **spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": {"tier": "Admin", "subject": {"namespaces": {}}, **spec}}


async def test_they_are_followed_from_when_their_definition_comes_until_it_goes(cluster: tools.ApiServer) -> None:
    seen: list[list[ClusterPolicy]] = []

    def names() -> list[tuple[str, int]]:
        return [(each.key.name, each.priority) for each in seen[-1]]

    async with Client(config.load(str(cluster.kubeconfig)), program="test") as client:
        informers = InformerFactory(client)
        follower = ClusterPolicies(client, informers, seen.append)
        task = asyncio.create_task(follower.run())
        try:
            await asyncio.wait_for(follower.synced.wait(), 60)
            assert seen == [[]]
            await client.call("POST", DEFINITIONS, yaml.safe_load(definition()))
            await wait_for(lambda: follower._informer is not None, "the definition is noticed")
            await client.call("POST", PATH, policy("one", priority=7))
            await wait_for(lambda: names() == [("one", 7)], "a policy is read")
            refused = policy("bad", priority=1, ingress=[{"action": "Accept", "from": []}])
            with pytest.raises(errors.Invalid, match="should have at least 1 items"):
                await client.call("POST", PATH, refused)
            await client.call("DELETE", f"{PATH}/one")
            await wait_for(lambda: names() == [], "it is gone")
            await client.call("POST", PATH, policy("two", priority=0))
            await wait_for(lambda: names() == [("two", 0)], "another one")
            await client.call("DELETE", f"{DEFINITIONS}/{NAME}")
            await wait_for(lambda: names() == [] and follower._informer is None, "the definition is gone")
        finally:
            task.cancel()
            await asyncio.wait([task])
            await informers.stop()


async def test_a_user_who_may_not_look_for_them_has_none_at_once() -> None:
    class Refusing:
        async def list(self, *_: object, **__: object) -> None:
            raise errors.Forbidden("apiextensions.k8s.io", "customresourcedefinitions", "", "no")

    refusing: Any = Refusing()
    follower = ClusterPolicies(refusing, InformerFactory(refusing), lambda _: None)
    task = asyncio.create_task(follower.run())
    await asyncio.wait_for(follower.synced.wait(), 10)
    task.cancel()
    await asyncio.wait([task])


async def test_they_are_followed_from_when_the_roles_of_a_new_cluster_are_there(
    cluster: tools.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_policies, "FIRST_RETRY", 0.001)
    seen: list[list[ClusterPolicy]] = []
    async with Client(config.load(str(cluster.kubeconfig)), program="test") as client:
        real, refusals = client.list, iter(range(3))

        async def refused_at_first(*words: Any, **more: Any) -> Any:
            if next(refusals, None) is not None:
                raise errors.Forbidden("apiextensions.k8s.io", "customresourcedefinitions", "", "no")
            return await real(*words, **more)

        monkeypatch.setattr(client, "list", refused_at_first)
        informers = InformerFactory(client)
        task = asyncio.create_task(ClusterPolicies(client, informers, seen.append).run())
        try:
            await wait_for(lambda: seen == [[]], "they are read")
        finally:
            task.cancel()
            await asyncio.wait([task])
            await informers.stop()
