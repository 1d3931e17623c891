"""Validates the status of a pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...addresses import is_valid_ip_for_legacy_field, parse_ip
from ...field import FieldError, Path, duplicate, forbidden, internal, invalid, not_supported, required, too_long
from ...meta.validation import IMMUTABLE, METADATA, validate_object_meta_update
from ...names import is_group_id
from ..podresources import quantity
from ..resourcenames import is_native
from ..v1.container import Container, ContainerStatus
from ..v1.pod import (
    HostIP,
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodIP,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)
from .common import (
    InternalForm,
    validate_dns1123_label,
    validate_dns1123_subdomain,
    validate_id,
    validate_qualified_name,
)
from .options import options_for_update
from .podannotations import validate_pod_annotations_update

STATUS: Final = Path("status")
_SYSTEM_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_NOT_NEGATIVE: Final = "must be a non-negative integer"
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_MAX_HEALTH_MESSAGE: Final = 512


def validate_pod_status_update(new: Pod, old: Pod) -> list[FieldError]:
    """A change of a pod's status."""
    status, before = new.status or PodStatus(), old.status or PodStatus()
    spec, old_spec = new.spec or PodSpec(), old.spec or PodSpec()
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    if new.metadata is not None and (new.metadata.annotations or (old.metadata and old.metadata.annotations)):
        options = options_for_update(old_spec, old.metadata, is_pod=True)
        errors += validate_pod_annotations_update(new, old, METADATA.child("annotations"), options)
    if status.conditions:
        errors += _validate_conditions(status.conditions, STATUS.child("conditions"))
    if (spec.node_name or "") != (old_spec.node_name or ""):
        errors.append(forbidden(STATUS.child("nodeName"), "may not be changed directly"))
    nominated = status.nominated_node_name or ""
    if nominated and nominated != (before.nominated_node_name or ""):
        errors += validate_dns1123_subdomain(nominated, STATUS.child("nominatedNodeName"))
        if old_spec.node_name:
            detail = "may not be set on pods that are already bound to a node"
            errors.append(forbidden(STATUS.child("nominatedNodeName"), detail))
    if (status.observed_generation or 0) < 0:
        errors.append(invalid(STATUS.child("observedGeneration"), status.observed_generation, _NOT_NEGATIVE))
    if (status.qos_class or "") != (before.qos_class or ""):
        errors.append(invalid(STATUS.child("qosClass"), status.qos_class or "", IMMUTABLE))
    errors += _validate_containers(status, before, spec, old_spec)
    if status.resource_claim_statuses:
        at = STATUS.child("resourceClaimStatuses")
        errors += _validate_claims(status.resource_claim_statuses, spec.resource_claims or [], at)
    if status.extended_resource_claim_status is not None:
        at = STATUS.child("extendedResourceClaimStatus")
        errors += _validate_extended_claim(status.extended_resource_claim_status, spec, at)
    if status.node_allocatable_resource_claim_statuses:
        errors += _validate_allocatable_claims(status.node_allocatable_resource_claim_statuses, status, spec)
    if status.pod_ips and status.pod_ips != before.pod_ips:
        errors += _validate_ips(status.pod_ips, before.pod_ips or [], STATUS.child("podIPs"))
    if status.host_ips:
        if (status.host_ip or "") != (status.host_ips[0].ip or ""):
            at = STATUS.child("hostIPs").index(0).child("ip")
            errors.append(invalid(at, status.host_ips[0].ip or "", "must be equal to `hostIP`"))
        errors += _validate_ips(status.host_ips, before.host_ips or [], STATUS.child("hostIPs"))
    return errors


def _validate_conditions(conditions: list[PodCondition], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        if (condition.observed_generation or 0) < 0:
            at = path.index(index).child("observedGeneration")
            errors.append(invalid(at, condition.observed_generation, _NOT_NEGATIVE))
        if condition.type not in _SYSTEM_CONDITIONS:
            errors += validate_qualified_name(condition.type or "", path.index(index).child("Type"))
    return errors


def _validate_containers(status: PodStatus, before: PodStatus, spec: PodSpec, old_spec: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    windows = spec.os is not None and spec.os.name == "windows"
    restart_all = any(
        rule.action == "RestartAllContainers"
        for container in (*(old_spec.init_containers or ()), *(old_spec.containers or ()))
        for rule in container.restart_policy_rules or ()
    )
    for wire, after, earlier, containers, old_containers in (
        (
            "containerStatuses",
            status.container_statuses,
            before.container_statuses,
            spec.containers,
            old_spec.containers,
        ),
        (
            "initContainerStatuses",
            status.init_container_statuses,
            before.init_container_statuses,
            spec.init_containers,
            old_spec.init_containers,
        ),
        (
            "ephemeralContainerStatuses",
            status.ephemeral_container_statuses,
            before.ephemeral_container_statuses,
            None,
            None,
        ),
    ):
        path = STATUS.child(wire)
        ephemeral = wire == "ephemeralContainerStatuses"
        if earlier and (ephemeral or not restart_all):
            errors += _validate_transitions(after or [], earlier, old_containers or [], old_spec, path)
        for index, each in enumerate(after or ()):
            if each.user is not None and each.user.linux is not None:
                at = path.index(index).child("user", "linux")
                if windows:
                    errors.append(forbidden(at, "cannot be set for a windows pod"))
                else:
                    user = each.user.linux
                    errors += validate_id(user.uid, at, "uid")
                    errors += validate_id(user.gid, at, "gid")
                    for number, group in enumerate(user.supplemental_groups or ()):
                        where = at.child("supplementalGroups").index(number)
                        errors += [invalid(where, group, problem) for problem in is_group_id(group)]
            if each.allocated_resources_status:
                at = path.index(index).child("allocatedResourcesStatus")
                if ephemeral:
                    errors.append(forbidden(at, "must not be specified in container status"))
                else:
                    errors += _validate_allocated(each, containers or [], at)
    return errors


def _validate_transitions(
    new: list[ContainerStatus], old: list[ContainerStatus], containers: list[Container], spec: PodSpec, path: Path
) -> list[FieldError]:
    """A terminated container must not run again unless it may restart."""
    errors: list[FieldError] = []
    by_name = {container.name: container for container in containers}
    now = {each.name: each for each in reversed(new)}
    for index, before in enumerate(old):
        terminated = before.state.terminated if before.state is not None else None
        if terminated is None:
            continue
        after = now.get(before.name)
        if after is None or (after.state is not None and after.state.terminated is not None):
            continue
        container = by_name.get(before.name)
        if container is None or not container_should_restart(container, spec, terminated.exit_code or 0):
            at = path.index(index).child("state")
            errors.append(forbidden(at, "may not be transitioned to non-terminated state"))
    return errors


def container_should_restart(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """Whether a container that ended like this starts again: by its own rules and policy, else by the pod's."""
    policy = container.restart_policy
    if policy is not None:
        for rule in container.restart_policy_rules or ():
            codes = rule.exit_codes
            if codes is not None and (exit_code in (codes.values or ())) == (codes.operator == "In"):
                return True
    if policy not in ("Always", "OnFailure", "Never"):
        policy = spec.restart_policy
    if policy == "OnFailure":
        return exit_code != 0
    return policy != "Never"


def _validate_allocated(status: ContainerStatus, containers: list[Container], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    container = next((each for each in containers if each.name == status.name), None)
    for index, resource in enumerate(status.allocated_resources_status or ()):
        name = resource.name or ""
        if container is not None:
            wanted = container.resources
            if name.startswith("claim:"):
                known = {
                    f"claim:{claim.name}/{claim.request}" if claim.request else f"claim:{claim.name}"
                    for claim in (wanted.claims if wanted is not None else None) or ()
                }
                detail = (
                    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' "
                    "or 'claim:<claimName>' if request is empty"
                )
            else:
                known = set((wanted.requests if wanted is not None else None) or ())
                detail = "must match one of the container's resource requests"
            if name not in known:
                errors.append(invalid(path.index(index).child("name"), name, detail))
        seen: set[str] = set()
        for number, each in enumerate(resource.resources or ()):
            at = path.index(index).child("resources").index(number)
            if each.health not in _HEALTH:
                errors.append(not_supported(at.child("health"), each.health or "", _HEALTH))
            if each.message is not None:
                if not each.message:
                    errors.append(required(at.child("message"), "must be non-empty if specified"))
                elif len(each.message.encode()) > _MAX_HEALTH_MESSAGE:
                    errors.append(too_long(at.child("message"), "", _MAX_HEALTH_MESSAGE))
            identifier = each.resource_id or ""
            if identifier in seen:
                errors.append(duplicate(at.child("resourceID"), identifier))
            seen.add(identifier)
    return errors


def _validate_claims(
    statuses: list[PodResourceClaimStatus], claims: list[PodResourceClaim], path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    known = {claim.name for claim in claims}
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        name, at = status.name or "", path.index(index)
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(at.child("name"), name, detail))
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        if status.resource_claim_name is not None:
            errors += validate_dns1123_subdomain(status.resource_claim_name, at.child("resourceClaimName"))
    return errors


def _validate_extended_claim(status: PodExtendedResourceClaimStatus, spec: PodSpec, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    containers = {each.name: each for each in (*(spec.init_containers or ()), *(spec.containers or ()))}
    mappings = path.child("requestMappings")
    if not status.request_mappings:
        errors.append(required(mappings, "at least one request mapping is required"))
    seen: set[tuple[str | None, str | None, str | None]] = set()
    for index, each in enumerate(status.request_mappings or ()):
        at = mappings.index(index)
        container = containers.get(each.container_name)
        if container is None:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(at.child("containerName"), each.container_name or "", detail))
        elif each.resource_name not in ((container.resources.requests if container.resources else None) or ()):
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            errors.append(invalid(at.child("resourceName"), each.resource_name or "", detail))
        errors += validate_dns1123_label(each.request_name or "", path.child("requestName"))
        key = (each.container_name, each.resource_name, each.request_name)
        if key in seen:
            for wire, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                errors.append(duplicate(at.child(wire), value or ""))
        seen.add(key)
    if not status.resource_claim_name:
        errors.append(required(path.child("resourceClaimName")))
    else:
        errors += validate_dns1123_subdomain(status.resource_claim_name, path.child("resourceClaimName"))
    return errors


def _validate_allocatable_claims(
    statuses: list[NodeAllocatableResourceClaimStatus], status: PodStatus, spec: PodSpec
) -> list[FieldError]:
    errors: list[FieldError] = []
    known = {each.resource_claim_name for each in spec.resource_claims or ()}
    known |= {each.resource_claim_name for each in status.resource_claim_statuses or ()}
    for index, each in enumerate(statuses):
        at = STATUS.child("nodeAllocatableResourceClaimStatuses").index(index)
        name = each.resource_claim_name or ""
        if not name:
            errors.append(required(at.child("resourceClaimName"), "must not be empty"))
        if name not in known:
            errors.append(invalid(at.child("resourceClaimName"), name, "no mapping found in pod reference"))
        if not each.containers:
            errors.append(required(at.child("containers"), "must not be empty"))
        if not each.resources:
            errors.append(required(at.child("resources"), "must not be empty"))
        for resource, value in (each.resources or {}).items():
            where = at.child("resources").key(resource)
            if not is_native(resource):
                errors.append(invalid(where, resource, "must be a node allocatable resource name"))
            if quantity(value).sign() < 0:
                errors.append(invalid(where, str(value), "must be non-negative"))
    return errors


def _validate_ips(ips: Sequence[PodIP | HostIP], old: Sequence[PodIP | HostIP], path: Path) -> list[FieldError]:
    """Valid addresses, at most one of each family."""
    errors: list[FieldError] = []
    known = {each.ip or "" for each in old}
    for index, each in enumerate(ips):
        errors += is_valid_ip_for_legacy_field(path.index(index), each.ip or "", old=known)
    if len(ips) > 1:
        addresses = [parse_ip(each.ip or "") for each in ips]
        if None in addresses:
            bad = addresses.index(None)
            why = f"failed to check for dual stack with error:invalid IP[{bad}]: {ips[bad].ip or ''}"
            errors.append(internal(path, why))
        if len(ips) > 2 or len({each.version for each in addresses if each is not None}) < 2:
            detail = "may specify no more than one IP for each IP family"
            errors.append(invalid(path, InternalForm(list(ips)), detail))
    return errors
