"""StatefulSets."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from ... import names
from ...core.v1.persistentvolumeclaim import PersistentVolumeClaim, PersistentVolumeClaimSpec
from ...core.v1.pod import PodSpec, PodTemplateSpec
from ...core.v1.volume import Volume
from ...core.v1.volumesource import PersistentVolumeClaimVolumeSource
from ...core.validation.options import TEMPLATE, options_for_update
from ...core.validation.podannotations import validate_pod_annotations
from ...core.validation.podtemplate import validate_pod_template_spec
from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...labels import Selector
from ...meta.validation import (
    validate_annotations,
    validate_labels,
    validate_not_negative,
    validate_object_meta,
    validate_object_meta_update,
)
from ..shared import (
    MISMATCH,
    SPEC,
    STATUS,
    amount,
    compiled,
    in_order,
    template_labels,
    validate_at_most_100_percent,
    validate_collision_count,
    validate_counters,
    validate_int_or_percent,
    validate_not_more,
    validate_required_selector,
    validate_restarts,
)
from ..v1 import RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetStatus

_COUNTERS = (
    ("replicas", "replicas"),
    ("ready_replicas", "readyReplicas"),
    ("current_replicas", "currentReplicas"),
    ("updated_replicas", "updatedReplicas"),
    ("available_replicas", "availableReplicas"),
    ("observed_generation", "observedGeneration"),
    ("collision_count", "collisionCount"),
)
_FIXED = ("selector", "volume_claim_templates", "service_name", "pod_management_policy")
_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_stateful_set(stateful_set: StatefulSet) -> list[FieldError]:
    """A new StatefulSet; its name becomes the host name of its pods."""
    errors = validate_object_meta(stateful_set.metadata, True, names.name_is_dns_label)
    return errors + _validate_spec(stateful_set.spec or StatefulSetSpec())


def validate_stateful_set_update(new: StatefulSet, old: StatefulSet) -> list[FieldError]:
    """A changed StatefulSet. What was accepted long ago and cannot change any more is not looked at again."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec, before = new.spec or StatefulSetSpec(), old.spec or StatefulSetSpec()
    skip = bool(_validate_spec(before, before=before))
    errors += _validate_spec(spec, before=before, skip_template=skip)
    if any(not semantically_equal(getattr(spec, name), getattr(before, name)) for name in _FIXED):
        errors.append(forbidden(SPEC, _FORBIDDEN))
    return errors


def validate_stateful_set_status_update(new: StatefulSet, old: StatefulSet) -> list[FieldError]:
    """Counters that fit together."""
    status, before = new.status or StatefulSetStatus(), old.status or StatefulSetStatus()
    errors = validate_counters(status, _COUNTERS, STATUS)
    errors += validate_not_more(
        status, _COUNTERS[1:5], status.replicas, "cannot be greater than status.replicas", STATUS
    )
    detail = "cannot be greater than status.readyReplicas"
    errors += validate_not_more(status, _COUNTERS[4:5], status.ready_replicas, detail, STATUS)
    errors += validate_object_meta_update(new.metadata, old.metadata)
    return errors + validate_collision_count(status.collision_count, before.collision_count, STATUS)


def _validate_spec(
    spec: StatefulSetSpec, *, before: StatefulSetSpec | None = None, skip_template: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    new = before is None
    policy = spec.pod_management_policy
    if not policy:
        errors.append(required(SPEC.child("podManagementPolicy")))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid(SPEC.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += _validate_update_strategy(spec, SPEC.child("updateStrategy"))
    errors += _validate_retention(spec, SPEC.child("persistentVolumeClaimRetentionPolicy"))
    if new and spec.volume_claim_templates:
        errors += _validate_claims(spec.volume_claim_templates, SPEC.child("volumeClaimTemplates"))
    errors += validate_not_negative(spec.replicas, SPEC.child("replicas"))
    errors += validate_not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
    if spec.ordinals is not None:
        errors += validate_not_negative(spec.ordinals.start, SPEC.child("ordinals.start"))
    if new and spec.service_name:
        for problem in names.is_dns1123_label(spec.service_name):
            errors.append(invalid(SPEC.child("serviceName"), spec.service_name, problem))
    errors += validate_required_selector(spec.selector, SPEC.child("selector"), "statefulset")
    selector = compiled(spec.selector)
    template = spec.template or PodTemplateSpec()
    if selector is None:
        errors.append(invalid(SPEC.child("selector"), spec.selector, ""))
    else:
        old = before.template if before else None
        errors += _validate_template(spec, template, selector, old, skip_template)
    return errors + validate_restarts(template, "StatefulSet", SPEC.child("template"))


def _validate_update_strategy(spec: StatefulSetSpec, path: Path) -> list[FieldError]:
    strategy = spec.update_strategy
    update = strategy.rolling_update if strategy else None
    if strategy is None or not strategy.type:
        return [required(path)]
    if strategy.type == "OnDelete":
        if update is not None:
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            return [invalid(path.child("rollingUpdate"), in_order(**_printed(update)), detail)]
        return []
    if strategy.type == "RollingUpdate":
        return [] if update is None else _validate_rolling_update(update, path.child("rollingUpdate"))
    printed = in_order(Type=strategy.type, RollingUpdate=update and _printed(update))
    return [invalid(path, printed, "must be 'RollingUpdate' or 'OnDelete'")]


def _printed(update: RollingUpdateStatefulSetStrategy) -> dict[str, object]:
    return {"Partition": update.partition or 0, "MaxUnavailable": update.max_unavailable}


def _validate_rolling_update(update: RollingUpdateStatefulSetStrategy, path: Path) -> list[FieldError]:
    errors = validate_not_negative(update.partition, path.child("partition"))
    unavailable = update.max_unavailable
    if unavailable is not None:
        path = path.child("maxUnavailable")
        errors += validate_int_or_percent(unavailable, path)
        if amount(unavailable) == 0:
            errors.append(invalid(path, unavailable, "cannot be 0"))
        errors += validate_at_most_100_percent(unavailable, path)
    return errors


def _validate_retention(spec: StatefulSetSpec, path: Path) -> list[FieldError]:
    policy = spec.persistent_volume_claim_retention_policy
    if policy is None:
        return []
    return [
        not_supported(path.child(name), value or "", ("Retain", "Delete"))
        for name, value in (("whenDeleted", policy.when_deleted), ("whenScaled", policy.when_scaled))
        if value not in ("Retain", "Delete")
    ]


def _validate_claims(claims: Sequence[PersistentVolumeClaim], path: Path) -> list[FieldError]:
    # Imported here: most StatefulSets of a server's life are updates, which do not look at claims.
    from ...core.validation.persistentvolumeclaim import validate_persistent_volume_claim_spec

    errors: list[FieldError] = []
    for index, claim in enumerate(claims):
        spec = claim.spec or PersistentVolumeClaimSpec()
        errors += validate_persistent_volume_claim_spec(spec, path.index(index).child("spec"))
    return errors


def _validate_template(
    spec: StatefulSetSpec, template: PodTemplateSpec, selector: Selector, old: PodTemplateSpec | None, skip: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    path = SPEC.child("template")
    labels = template_labels(template)
    if not selector.empty() and not selector.matches(labels or {}):
        errors.append(invalid(path.child("metadata", "labels"), labels, MISMATCH))
    if not skip:
        errors += validate_pod_template_spec(_as_the_controller_makes_it(spec, template), path, old)
    # Once more at the places where very old clients look for them.
    errors += validate_labels(labels, path.child("labels"))
    annotations = template.metadata.annotations if template.metadata else None
    errors += validate_annotations(annotations, path.child("annotations"))
    if annotations:
        pod, options = template.spec or PodSpec(), TEMPLATE
        if old is not None:
            options = options_for_update(old.spec, old.metadata, is_pod=False)
        errors += validate_pod_annotations(annotations, pod, path.child("annotations"), options)
    return errors


def _as_the_controller_makes_it(spec: StatefulSetSpec, template: PodTemplateSpec) -> PodTemplateSpec:
    """The template with host names left to the controller and with the volumes that its claims will give it."""
    pod = template.spec
    if pod is None or not (pod.subdomain or pod.hostname or spec.volume_claim_templates):
        return template
    pod = copy.copy(pod)
    pod.subdomain = pod.hostname = None
    if spec.volume_claim_templates:
        pod.volumes = _with_claims(spec, pod)
    return PodTemplateSpec(metadata=template.metadata, spec=pod)


def _with_claims(spec: StatefulSetSpec, pod: PodSpec) -> list[Volume]:
    claims = {claim.metadata.name or "" if claim.metadata else "": claim for claim in spec.volume_claim_templates or ()}
    made = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name)) for name in claims
    ]
    return made + [volume for volume in pod.volumes or () if volume.name not in claims]
