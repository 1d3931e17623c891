"""How pods are created, updated and deleted.

A new pod is Pending and knows its class of service. Its spec may hardly change; every change is a new generation.
Deletion waits for the kubelet, unless no kubelet has the pod or nothing of it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from pybernetes.api import names
from pybernetes.api.addresses import warnings_for_ip
from pybernetes.api.byte_cache import Remembered
from pybernetes.api.core.containers import all_containers
from pybernetes.api.core.defaults.pod import mirror_service_account
from pybernetes.api.core.disabled import drop_disabled_pod_fields, drop_disabled_status_fields
from pybernetes.api.core.matchlabelkeys import merge_match_label_keys
from pybernetes.api.core.podconditions import POD_SCHEDULED, update_pod_condition
from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.v1 import Container, Pod, PodCondition, PodSpec, PodStatus, SecurityContext
from pybernetes.api.core.validation.podannotations import APP_ARMOR, app_armor_from_annotation
from pybernetes.api.core.validation.podresize import validate_ephemeral_containers_update, validate_pod_resize
from pybernetes.api.core.validation.security import validate_app_armor_profile
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import FieldError, Path
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.meta.validation import METADATA, validate_object_meta
from pybernetes.api.resources import Resource
from pybernetes.apiserver.registry.strategy import Context, Prepare, Strategy, ValidateUpdate

from .pod_warnings import pod_warnings

_STATUS: Final = Path("status")
_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"


class Sound(NamedTuple):
    """Facts derived from a valid spec."""

    warnings: tuple[str, ...]
    qos_class: str


class PodStrategy(Strategy):
    """Pods."""

    returns_deleted = True
    graceful = True
    has_generation = True

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        self._sound: Remembered[Sound] = Remembered(self._judge, _without_random_name)
        self._judged: tuple[PodSpec | None, Sound | None] = (None, None)
        """The spec of the pod that is being created, and what is known of it: what follows does not wait in between."""

    # -- create -------------------------------------------------------------------------------------------------

    def prepare_for_create(self, obj: Pod, context: Context) -> None:
        spec = obj.spec = obj.spec or PodSpec()
        meta = _meta(obj)
        meta.generation = 1
        mirror_service_account(spec)
        alone = _stands_alone(spec, meta)
        refers = spec.affinity is not None or bool(spec.topology_spread_constraints)  # perhaps to the pod's own labels
        sound = self._sound.recall(spec) if alone and not refers else None
        if sound is None:  # or else nothing is left to be changed in it
            drop_disabled_pod_fields(spec, None)
            if refers:
                merge_match_label_keys(obj)
            if meta.annotations:
                _app_armor_from_annotations(obj, spec, context)
            sound = self._sound(spec) if alone else None
        self._judged = (spec, sound)
        obj.status = PodStatus(phase="Pending", qos_class=qos_class(spec) if sound is None else sound.qos_class)
        if spec.scheduling_gates:
            gated = PodCondition(type=POD_SCHEDULED, status="False", reason="SchedulingGated", message=_GATED)
            update_pod_condition(obj.status, gated, context.now)

    def warnings_on_create(self, obj: Pod, context: Context) -> list[str]:
        warnings: list[str] = []
        problems = names.is_dns1123_label(_meta(obj).name or "")
        if problems:
            warnings.append(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )
        sound = self._known(obj)
        return [*warnings, *sound.warnings] if sound is not None else warnings + pod_warnings(obj)

    def validate(self, obj: Pod, context: Context) -> list[FieldError]:
        if self._known(obj) is not None:
            return validate_object_meta(_meta(obj), True, names.name_is_dns_subdomain, METADATA)
        return super().validate(obj, context)

    def _known(self, obj: Pod) -> Sound | None:
        spec, sound = self._judged
        return sound if spec is obj.spec else None

    def _judge(self, spec: PodSpec) -> Sound | None:
        """The facts about a spec, None if it is invalid."""
        pod = Pod(metadata=ObjectMeta(name="any", namespace="any"), spec=spec)
        errors = self._create(pod) if self._create else []
        warnings = () if errors else tuple(pod_warnings(pod))
        named = any("kube-api-access-" in each for each in warnings)  # holds for this name only
        return None if errors or named else Sound(warnings, qos_class(spec))

    # -- update -------------------------------------------------------------------------------------------------

    def prepare_for_update(self, new: Pod, old: Pod, context: Context) -> None:
        new.status = old.status
        self._complete(new, old)

    def changed(self, new: Pod, old: Pod) -> bool:
        return not semantically_equal(new.spec, old.spec)

    def warnings_on_update(self, new: Pod, old: Pod, context: Context) -> list[str]:
        return []  # updates of pods are frequent, and hardly a human makes them

    def prepare_for_status_update(self, new: Pod, old: Pod, context: Context) -> None:
        new.spec = old.spec
        _meta(new).owner_references = _meta(old).owner_references
        _meta(new).deletion_timestamp = _meta(old).deletion_timestamp
        status, before = new.status or PodStatus(), old.status or PodStatus()
        new.status = status
        if not status.qos_class:
            status.qos_class = before.qos_class
        _keep_observed_generations(status, before)
        drop_disabled_status_fields(status, before)

    def validate_status_update(self, new: Pod, old: Pod, context: Context) -> list[FieldError]:
        errors = super().validate_status_update(new, old, context)
        if not errors:
            context.warnings.extend(_status_warnings(new.status or PodStatus()))
        return errors

    def rules(self, subresource: str) -> tuple[Prepare, ValidateUpdate]:
        if subresource == "ephemeralcontainers":
            return self.prepare_for_ephemeral_containers_update, self.validate_ephemeral_containers_update
        if subresource == "resize":
            return self.prepare_for_resize, self.validate_resize
        return super().rules(subresource)

    def prepare_for_ephemeral_containers_update(self, new: Pod, old: Pod, context: Context) -> None:
        """Keep everything but the ephemeral containers."""
        wanted = new.spec.ephemeral_containers if new.spec is not None else None
        _keep_metadata(new, old)
        new.status = old.status
        new.spec = msgspec.structs.replace(old.spec or PodSpec(), ephemeral_containers=wanted)
        self._complete(new, old)

    def validate_ephemeral_containers_update(self, new: Pod, old: Pod, context: Context) -> list[FieldError]:
        """Validation errors of the ephemeral containers."""
        return validate_ephemeral_containers_update(new, old)

    def prepare_for_resize(self, new: Pod, old: Pod, context: Context) -> None:
        """Keep everything but resources and resize policies; other containers are left for validation to refuse."""
        after, before = new.spec or PodSpec(), old.spec or PodSpec()
        same = len(after.containers or ()) == len(before.containers or ()) and len(after.init_containers or ()) == len(
            before.init_containers or ()
        )
        if same:
            new.spec = msgspec.structs.replace(
                before,
                resources=after.resources,
                containers=_resized(after.containers, before.containers),
                init_containers=_resized(after.init_containers, before.init_containers),
            )
            new.status = old.status
            _keep_metadata(new, old)
        self._complete(new, old)

    def validate_resize(self, new: Pod, old: Pod, context: Context) -> list[FieldError]:
        """Validation errors of the new resources."""
        return validate_pod_resize(new, old)

    def _complete(self, new: Pod, old: Pod) -> None:
        if new.spec is not None:
            mirror_service_account(new.spec)
        drop_disabled_pod_fields(new.spec, old.spec)
        if self.changed(new, old):
            _meta(new).generation = (_meta(old).generation or 0) + 1

    # -- delete -------------------------------------------------------------------------------------------------

    def grace_period(self, obj: Pod, wanted: int | None) -> int:
        spec, status = obj.spec or PodSpec(), obj.status or PodStatus()
        if not spec.node_name or status.phase in ("Failed", "Succeeded"):
            return 0
        seconds = spec.termination_grace_period_seconds or 0 if wanted is None else wanted
        return seconds if seconds >= 0 else 1


_TOKEN_VOLUME: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')


def _without_random_name(spec: bytes) -> bytes:
    """A spec without the random part of its token volume's name: what is valid with one name is with any other.

    Only the first such name is blotted out, everywhere; so two of them stay two.
    """
    found = _TOKEN_VOLUME.search(spec)
    return spec if found is None else spec.replace(found[0], b'"kube-api-access-?"')


def _stands_alone(spec: PodSpec, meta: ObjectMeta) -> bool:
    """Whether the spec can be judged without the metadata: annotations speak of it, and claims get the pod's name."""
    if meta.annotations or spec.resource_claims:
        return False
    return not spec.volumes or all(volume.ephemeral is None for volume in spec.volumes)


def _meta(pod: Pod) -> ObjectMeta:
    assert pod.metadata is not None  # the verbs see to it
    return pod.metadata


def _keep_metadata(new: Pod, old: Pod) -> None:
    """Subresources do not change labels, annotations, finalizers and owners."""
    for field in ("deletion_timestamp", "generation", "labels", "annotations", "finalizers", "owner_references"):
        setattr(_meta(new), field, getattr(_meta(old), field))


def _resized(new: list[Container] | None, old: list[Container] | None) -> list[Container] | None:
    if not new or not old or any(mine.name != theirs.name for mine, theirs in zip(new, old, strict=True)):
        return new
    return [
        msgspec.structs.replace(theirs, resources=mine.resources, resize_policy=mine.resize_policy)
        for mine, theirs in zip(new, old, strict=True)
    ]


def _keep_observed_generations(status: PodStatus, before: PodStatus) -> None:
    """A client that does not know about observed generations does not clear them."""
    if not status.observed_generation:
        status.observed_generation = before.observed_generation
    known: dict[str | None, list[int | None]] = {}
    for condition in before.conditions or ():
        known.setdefault(condition.type, []).append(condition.observed_generation)
    for condition in status.conditions or ():
        generations = known.get(condition.type)
        generation = generations.pop(0) if generations else None
        if not condition.observed_generation:
            condition.observed_generation = generation


def _app_armor_from_annotations(pod: Pod, spec: PodSpec, context: Context) -> None:
    """Give old AppArmor annotations the form of the field that replaced them."""
    annotations = _meta(pod).annotations or {}
    if (spec.os is not None and spec.os.name == "windows") or not any(key.startswith(APP_ARMOR) for key in annotations):
        return
    whole = spec.security_context.app_armor_profile if spec.security_context is not None else None
    for container in all_containers(spec):
        key = f"{APP_ARMOR}{container.name}"
        own = container.security_context
        if key not in annotations or (own is not None and own.app_armor_profile is not None):
            continue
        profile = app_armor_from_annotation(annotations[key])
        if profile is not None and validate_app_armor_profile(profile, _STATUS):
            profile = None
        if profile is not None and profile != whole:
            if container.security_context is None:
                container.security_context = SecurityContext()
            container.security_context.app_armor_profile = profile
        elif profile is not None:
            continue
        at = Path("metadata", "annotations").key(key)
        context.warnings.append(f'{at}: deprecated since v1.30; use the "appArmorProfile" field instead')


def _status_warnings(status: PodStatus) -> Iterator[str]:
    pod_ips, host_ips = status.pod_ips or (), status.host_ips or ()
    for field, addresses in (("podIPs", [each.ip for each in pod_ips]), ("hostIPs", [each.ip for each in host_ips])):
        for index, address in enumerate(addresses):
            yield from warnings_for_ip(_STATUS.child(field).index(index).child("ip"), address or "")


STRATEGIES: Final = {"pods": PodStrategy}
