"""The steps that change all objects: namespace, prefix and suffix, labels, annotations, replicas, images."""

from __future__ import annotations

import re

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.field_paths import change
from pybernetes.kubectl.kustomize.resources import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.kustomize.field_specs import FieldSpec
    from pybernetes.kubectl.kustomize.resources import Resource, Resources

    Object = dict[str, Any]

_NOT_RENAMED = (
    Kind("", "", "CustomResourceDefinition"), Kind("apiregistration.k8s.io", "", "APIService"),
    Kind("", "", "Namespace"),
)  # fmt: skip
_SUBJECTS = ("defaultOnly", "allServiceAccounts", "none")


def set_namespace(
    resources: Resources, namespace: str, specs: list[FieldSpec], subjects: str = "", unset_only: bool = False
) -> None:
    """Gives every object that may have one the namespace. Raises CLIError."""
    if subjects and subjects not in _SUBJECTS:
        wanted = 'must be one of "defaultOnly", "none" or "allServiceAccounts"'
        raise CLIError(f'invalid value "{subjects}" for setRoleBindingSubjects: {wanted}')

    def put(holder: Any, key: Any) -> None:
        if isinstance(holder[key], dict | list):
            raise CLIError("namespace field specs must target scalar nodes")
        if not unset_only or not holder[key]:
            holder[key] = namespace

    for resource in resources.items:
        resource.remember()
        kind = resource.kind
        if not kind.clustered() and not (unset_only and resource.namespace):
            resource.metadata["namespace"] = namespace
        binding = kind.kind in ("RoleBinding", "ClusterRoleBinding")
        if binding and subjects != "none":
            _set_subjects(resource, namespace, subjects == "allServiceAccounts", unset_only)
        for spec in specs:
            if spec.path == "metadata/namespace" or (binding and spec.path == "subjects/namespace"):
                continue
            if spec.path == "metadata/name" and resource.object.get("apiVersion") != "v1":
                continue
            _change(resource, spec, put, str)
        now = resource.current()
        same = [each for each in resources.items if each.current().same(now)]
        if len(same) != 1:
            shown = " ".join(each.json() for each in same)
            raise CLIError(f"namespace transformation produces ID conflict: [{shown}]")


def _set_subjects(resource: Resource, namespace: str, every_account: bool, unset_only: bool) -> None:
    for subject in resource.object.get("subjects") or ():
        if not isinstance(subject, dict):
            continue
        wanted = subject.get("kind") == "ServiceAccount" if every_account else subject.get("name") == "default"
        if wanted and not (unset_only and subject.get("namespace")):
            subject["namespace"] = namespace


def _change(resource: Resource, spec: FieldSpec, put: Any, create: type | None = None) -> None:
    if resource.kind.selected(spec.kind):
        change(resource.object, spec.path, put, create if spec.create else None)


def rename(resources: Resources, text: str, specs: list[FieldSpec], at_end: bool) -> None:
    """A prefix or suffix for names. Raises CLIError."""

    def put(holder: Any, key: Any) -> None:
        holder[key] = f"{holder[key]}{text}" if at_end else f"{text}{holder[key]}"

    if not text:
        return
    for resource in resources.items:
        original = resource.original().kind
        if any(original.selected(each) for each in _NOT_RENAMED):
            continue
        for spec in specs:
            if not original.selected(spec.kind):
                continue
            if spec.path == "metadata/name":
                (resource.suffixes if at_end else resource.prefixes).append(text)
                resource.remember()
            _change(resource, spec, put)


def set_entries(resources: Resources, entries: dict[str, str], specs: list[FieldSpec]) -> None:
    """Labels or annotations. Raises CLIError."""

    def put(holder: Any, key: Any) -> None:
        if holder[key] is None:
            holder[key] = {}
        if not isinstance(holder[key], dict):
            raise CLIError(
                "wrong node kind: expected MappingNode but was ScalarNode: node contents:\n" + f"{holder[key]}\n"
            )
        holder[key].update(entries)

    if not entries:
        return
    entries = dict(sorted(entries.items()))
    for resource in resources.items:
        for spec in specs:
            _change(resource, spec, put, dict)


def set_replicas(resources: Resources, name: str, count: int, specs: list[FieldSpec]) -> None:
    """The replicas of the objects that have, or had, a name. Raises CLIError if there is none."""

    def put(holder: Any, key: Any) -> None:
        holder[key] = count

    found = False
    for spec in specs:
        for resource in resources.items:
            known = (*resource.earlier(), resource.current())
            if any(each.name == name and each.kind.selected(spec.kind) for each in known):
                found = True
                _change(resource, spec, put, int)
    if not found:
        kinds = " ".join(str(spec.kind) for spec in specs)
        raise CLIError(f"resource with name {name} does not match a config with the following GVK [{kinds}]")


# -- images


def set_image(resources: Resources, image: Object, specs: list[FieldSpec]) -> None:
    """An entry of `images`: in every list of containers, and in the fields of the specs. Raises CLIError."""
    try:
        wanted = re.compile(f"^{image.get('name') or ''}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$")
    except re.error as error:
        raise CLIError(f"error parsing regexp: {error.msg}: `{image.get('name')}`") from None

    def put(holder: Any, key: Any) -> None:
        value = holder[key]
        if isinstance(value, dict | list):
            raise CLIError("wrong node kind: expected ScalarNode")
        if isinstance(value, str) and wanted.match(value):
            holder[key] = changed_image(value, image)

    for resource in resources.items:
        if resource.kind.kind == "CustomResourceDefinition":
            continue
        _in_containers(resource.object, put)
        for spec in specs:
            _change(resource, spec, put)


def _in_containers(value: Any, put: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _in_containers(each, put)
    elif isinstance(value, dict):
        for key, each in value.items():
            _in_containers(each, put)
            if key in ("containers", "initContainers") and isinstance(each, list):
                for container in each:
                    if isinstance(container, dict) and "image" in container:
                        put(container, "image")


def changed_image(value: str, image: Object) -> str:
    """An image with another name, tag or digest."""
    name, tag, digest = split_image(value)
    name = image.get("newName") or name
    new_tag, new_digest, suffix = (str(image.get(key) or "") for key in ("newTag", "digest", "tagSuffix"))
    if new_tag or new_digest:
        tag, digest = new_tag, new_digest
    elif suffix:
        tag, digest = tag + suffix, ""
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def split_image(value: str) -> tuple[str, str, str]:
    """Name, tag and digest; a port before the first slash belongs to the name."""
    at = max(value.find("/"), 0)
    head, rest = value[:at], value[at:]
    rest, _, digest = rest.partition("@")
    rest, _, tag = rest.partition(":")
    return head + rest, tag, digest
