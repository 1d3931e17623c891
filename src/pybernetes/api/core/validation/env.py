"""Environment variables and where they come from, and the fields of a pod that files and variables can show."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, invalid, not_supported, required
from ...names import name_is_dns_subdomain
from ...quantity import parse
from ..v1.env import (
    ConfigMapKeySelector,
    EnvFromSource,
    EnvVar,
    FileKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from .common import (
    config_key,
    dns1123_subdomain,
    env_name,
    validate_dns1123_label,
    validate_path_no_backsteps,
    validate_qualified_name,
)

ENV_FIELDS: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
VOLUME_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_KNOWN_FIELDS: Final = ENV_FIELDS | VOLUME_FIELDS | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES: Final = frozenset(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGEPAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_CPU_DIVISORS: Final = ("1m", "1")
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)


def validate_env(variables: list[EnvVar], path: Path) -> list[FieldError]:
    """Variables one by one."""
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        if not variable.name:
            errors.append(required(path.index(index).child("name")))
        else:
            for problem in env_name(variable.name):
                errors.append(invalid(path.index(index).child("name"), variable.name, problem))
        if variable.value_from is not None:
            errors += _validate_source(variable, path.index(index).child("valueFrom"))
    return errors


def _validate_source(variable: EnvVar, path: Path) -> list[FieldError]:
    source = variable.value_from
    errors: list[FieldError] = []
    count = 0
    if source is None:
        return errors
    if source.field_ref is not None:
        count += 1
        errors += validate_object_field_selector(source.field_ref, ENV_FIELDS, path.child("fieldRef"))
    if source.resource_field_ref is not None:
        count += 1
        at = path.child("resourceFieldRef")
        errors += validate_resource_field_selector(source.resource_field_ref, at, in_volume=False)
    if source.config_map_key_ref is not None:
        count += 1
        errors += _validate_key(source.config_map_key_ref, path.child("configMapKeyRef"))
    if source.secret_key_ref is not None:
        count += 1
        errors += _validate_key(source.secret_key_ref, path.child("secretKeyRef"))
    if source.file_key_ref is not None:
        count += 1
        errors += _validate_file_key(source.file_key_ref, path.child("fileKeyRef"))
    if not count:
        errors.append(invalid(path, "", _SOURCES))
    elif variable.value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def validate_env_from(sources: list[EnvFromSource], path: Path) -> list[FieldError]:
    """Whole ConfigMaps and Secrets as variables."""
    errors: list[FieldError] = []
    for index, source in enumerate(sources):
        if source.prefix:
            for problem in env_name(source.prefix):
                errors.append(invalid(path.index(index).child("prefix"), source.prefix, problem))
        count = 0
        for wire, reference in (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref)):
            if reference is None:
                continue
            count += 1
            at = path.index(index).child(wire, "name")
            if not reference.name:
                errors.append(required(at))
            else:
                errors += [invalid(at, reference.name, each) for each in name_is_dns_subdomain(reference.name, True)]
        if not count:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif count > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def validate_object_field_selector(
    selector: ObjectFieldSelector, fields: frozenset[str], path: Path
) -> list[FieldError]:
    """A field of the pod itself; labels and annotations may be taken one by one."""
    if not selector.api_version:
        return [required(path.child("apiVersion"))]
    field = selector.field_path
    if not field:
        return [required(path.child("fieldPath"))]
    base, subscript = _split_subscript(field)
    problem = ""
    if selector.api_version != "v1":
        problem = f"unsupported pod version: {selector.api_version}"
    elif subscript is not None:
        if base not in ("metadata.annotations", "metadata.labels"):
            problem = f"field label does not support subscript: {field}"
    elif field not in _KNOWN_FIELDS and field != "spec.host":
        problem = f"field label not supported: {field}"
    if problem:
        return [invalid(path.child("fieldPath"), field, f"error converting fieldPath: {problem}")]
    if subscript is not None:
        return validate_qualified_name(subscript.lower() if base == "metadata.annotations" else subscript, path)
    name = "spec.nodeName" if field == "spec.host" else field
    return [] if name in fields else [not_supported(path.child("fieldPath"), name, fields)]


def _split_subscript(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` -> (`metadata.labels`, `a`)."""
    if field.endswith("']"):
        base, found, key = field[:-2].partition("['")
        if found and base:
            return base, key
    return field, None


def validate_resource_field_selector(
    selector: ResourceFieldSelector, path: Path, *, in_volume: bool
) -> list[FieldError]:
    """A request or limit of a container, divided by a unit."""
    errors: list[FieldError] = []
    resource = selector.resource or ""
    if in_volume and not selector.container_name:
        errors.append(required(path.child("containerName")))
    elif not resource:
        errors.append(required(path.child("resource")))
    elif resource not in _RESOURCES and not resource.startswith(_HUGEPAGES):
        errors.append(not_supported(path.child("resource"), resource, _RESOURCES))
    divisor = parse(str(selector.divisor)) if selector.divisor is not None else None
    if divisor:
        text = str(divisor)
        kind = resource.partition(".")[2]
        if kind == "cpu" and text not in _CPU_DIVISORS:
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
            errors.append(invalid(path.child("divisor"), resource, detail))
        elif text not in _BYTE_DIVISORS:
            name = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind)
            if name is None and resource.startswith(_HUGEPAGES):
                name = "hugepages"
            if name is not None:
                detail = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {name} resource"
                errors.append(invalid(path.child("divisor"), resource, detail))
    return errors


def _validate_key(selector: ConfigMapKeySelector | SecretKeySelector, path: Path) -> list[FieldError]:
    name = selector.name or ""
    errors = [invalid(path.child("name"), name, problem) for problem in dns1123_subdomain(name)]
    if not selector.key:
        errors.append(required(path.child("key")))
    else:
        errors += [invalid(path.child("key"), selector.key, problem) for problem in config_key(selector.key)]
    return errors


def _validate_file_key(selector: FileKeySelector, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not selector.key:
        errors.append(required(path.child("key")))
    else:
        errors += [invalid(path.child("key"), selector.key, problem) for problem in env_name(selector.key)]
    if not selector.volume_name:
        errors.append(required(path.child("volumeName")))
    else:
        errors += validate_dns1123_label(selector.volume_name, path.child("volumeName"))
    if not selector.path:
        errors.append(required(path.child("path")))
    else:
        errors += validate_path_no_backsteps(selector.path, path.child("path"))
    return errors
