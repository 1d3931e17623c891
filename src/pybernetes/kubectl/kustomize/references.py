"""Follows the new names of objects to the fields that refer to them.

A field refers to the object that once had its name. Where several had it, those with the prefixes and suffixes of the
referring object are meant, so that two variants of one base do not mix.
"""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.field_paths import change
from pybernetes.kubectl.kustomize.resources import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.kustomize.field_specs import Configuration, FieldSpec
    from pybernetes.kubectl.kustomize.resources import Resource, Resources


def fix(resources: Resources, configuration: Configuration) -> None:
    """Updates all references. Raises CLIError where a name is ambiguous."""
    originals = [(resource, resource.original().kind) for resource in resources.items]
    for referrer, kind in originals:
        candidates: list[Resource] | None = None
        for target, specs in configuration.references:
            for spec in specs:
                if kind.selected(spec.kind):
                    if candidates is None:
                        candidates = _reachable(referrer, resources)
                    _update(referrer, target, spec, candidates)


def _reachable(referrer: Resource, resources: Resources) -> list[Resource]:
    """The objects that an object may refer to: those of its namespace, and those without one."""
    here = referrer.current()
    if here.kind.clustered():
        return resources.items
    spaces = set()
    if here.kind.kind == "RoleBinding":
        for subject in referrer.object.get("subjects") or ():
            if isinstance(subject, dict) and subject.get("kind") == "ServiceAccount" and "namespace" in subject:
                spaces.add(subject["namespace"])
    return [
        each
        for each in resources.items
        if each.kind.clustered() or each.current().effective() == here.effective() or each.namespace in spaces
    ]


def _update(referrer: Resource, target: Kind, spec: FieldSpec, candidates: list[Resource]) -> None:
    def put(holder: Any, key: Any) -> None:
        value = holder[key]
        if isinstance(value, list):
            for index in range(len(value)):
                put(value, index)
        elif isinstance(value, dict):
            _set_mapping(value, referrer, target, spec, candidates)
        elif isinstance(value, str):
            found = _referred(value, referrer, target, spec, candidates, with_namespace=False)
            if found is not None:
                holder[key] = found.name

    try:
        change(referrer.object, spec.path, put)
    except CLIError as error:
        what = f"updating name reference in '{spec.path}' field of '{referrer.current()}'"
        raise CLIError(f"{what}: {error.message}") from None


def _set_mapping(
    value: dict[str, Any], referrer: Resource, target: Kind, spec: FieldSpec, candidates: list[Resource]
) -> None:
    if "name" not in value:
        raise CLIError("path config error; no 'name' field in node")
    if "namespace" in value:
        space = str(value["namespace"])
        first = [each for each in candidates if each.original().effective() == space]
        candidates = first or [each for each in candidates if each.current().effective() == space]
    found = _referred(str(value["name"]), referrer, target, spec, candidates, with_namespace=True)
    if found is None:
        return
    if found.name != value["name"] or found.namespace:
        value["name"] = found.name
        if found.namespace:
            value["namespace"] = found.namespace


def _referred(
    name: str, referrer: Resource, target: Kind, spec: FieldSpec, candidates: list[Resource], with_namespace: bool
) -> Resource | None:
    here = referrer.current()
    role = _role(referrer) if spec.path.endswith("roleRef/name") else None

    def fits(each: Resource) -> bool:
        before = each.earlier()
        return (
            any(one.name == name for one in before)
            and any(one.kind.selected(target) for one in before)
            and (role is None or any(one.kind.selected(role) for one in before))
            and (
                here.kind.clustered()
                or each.kind.clustered()
                or each.kind.kind == "ServiceAccount"
                or each.current().effective() == here.effective()
            )
        )

    found = [each for each in candidates if fits(each)]
    if len(found) > 1:
        found = [each for each in found if _related(each, referrer, either_empty=True)]
    if len(found) > 1:
        found = [each for each in found if _related(each, referrer, either_empty=False)]
    if not found:
        return None
    names = {(each.name, each.namespace if with_namespace else "") for each in found}
    if len(names) > 1:
        raise CLIError(f"found multiple possible referrals: {', '.join(str(each.current()) for each in found)}")
    return found[0]


def _role(referrer: Resource) -> Kind | None:
    role = referrer.object.get("roleRef")
    if not isinstance(role, dict) or role.get("apiGroup") is None or role.get("kind") is None:
        return None
    return Kind(str(role["apiGroup"]), "", str(role["kind"]))


def _related(left: Resource, right: Resource, either_empty: bool) -> bool:
    """Whether both went through the same last prefixes and suffixes."""
    for ours, theirs in ((left.prefixes, right.prefixes), (left.suffixes, right.suffixes)):
        if either_empty and not (ours and theirs):
            continue
        count = min(len(ours), len(theirs))
        if (count == 0 and len(ours) != len(theirs)) or ours[len(ours) - count :] != theirs[len(theirs) - count :]:
            return False
    return True
