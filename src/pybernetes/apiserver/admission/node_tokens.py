"""Which tokens a kubelet may ask for: those of its own pods, for audiences that the pods have asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING

from pybernetes.api.authentication.v1 import BoundObjectReference, TokenRequest
from pybernetes.api.core.v1 import Pod, PodSpec, Volume
from pybernetes.api.errors import NotFound
from pybernetes.api.gocompat.quote import quote

from ..authz.union import decide
from ..registry.lister import lister
from ..requestinfo import RequestInfo
from .plugin import CREATE, Attributes, forbidden

if TYPE_CHECKING:
    from ..registry.registry import Registry


def check_token_request(registry: Registry, node: str, attributes: Attributes) -> Awaitable[None] | None:
    """Refuse a token that is not for a pod of the node. Raises Forbidden."""
    if attributes.operation != CREATE:
        return None
    request: TokenRequest = attributes.new
    ref = (request.spec.bound_object_ref if request.spec else None) or BoundObjectReference()
    if ref.api_version != "v1" or ref.kind != "Pod" or not ref.name:
        raise forbidden(attributes, "node requested token not bound to a pod")
    if not ref.uid:
        raise forbidden(attributes, "node requested token with a pod binding without a uid")
    pod: Pod | None = lister(registry, "", "v1", "pods").get(attributes.namespace, ref.name)
    if pod is None or pod.metadata is None:
        raise NotFound("", "pod", ref.name)
    if ref.uid != pod.metadata.uid:
        raise forbidden(
            attributes,
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    if (pod.spec or PodSpec()).node_name != node:
        raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
    audiences = (request.spec.audiences if request.spec else None) or []
    if len(audiences) > 1:
        raise forbidden(attributes, "node may only request 0 or 1 audiences")
    audience = audiences[0] if audiences else ""
    if audience in _audiences(registry, pod, attributes.namespace):
        return None
    return _ask(registry, attributes, audience)


async def _ask(registry: Registry, attributes: Attributes, audience: str) -> None:
    """An administrator may let nodes have tokens that no pod speaks of; the audience takes the resource's place."""
    verb = "request-serviceaccounts-token-audience"
    question = RequestInfo("", verb, {}, True, "", "v1", audience, "", attributes.namespace, attributes.name)
    decision, _, _ = await decide(registry.authorizers, attributes.user, question)
    if decision.value != "allow":
        raise forbidden(
            attributes,
            f"audience {quote(audience)} not found in pod spec volume, {attributes.user.name} is not authorized to "
            "request tokens for this audience",
        )


def _audiences(registry: Registry, pod: Pod, namespace: str) -> Iterator[str]:
    """The audiences of a pod's token volumes, and of the drivers of its other volumes."""
    for volume in (pod.spec or PodSpec()).volumes or ():
        for source in (volume.projected.sources if volume.projected is not None else None) or ():
            if source.service_account_token is not None:
                yield source.service_account_token.audience or ""
        name = _driver(registry, pod, volume, namespace)
        driver = lister(registry, "storage.k8s.io", "v1", "csidrivers").get("", name) if name else None
        if driver is not None and driver.spec is not None:
            yield from (each.audience or "" for each in driver.spec.token_requests or ())


def _driver(registry: Registry, pod: Pod, volume: Volume, namespace: str) -> str | None:
    if volume.csi is not None:
        return volume.csi.driver
    claim = volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim is not None else None
    if volume.ephemeral is not None and pod.metadata is not None:
        claim = f"{pod.metadata.name}-{volume.name}"
    found = lister(registry, "", "v1", "persistentvolumeclaims").get(namespace, claim) if claim else None
    name = found.spec.volume_name if found is not None and found.spec is not None else None
    bound = lister(registry, "", "v1", "persistentvolumes").get("", name) if name else None
    csi = bound.spec.csi if bound is not None and bound.spec is not None else None
    driver: str | None = csi.driver if csi is not None else None
    return driver
