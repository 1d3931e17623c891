"""Pods: what may be created, and the little that may be changed afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...gocompat.godiff import diff
from ...gocompat.goform import go_values
from ...meta.validation import METADATA, validate_object_meta, validate_object_meta_update
from ...names import name_is_dns_subdomain, range_error
from ..v1.affinity import Affinity, NodeAffinity, NodeSelectorTerm
from ..v1.container import Container
from ..v1.pod import Binding, Pod, PodSpec
from .common import InternalForm
from .container import validate_image_blanks
from .options import POD, PodOptions, options_for_update
from .podannotations import (
    validate_annotations_match_fields,
    validate_pod_annotations,
    validate_pod_annotations_update,
)
from .podspec import validate_pod_spec
from .podstatus import validate_pod_status_update
from .scheduling import validate_only_added_tolerations, validate_only_deleted_scheduling_gates

SPEC: Final = Path("spec")
_ANNOTATIONS: Final = Path("metadata", "annotations")
_MAX_INT32: Final = (1 << 31) - 1
_MAY_CHANGE: Final = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_pod_create(pod: Pod) -> list[FieldError]:
    """A new pod."""
    spec = pod.spec or PodSpec()
    errors = validate_metadata_and_spec(pod, POD)
    if spec.ephemeral_containers:
        errors.append(forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
    if spec.node_name and spec.scheduling_gates:
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden(SPEC.child("nodeName"), detail))
    return errors + validate_annotations_match_fields(pod.metadata, spec, SPEC)


def validate_metadata_and_spec(pod: Pod, options: PodOptions) -> list[FieldError]:
    """Validate the rules that hold for a pod at any time."""
    spec, meta = pod.spec or PodSpec(), pod.metadata
    errors = validate_object_meta(meta, True, name_is_dns_subdomain, METADATA)
    if meta is not None and meta.annotations:
        errors += validate_pod_annotations(meta.annotations, spec, _ANNOTATIONS, options)
    errors += validate_pod_spec(spec, meta, SPEC, options)
    if not spec.service_account_name:
        for index, volume in enumerate(spec.volumes or ()):
            sources = volume.projected.sources if volume.projected is not None else None
            for number, source in enumerate(sources or ()):
                if source.service_account_token is not None:
                    at = SPEC.child("volumes").index(index).child("projected", "sources").index(number)
                    detail = "must not be specified when serviceAccountName is not set"
                    errors.append(forbidden(at.child("serviceAccountToken"), detail))
    for wire, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            image = container.image
            if image and (image[0].isspace() or image[-1].isspace()):
                errors += validate_image_blanks(image, SPEC.child(wire).index(index))
    return errors


def validate_pod_update(new: Pod, old: Pod) -> list[FieldError]:
    """A change of an existing pod: images, deadlines, more tolerations, fewer gates."""
    before, after = old.spec or PodSpec(), new.spec or PodSpec()
    options = options_for_update(before, old.metadata, is_pod=True)
    errors = validate_object_meta_update(new.metadata, old.metadata, METADATA)
    errors += validate_metadata_and_spec(new, options)
    errors += validate_pod_annotations_update(new, old, _ANNOTATIONS, options)
    for wire, theirs, ours in (
        ("containers", after.containers, before.containers),
        ("initContainers", after.init_containers, before.init_containers),
    ):
        problems, stop = _validate_containers_update(theirs or [], ours or [], SPEC.child(wire))
        errors += problems
        if stop:
            return errors
    if _validate_deadline(after.active_deadline_seconds, before.active_deadline_seconds, errors):
        return errors
    at = SPEC.child("tolerations")
    errors += validate_only_added_tolerations(
        after.tolerations or [], before.tolerations or [], at, comparing=options.comparing_tolerations
    )
    errors += validate_only_deleted_scheduling_gates(
        after.scheduling_gates or [], before.scheduling_gates or [], SPEC.child("schedulingGates")
    )
    if semantically_equal(after, before):
        return errors
    masked = _mask(after, before, errors)
    if not semantically_equal(masked, before):
        detail = f"pod updates may not change fields other than {_MAY_CHANGE}\n{difference(before, masked)}"
        errors.append(forbidden(SPEC, detail))
    return errors


def _validate_containers_update(
    new: list[Container], old: list[Container], path: Path
) -> tuple[list[FieldError], bool]:
    if len(new) != len(old):
        return [forbidden(path, "pod updates may not add or remove containers")], True
    errors: list[FieldError] = []
    for index, container in enumerate(new):
        if not container.image:
            errors.append(required(path.index(index).child("image")))
        errors += validate_image_blanks(container.image, path.index(index))
    return errors, False


def _validate_deadline(new: int | None, old: int | None, errors: list[FieldError]) -> bool:
    """A deadline may be set and come nearer. True if there is nothing more to say."""
    at = SPEC.child("activeDeadlineSeconds")
    if new is not None:
        if not 0 <= new <= _MAX_INT32:
            errors.append(invalid(at, new, range_error(0, _MAX_INT32)))
            return True
        if old is not None and old < new:
            errors.append(invalid(at, new, "must be less than or equal to previous value"))
            return True
    elif old is not None:
        errors.append(invalid(at, None, "must not update from a positive integer to nil value"))
    return False


def _mask(new: PodSpec, old: PodSpec, errors: list[FieldError]) -> PodSpec:
    """The new spec with everything that may change set back, so that any difference left is one too many."""
    masked = msgspec.structs.replace(
        new,
        containers=_with_old_images(new.containers, old.containers),
        init_containers=_with_old_images(new.init_containers, old.init_containers),
        active_deadline_seconds=old.active_deadline_seconds,
        scheduling_gates=old.scheduling_gates,
        tolerations=old.tolerations,
    )
    grace = old.termination_grace_period_seconds
    if grace is not None and grace < 0 and masked.termination_grace_period_seconds == 1:
        masked.termination_grace_period_seconds = grace
    if old.scheduling_gates:
        _mask_gated(masked, old, errors)
    return masked


def _with_old_images(new: list[Container] | None, old: list[Container] | None) -> list[Container] | None:
    if not new or not old:
        return new
    pairs = zip(new, old, strict=True)
    return [msgspec.structs.replace(theirs, image=ours.image) for theirs, ours in pairs]


def _mask_gated(masked: PodSpec, old: PodSpec, errors: list[FieldError]) -> None:
    """While a pod is held back, its node selector and node affinity may become narrower."""
    if not semantically_equal(masked.node_selector, old.node_selector):
        selector = masked.node_selector or {}
        if any(selector.get(key) != value for key, value in (old.node_selector or {}).items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid(SPEC.child("nodeSelector"), selector, detail))
        masked.node_selector = old.node_selector
    before = old.affinity.node_affinity if old.affinity is not None else None
    after = masked.affinity.node_affinity if masked.affinity is not None else None
    if semantically_equal(before, after):
        return
    errors += _validate_node_affinity_mutation(after, before)
    affinity = masked.affinity
    if affinity is None:
        masked.affinity = Affinity(node_affinity=before)
    elif old.affinity is None and affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
        masked.affinity = None
    else:
        masked.affinity = msgspec.structs.replace(affinity, node_affinity=before)


def _validate_node_affinity_mutation(new: NodeAffinity | None, old: NodeAffinity | None) -> list[FieldError]:
    demanded = old.required_during_scheduling_ignored_during_execution if old is not None else None
    if demanded is None:
        return []
    before = demanded.node_selector_terms or []
    wanted = new.required_during_scheduling_ignored_during_execution if new is not None else None
    after = (wanted.node_selector_terms if wanted is not None else None) or []
    path = SPEC.child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    if before and len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, InternalForm(after or None), detail)]
    return [
        invalid(path.index(index), InternalForm(term), "only additions are allowed (no mutations or deletions)")
        for index, (term, earlier) in enumerate(zip(after, before, strict=False))
        if not _only_additions(term, earlier)
    ]


def _only_additions(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    if not old.match_expressions and not old.match_fields and (new.match_expressions or new.match_fields):
        return False
    for after, before in ((new.match_expressions, old.match_expressions), (new.match_fields, old.match_fields)):
        if before and not semantically_equal((after or [])[: len(before)], before):
            return False
    return True


def difference(old: Any, new: Any) -> str:
    """The two as upstream prints them, line by line, with what differs."""
    return diff(go_values(old), go_values(new))


def validate_pod_binding(binding: Binding) -> list[FieldError]:
    """The order of a scheduler to run a pod on a node."""
    errors: list[FieldError] = []
    target = binding.target
    kind = target.kind if target is not None else None
    if kind and kind != "Node":
        errors.append(not_supported(Path("target", "kind"), kind, ("Node", "<empty>")))
    if target is None or not target.name:
        errors.append(required(Path("target", "name")))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "Pod": validate_pod_create,
    "Binding": validate_pod_binding,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Pod": validate_pod_update}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Pod": validate_pod_status_update}
