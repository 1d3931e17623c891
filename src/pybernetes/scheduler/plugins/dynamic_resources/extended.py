"""Extended resources (`example.com/gpu: 2`) that a DeviceClass provides: the claim made for a pod in their place.

Where a node has such a resource itself (a device plugin) that is used; elsewhere the pod gets devices of the class.
The claim is made by the scheduler when the pod has its node, with one request for each container and resource.
"""

from __future__ import annotations

from collections.abc import Iterable

from pybernetes.api.core.resourcenames import is_extended
from pybernetes.api.core.v1 import Container, ContainerExtendedResourceRequest, Pod, PodSpec
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.quantity import parse
from pybernetes.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from pybernetes.client.keys import controller_of, uid_of

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class it is a resource that needs no name of its own."""
UNMADE = "<extended-resources>"
"""The name of a claim that is not made yet."""

Mappings = list[ContainerExtendedResourceRequest]


def providers(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """The classes by the resources they provide; of several for one the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    ordered = sorted(classes, key=lambda each: _name(each))
    for each in sorted(ordered, key=_created, reverse=True):
        own = each.spec.extended_resource_name if each.spec else None
        for name in (own, f"{PREFIX}{_name(each)}"):
            if name:
                found.setdefault(name, each)
    return found


def wanted(requests: dict[str, int], classes: dict[str, DeviceClass]) -> frozenset[str]:
    """The resources a pod asks for that a class provides."""
    return frozenset(
        name
        for name, amount in requests.items()
        if amount and name in classes and (is_extended(name) or name.startswith(PREFIX))
    )


def find_claim(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """The claim that was made for the pod by an earlier attempt."""
    for each in claims:
        annotations = (each.metadata.annotations if each.metadata else None) or {}
        owner = controller_of(each)
        if annotations.get(ANNOTATION) == "true" and owner is not None and owner.uid == uid_of(pod):
            return each
    return None


def new_claim(pod: Pod, requests: list[DeviceRequest]) -> ResourceClaim:
    """A claim to be made for the pod."""
    metadata = pod.metadata
    assert metadata is not None
    owner = OwnerReference(api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=UNMADE,
            generate_name=f"{metadata.name}-extended-resources-",
            namespace=metadata.namespace,
            uid=f"{UNMADE}/{metadata.uid}",
            owner_references=[owner],
            annotations={ANNOTATION: "true"},
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
    )


def requests_and_mappings(
    spec: PodSpec, resources: Iterable[str], classes: dict[str, DeviceClass]
) -> tuple[list[DeviceRequest], Mappings]:
    """Requests for these resources, and which container uses which.

    Init containers that end use the devices of those that come after them, and share what they need beyond that.
    """
    inits = spec.init_containers or []
    containers = [*inits, *(spec.containers or [])]
    ending = [index for index, each in enumerate(inits) if each.restart_policy != "Always"]
    staying = [index for index in range(len(containers)) if index not in ending]
    requests: list[DeviceRequest] = []
    mappings: Mappings = []
    for resource in sorted(resources):
        name = _name(classes[resource])
        by_container: dict[int, DeviceRequest] = {}
        for index in staying:
            request, used = _for_container(index, containers[index], resource, name, [])
            if request is not None:
                by_container[index] = request
            mappings += used
        most: DeviceRequest | None = None
        early: list[tuple[DeviceRequest | None, Mappings]] = []
        for index in ending:
            later = [each for at, each in sorted(by_container.items()) if at >= index]
            request, used = _for_container(index, containers[index], resource, name, later)
            early.append((request, used))
            if request is not None and (most is None or _count(request) > _count(most)):
                most = request
        for request, used in early:
            for each in used:
                if request is not None and most is not None and each.request_name == request.name:
                    each.request_name = most.name
            mappings += used
        requests += [*([most] if most is not None else []), *by_container.values()]
    return sorted(requests, key=lambda each: each.name or ""), mappings


def _for_container(
    index: int, container: Container, resource: str, class_name: str, reusable: list[DeviceRequest]
) -> tuple[DeviceRequest | None, Mappings]:
    asked = (container.resources.requests if container.resources else None) or {}
    number = parse(str(asked[resource])).value() if resource in asked else 0
    mappings: Mappings = []
    if not number:
        return None, mappings

    def use(request: str) -> None:
        mappings.append(
            ContainerExtendedResourceRequest(
                container_name=container.name, resource_name=resource, request_name=request
            )
        )

    for each in reusable:
        use(each.name or "")
        number -= _count(each)
        if number <= 0:
            return None, mappings
    name = f"container-{index}-request-{sorted(asked).index(resource)}"
    use(name)
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode="ExactCount", count=number)
    return DeviceRequest(name=name, exactly=exactly), mappings


def _count(request: DeviceRequest) -> int:
    return (request.exactly.count if request.exactly else None) or 0


def _name(cls: DeviceClass) -> str:
    return (cls.metadata.name if cls.metadata else None) or ""


def _created(cls: DeviceClass) -> str:
    return (cls.metadata.creation_timestamp if cls.metadata else None) or ""
