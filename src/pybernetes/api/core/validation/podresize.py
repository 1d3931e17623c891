"""Limits the pod's subresources: `resize` changes CPU and memory, `ephemeralcontainers` only adds."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid
from ...gocompat.quote import quote
from ...meta.validation import METADATA, validate_object_meta_update
from ..podresources import is_sidecar, qos_class
from ..v1.compute import ResourceRequirements
from ..v1.container import Container
from ..v1.pod import Pod, PodSpec, PodStatus
from .options import options_for_update
from .pod import SPEC, difference, validate_metadata_and_spec
from .podannotations import validate_pod_annotations_update
from .podspec import MIRROR_POD

_RESIZABLE: Final = ("cpu", "memory")
_ONLY_CPU_AND_MEMORY: Final = "only cpu and memory resources are mutable"


def validate_ephemeral_containers_update(new: Pod, old: Pod) -> list[FieldError]:
    """Ephemeral containers are added to a pod and stay as they are."""
    after, before = new.spec or PodSpec(), old.spec or PodSpec()
    options = options_for_update(before, old.metadata, is_pod=True)
    if _is_mirror(old):
        return [forbidden("", "static pods do not support ephemeral containers")]
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    errors += validate_metadata_and_spec(new, options)
    errors += validate_pod_annotations_update(new, old, METADATA.child("annotations"), options)
    path = SPEC.child("ephemeralContainers")
    by_name = {container.name: container for container in after.ephemeral_containers or ()}
    for container in before.ephemeral_containers or ():
        name = quote(container.name or "")
        found = by_name.get(container.name)
        if found is None:
            errors.append(forbidden(path, f"existing ephemeral containers {name} may not be removed\n"))
        elif not semantically_equal(container, found):
            diff = difference(container, found)
            errors.append(forbidden(path, f"existing ephemeral containers {name} may not be changed\n{diff}"))
    return errors


def validate_pod_resize(new: Pod, old: Pod) -> list[FieldError]:
    """A running pod gets more or less CPU and memory, and stays in its class of service."""
    after, before = new.spec or PodSpec(), old.spec or PodSpec()
    if _is_mirror(old):
        return [forbidden("", "static pods cannot be resized")]
    if before.os is not None and before.os.name == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    errors += validate_metadata_and_spec(new, options_for_update(before, old.metadata, is_pod=True))
    status = old.status or PodStatus()
    if (status.qos_class or qos_class(before)) != qos_class(after):
        value = (new.status.qos_class if new.status is not None else None) or ""
        errors.append(invalid(SPEC, value, "Pod QOS Class may not change as a result of resizing"))
    if not _node_supports_resize(status):
        errors.append(forbidden(SPEC, "Pod running on node without support for resize"))
    masked = msgspec.structs.replace(after)
    if _has_any(before.resources) or _has_any(after.resources):
        errors += _validate_pod_level(masked, after, before)
    if status.node_allocatable_resource_claim_statuses:
        errors.append(forbidden(SPEC, "pods with node allocatable resource claims cannot be resized"))
    order = _validate_order(after, before)
    if order:
        return errors + order
    for wire, theirs, ours in (
        ("initContainers", after.init_containers, before.init_containers),
        ("containers", after.containers, before.containers),
    ):
        for index, (mine, earlier) in enumerate(zip(theirs or (), ours or (), strict=True)):
            at = SPEC.child(wire).index(index).child("resources")
            errors += _validate_nothing_removed(mine.resources, earlier.resources, at)
    masked.containers = [_with_old_amounts(*pair) for pair in _pairs(after.containers, before.containers)] or None
    for container, earlier in _pairs(masked.containers, before.containers):
        if not semantically_equal(container, earlier):
            errors.append(forbidden(SPEC, _ONLY_CPU_AND_MEMORY))
    masked.init_containers = _mask_init_containers(after, before, errors)
    if not errors and not semantically_equal(masked, before):
        errors.append(forbidden(SPEC, _ONLY_CPU_AND_MEMORY))
    return errors


def _is_mirror(pod: Pod) -> bool:
    return pod.metadata is not None and MIRROR_POD in (pod.metadata.annotations or ())


def _has_any(resources: ResourceRequirements | None) -> bool:
    return resources is not None and bool(resources.requests or resources.limits)


def _node_supports_resize(status: PodStatus) -> bool:
    """A node that knows about resizing reports the resources of running containers."""
    for each in status.container_statuses or ():
        if each.state is not None and each.state.running is not None:
            return each.resources is not None
    return True


def _validate_order(new: PodSpec, old: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    for wire, theirs, ours in (
        ("containers", new.containers or [], old.containers or []),
        ("initContainers", new.init_containers or [], old.init_containers or []),
    ):
        if len(theirs) != len(ours):
            errors.append(forbidden(SPEC.child(wire), f"{wire} may not be added or removed on resize"))
            continue
        for index, (mine, earlier) in enumerate(zip(theirs, ours, strict=True)):
            if mine.name != earlier.name:
                at = SPEC.child(wire).index(index).child("name")
                errors.append(forbidden(at, f"{wire} may not be renamed or reordered on resize"))
    return errors


def _validate_nothing_removed(
    new: ResourceRequirements | None, old: ResourceRequirements | None, path: Path, prefix: str = ""
) -> list[FieldError]:
    errors: list[FieldError] = []
    new, old = new or ResourceRequirements(), old or ResourceRequirements()
    for wire, after, before in (("requests", new.requests, old.requests), ("limits", new.limits, old.limits)):
        if any(name not in (after or ()) for name in before or ()):
            errors.append(forbidden(path.child(wire), f"{prefix}resource {wire} cannot be removed"))
    return errors


def _validate_pod_level(masked: PodSpec, new: PodSpec, old: PodSpec) -> list[FieldError]:
    path = SPEC.child("resources")
    if old.resources is not None and new.resources is None:
        return [forbidden(path, "pod-level resources cannot be removed")]
    errors: list[FieldError] = []
    if old.resources is not None:
        errors += _validate_nothing_removed(new.resources, old.resources, path, "pod-level ")
    if new.resources is not None:
        before = old.resources or ResourceRequirements()
        kept = msgspec.structs.replace(
            new.resources,
            requests=_old_amounts(new.resources.requests, before.requests),
            limits=_old_amounts(new.resources.limits, before.limits),
        )
        empty = not kept.requests and not kept.limits and not kept.claims
        masked.resources = None if old.resources is None and empty else kept
    if not semantically_equal(masked.resources, old.resources):
        errors.append(forbidden(SPEC, f"{_ONLY_CPU_AND_MEMORY} at pod-level"))
    return errors


def _mask_init_containers(new: PodSpec, old: PodSpec, errors: list[FieldError]) -> list[Container] | None:
    masked: list[Container] = []
    for index, (container, earlier) in enumerate(_pairs(new.init_containers, old.init_containers)):
        at = SPEC.child("initContainers").index(index)
        kept = _with_old_amounts(container, earlier)
        if not semantically_equal(kept, earlier):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(at, detail))
        if not is_sidecar(container) and not semantically_equal(container, earlier):
            for policy in container.resize_policy or ():
                if policy.restart_policy == "RestartContainer":
                    detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                    errors.append(forbidden(at, detail))
        masked.append(kept)
    return masked or None


def _pairs(new: list[Container] | None, old: list[Container] | None) -> list[tuple[Container, Container]]:
    return list(zip(new or (), old or (), strict=True))


def _with_old_amounts(container: Container, old: Container) -> Container:
    """The container with the CPU and memory it had, so that any difference left is one too many."""
    resources, before = container.resources or ResourceRequirements(), old.resources or ResourceRequirements()
    kept = ResourceRequirements(
        limits=_old_amounts(resources.limits, before.limits),
        requests=_old_amounts(resources.requests, before.requests),
    )
    return msgspec.structs.replace(container, resources=kept)


def _old_amounts(new: dict[str, Any] | None, old: dict[str, Any] | None) -> dict[str, Any] | None:
    if new is None and old is None:
        return None
    kept = {name: value for name, value in (new or {}).items() if name not in _RESIZABLE}
    kept.update({name: value for name, value in (old or {}).items() if name in _RESIZABLE})
    return kept
