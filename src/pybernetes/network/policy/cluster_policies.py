"""Follows ClusterNetworkPolicies, a custom resource that a cluster may or may not have.

Woken by: its CustomResourceDefinition, and changes of ClusterNetworkPolicies. Only metadata is watched; a change lists
them all anew, as they are few. Writes nothing. Without the definition one watch of its name is all that this costs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import resources
from typing import Any

from pybernetes.api import errors
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition
from pybernetes.api.resources import Resource
from pybernetes.client.client import Client
from pybernetes.client.informer import Informer
from pybernetes.client.informers import InformerFactory

from .cluster_facts import ClusterPolicy, cluster_policy_facts

GROUP, VERSION, PLURAL = "policy.networking.k8s.io", "v1alpha2", "clusternetworkpolicies"
RESOURCE = Resource(GROUP, VERSION, PLURAL, "ClusterNetworkPolicy", namespaced=False)
PATH = f"/apis/{GROUP}/{VERSION}/{PLURAL}"
FIRST_RETRY, LAST_RETRY = 0.5, 30.0
DEFINITION_FILE = "clusternetworkpolicies.yaml"
log = logging.getLogger(__name__)
Put = Callable[[list[ClusterPolicy]], None]


def definition() -> str:
    """The CustomResourceDefinition, for `kubectl apply`: upstream's v1alpha2 as far as it is enforced here."""
    return resources.files(__package__).joinpath(DEFINITION_FILE).read_text()


async def read(client: Client) -> list[ClusterPolicy]:
    """All ClusterNetworkPolicies, none where the cluster does not have the resource. One that cannot be read is logged
    and left out."""
    try:
        listed = await client.call("GET", PATH)
    except errors.NotFound:
        return []
    found = []
    for each in listed.get("items") or ():
        try:
            found.append(cluster_policy_facts(each))
        except (AttributeError, TypeError, ValueError) as error:  # a field of another shape than the definition's
            name = (each.get("metadata") or {}).get("name")
            log.error("clusternetworkpolicy %s: %s; it is not enforced", name, error)
    return found


class ClusterPolicies:
    """Gives `put` all ClusterNetworkPolicies whenever they change."""

    def __init__(self, client: Client, informers: InformerFactory, put: Put) -> None:
        self._client, self._informers, self._put = client, informers, put
        self._changed = asyncio.Event()
        self._informer: Informer[Any] | None = None
        self.synced = asyncio.Event()
        """Set when they were read once."""

    async def run(self) -> None:
        """Follow them until cancelled."""
        name = f"metadata.name={PLURAL}.{GROUP}"
        await self._allowed(name)
        definitions = self._informers.informer(CustomResourceDefinition, field_selector=name)
        handler = definitions.add_handler(*[lambda *_: self._changed.set()] * 3)
        retry = FIRST_RETRY
        try:
            self._informers.start()
            await definitions.wait_synced()
            while True:
                self._changed.clear()
                try:
                    await self._follow(any(map(_served, definitions.items())))
                except (errors.APIError, OSError, TimeoutError) as error:
                    log.warning("cannot read ClusterNetworkPolicies, next try in %g s: %s", retry, error)
                    await asyncio.sleep(retry)
                    retry = min(LAST_RETRY, retry * 2)
                    continue
                retry = FIRST_RETRY
                await self._changed.wait()
        finally:
            handler.remove()

    async def _allowed(self, name: str) -> None:
        """Returns when this user may look for the definition: a new cluster makes roles while its nodes start. A user
        that never may, as in a cluster that was made before, has no ClusterNetworkPolicies; NetworkPolicies do not wait
        for it."""
        retry = FIRST_RETRY
        while True:
            try:
                await self._client.list(CustomResourceDefinition, field_selector=name)
            except errors.Forbidden as error:
                if not self.synced.is_set():
                    log.warning("ClusterNetworkPolicies are not enforced until this user may read them: %s", error)
                    self.synced.set()
                await asyncio.sleep(retry)
                retry = min(LAST_RETRY, retry * 2)
            except (errors.APIError, OSError, TimeoutError):
                return  # the informer tries again
            else:
                return

    async def _follow(self, there: bool) -> None:
        """Reads them; begins or ends to follow their changes."""
        if there and self._informer is None:
            self._informer = self._informers.metadata_informer(RESOURCE)
            self._informer.add_handler(*[lambda *_: self._changed.set()] * 3)
        elif not there and self._informer is not None:
            await self._informers.release(RESOURCE, self._informer)
            self._informer = None
        self._put(await read(self._client) if there else [])
        self.synced.set()


def _served(definition: CustomResourceDefinition) -> bool:
    """Whether the API server serves the resource in our version."""
    conditions = (definition.status.conditions if definition.status else None) or ()
    established = any(each.type == "Established" and each.status == "True" for each in conditions)
    versions = (definition.spec.versions if definition.spec else None) or ()
    return established and any(each.name == VERSION and each.served for each in versions)
