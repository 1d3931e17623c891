"""Validation of Nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ...addresses import is_valid_cidr_for_legacy_field, parse_cidr
from ...field import FieldError, Path, duplicate, forbidden, internal, invalid, not_supported, required
from ...gocompat.godiff import in_order
from ...gocompat.goform import go_form
from ...gocompat.gojson import syntax_problem
from ...gocompat.quote import quote
from ...meta.validation import validate_label_name, validate_object_meta, validate_object_meta_update
from ...names import DNS1123_SUBDOMAIN_MAX, is_config_map_key, is_label_value, name_is_dns_subdomain
from ...quantity import parse
from ..v1.affinity import Taint
from ..v1.node import ConfigMapNodeConfigSource, Node, NodeConfigSource, NodeSpec, NodeStatus
from .common import POSITIVE, dns1123_label, dns1123_subdomain
from .resources import validate_resource_quantity

TAINTS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_META: Final = Path("metadata")
_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_is_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch


def validate_node(obj: Node) -> list[FieldError]:
    """Validate a new Node."""
    spec, status = obj.spec or NodeSpec(), obj.status or NodeStatus()
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, _META)
    errors += _validate_annotations(obj)
    errors += validate_taints(spec.taints or [], _META.child("taints"))
    errors += _validate_resources(status)
    swap = status.node_info.swap if status.node_info else None
    if swap is not None and swap.capacity is not None and swap.capacity <= 0:
        errors.append(invalid(_META.child("nodeSwapStatus", "capacity"), swap.capacity, POSITIVE))
    errors += _validate_features(status.declared_features or [])
    return errors + _validate_pod_cidrs(spec.pod_cidrs or [], _SPEC.child("podCIDRs"))


def validate_node_update(new: Node, old: Node) -> list[FieldError]:
    """Validate an update; upstream reports some errors twice, and so do we."""
    return validate_node(new) + validate_node_status_update(new, old)


def validate_node_status_update(new: Node, old: Node) -> list[FieldError]:
    """Validate a status update: addresses blocks and the provider's ID are immutable once set."""
    spec, status = new.spec or NodeSpec(), new.status or NodeStatus()
    before = old.spec or NodeSpec()
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    errors += _validate_annotations(new)
    errors += _validate_resources(status)
    errors += _validate_features(status.declared_features or [])
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.addresses or ()):
        key = (address.type or "", address.address or "")
        if key in seen:
            at = _STATUS.child("addresses").index(index)
            errors.append(duplicate(at, in_order({"Type": key[0], "Address": key[1]})))
        seen.add(key)
    errors += _validate_pod_cidrs_stay(spec.pod_cidrs or [], before.pod_cidrs or [])
    if before.provider_id and before.provider_id != spec.provider_id:
        detail = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden(_SPEC.child("providerID"), detail))
    if spec.config_source is not None:
        errors += _validate_config_source(spec.config_source, _SPEC.child("configSource"), in_status=False)
    if status.config is not None:
        path = _STATUS.child("config")
        for name, wire in (("assigned", "assigned"), ("active", "active"), ("last_known_good", "lastKnownGood")):
            source = getattr(status.config, name)
            if source is not None:
                errors += _validate_config_source(source, path.child(wire), in_status=True)
    errors += validate_taints(spec.taints or [], _META.child("taints"))
    if (spec.external_id or "") != (before.external_id or ""):
        errors.append(forbidden(_SPEC.child("externalID"), "may not be updated"))
    return errors


def validate_taints(taints: list[Taint], path: Path) -> list[FieldError]:
    """Keys and values are those of labels; each pair of key and effect comes once."""
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = path.index(index)
        key, value, effect = taint.key or "", taint.value or "", taint.effect or ""
        errors += validate_label_name(key, at.child("key"))
        problems = is_label_value(value)
        if problems:
            errors.append(invalid(at.child("value"), value, ";".join(problems)))
        if not effect:
            errors.append(required(at.child("effect")))
        elif effect not in EFFECTS:
            errors.append(not_supported(at.child("effect"), effect, EFFECTS))
        if (key, effect) in seen:
            error = duplicate(
                at, in_order({"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.time_added})
            )
            error.detail = "taints must be unique by key and effect pair"
            errors.append(error)
        seen.add((key, effect))
    return errors


def _validate_annotations(obj: Node) -> list[FieldError]:
    """Taints and hints to the scheduler had their first home in annotations, and must still be well-formed there."""
    annotations = (obj.metadata and obj.metadata.annotations) or {}
    path = _META.child("annotations")
    errors: list[FieldError] = []
    text = annotations.get(TAINTS_ANNOTATION)
    if text:
        try:
            taints = msgspec.json.decode(text, type=list[Taint] | None)
        except (msgspec.DecodeError, UnicodeError) as error:
            why = syntax_problem(text.encode("utf-8", "replace")) or str(error)
            errors.append(invalid(path, TAINTS_ANNOTATION, why))
        else:
            errors += validate_taints(taints or [], path.child(TAINTS_ANNOTATION))
    text = annotations.get(AVOID_PODS_ANNOTATION)
    if text:
        errors += _validate_avoid_pods(text, path)
    return errors


class _Signature(msgspec.Struct, rename="camel"):
    pod_controller: dict[str, Any] | None = None


class _Entry(msgspec.Struct, rename="camel"):
    pod_signature: _Signature = msgspec.field(default_factory=_Signature)


class _AvoidPods(msgspec.Struct, rename="camel"):
    prefer_avoid_pods: list[_Entry] | None = None


def _validate_avoid_pods(text: str, path: Path) -> list[FieldError]:
    try:
        avoided = msgspec.json.decode(text, type=_AvoidPods)
    except (msgspec.DecodeError, UnicodeError) as error:
        why = syntax_problem(text.encode("utf-8", "replace")) or str(error)
        return [invalid(path.child("AvoidPods"), AVOID_PODS_ANNOTATION, why)]
    errors: list[FieldError] = []
    for index, entry in enumerate(avoided.prefer_avoid_pods or ()):
        at = path.child(AVOID_PODS_ANNOTATION).index(index).child("PodSignature")
        controller = entry.pod_signature.pod_controller
        if controller is None:
            errors.append(required(at))
        elif not controller.get("controller"):
            errors.append(invalid(at.child("PodController", "Controller"), False, "must point to a controller"))
    return errors


def _validate_resources(status: NodeStatus) -> list[FieldError]:
    errors: list[FieldError] = []
    for part, resources in (("capacity", status.capacity), ("allocatable", status.allocatable)):
        for name, value in (resources or {}).items():
            errors += validate_resource_quantity(name, parse(str(value)), _STATUS.child(part, name))
    return errors


def _validate_features(features: list[str]) -> list[FieldError]:
    """Sorted, each once, in UpperCamelCase."""
    errors: list[FieldError] = []
    path = _STATUS.child("declaredFeatures")
    for index, name in enumerate(features):
        problem = ""
        if len(name.encode("utf-8", "replace")) > DNS1123_SUBDOMAIN_MAX:
            problem = f"must be no more than {DNS1123_SUBDOMAIN_MAX} characters"
        elif not _is_feature(name):
            problem = (
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
                "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            )
        if problem:
            errors.append(invalid(path.index(index), name, f"invalid feature name {quote(name)}: {problem}"))
        if index + 1 < len(features):
            following = features[index + 1]
            if name == following:
                errors.append(duplicate(path.index(index + 1), following))
            elif name > following:
                errors.append(invalid(path.index(index + 1), following, "list must be sorted alphabetically"))
    return errors


def _validate_pod_cidrs(cidrs: list[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, cidr in enumerate(cidrs):
        errors += is_valid_cidr_for_legacy_field(path.index(index), cidr)
    if len(cidrs) > 1:
        parsed = [parse_cidr(cidr) for cidr in cidrs]
        wrong = next((index for index, each in enumerate(parsed) if each is None), None)
        if wrong is not None:
            why = f"invalid CIDR[{wrong}]: <nil> (invalid CIDR address: {cidrs[wrong]})"
            errors.append(internal(path, f"invalid PodCIDRs. failed to check with dual stack with error:{why}"))
        families = {each[1].version for each in parsed if each}
        if wrong is not None or len(families) < 2 or len(cidrs) > 2:
            errors.append(invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


def _validate_pod_cidrs_stay(new: list[str], old: list[str]) -> list[FieldError]:
    if not old:
        return []
    changes = 1 if len(old) != len(new) else sum(was != now for was, now in zip(old, new, strict=True))
    detail = 'node updates may not change podCIDR except from "" to valid'
    return [forbidden(_SPEC.child("podCIDRs"), detail) for _ in range(changes)]


def _validate_config_source(source: NodeConfigSource, path: Path, *, in_status: bool) -> list[FieldError]:
    """The kubelet's configuration in a ConfigMap: no longer used, still checked."""
    if source.config_map is None:
        return [invalid(path, go_form(source), "exactly one reference subfield must be non-nil")]
    return _validate_config_map(source.config_map, path.child("configMap"), in_status)


def _validate_config_map(source: ConfigMapNodeConfigSource, path: Path, in_status: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for value, name in ((source.uid, "uid"), (source.resource_version, "resourceVersion")):
        if in_status and not value:
            errors.append(required(path.child(name)))
        if not in_status and value:
            errors.append(forbidden(path.child(name), f"{name} must not be set in spec"))
    for value, name, rule in (
        (source.namespace, "namespace", dns1123_label),
        (source.name, "name", dns1123_subdomain),
        (source.kubelet_config_key, "kubeletConfigKey", is_config_map_key),
    ):
        if not value:
            errors.append(required(path.child(name)))
        else:
            errors += [invalid(path.child(name), value, problem) for problem in rule(value)]
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"Node": validate_node}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Node": validate_node_update}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Node": validate_node_status_update}
