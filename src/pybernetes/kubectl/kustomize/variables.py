"""`vars`: $(NAME) in arguments, environment and other fields is the value of a field of some object."""

from __future__ import annotations

import re
import sys

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.field_paths import change, lookup
from pybernetes.kubectl.kustomize.resources import Identity, Kind, group_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.kustomize.field_specs import FieldSpec
    from pybernetes.kubectl.kustomize.resources import Resources

    Object = dict[str, Any]

_REFERENCE = re.compile(r"\$(\$|\([^)]*\)|)")


def attach(resources: Resources, variables: list[Object], known: list[Object]) -> None:
    """Notes at the objects which variables they have the values of, and adds the variables. Raises CLIError."""
    for variable in variables:
        reference = variable.get("objref") or {}
        group, version = group_version(str(reference.get("apiVersion") or ""))
        group, version = str(reference.get("group") or group), str(reference.get("version") or version)
        kind = Kind(group, version, str(reference.get("kind") or ""))
        wanted = Identity(kind, str(reference.get("name") or ""), str(reference.get("namespace") or ""))
        exact = bool(wanted.namespace) or kind.clustered()

        def fits(identity: Identity, wanted: Identity = wanted, exact: bool = exact) -> bool:
            return (
                wanted.same(identity)
                if exact
                else str(wanted.kind) == str(identity.kind) and wanted.name == identity.name
            )

        found = resources.named(fits)
        if len(found) > 1:
            raise CLIError(f"found {len(found)} resId matches for var {_shown(variable)} (unable to disambiguate)")
        for each in found:
            each.variables.append(str(variable.get("name")))
        if any(each.get("name") == variable.get("name") for each in known):
            raise CLIError(f"var '{variable.get('name')}' already encountered")
        known.append(variable)


def resolve(resources: Resources, variables: list[Object], specs: list[FieldSpec]) -> None:
    """Puts the values in. Raises CLIError for a variable without a value."""
    if not variables:
        return
    values = {
        str(each["name"]): _value(resources, each) for each in sorted(variables, key=lambda each: str(each["name"]))
    }
    used: set[str] = set()

    def put(holder: Any, key: Any) -> None:
        value = holder[key]
        if isinstance(value, str):
            holder[key] = _expanded(value, values, used)
        elif isinstance(value, dict):
            for name, each in value.items():
                if isinstance(each, str):
                    value[name] = _expanded(each, values, used)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                if not isinstance(each, str):
                    raise CLIError("invalid value type expect a string")
                value[index] = _expanded(each, values, used)

    for resource in resources.items:
        for spec in specs:
            if resource.kind.selected(spec.kind):
                change(resource.object, spec.path, put)
    unused = [name for name in values if name not in used]
    if unused:
        sys.stderr.write(f"well-defined vars that were never replaced: {','.join(unused)}\n")


def _value(resources: Resources, variable: Object) -> Any:
    reference = variable.get("fieldref") or {}
    path = reference.get("fieldpath") or reference.get("fieldPath") or "metadata.name"
    parts = [part for part in re.split(r"\.|\[(\d+)\]", path) if part]
    for resource in resources.items:
        if variable["name"] in resource.variables:
            value = lookup(resource.object, parts)
            if value is None:
                raise CLIError(f"field specified in var '{_shown(variable)}' not found in corresponding resource")
            return value
    raise CLIError(f"var '{_shown(variable)}' cannot be mapped to a field in the set of known resources")


def _shown(variable: Object) -> str:
    reference, field = variable.get("objref") or {}, variable.get("fieldref") or {}
    group, version = group_version(str(reference.get("apiVersion") or ""))
    kind = f"{{{reference.get('kind') or ''} {group} {version} }}"
    path = field.get("fieldpath") or field.get("fieldPath") or "metadata.name"
    return f"{{{variable.get('name')} {kind} {reference.get('name') or ''} {{{path}}}}}"


def _expanded(text: str, values: dict[str, Any], used: set[str]) -> Any:
    whole = re.fullmatch(r"\$\(([^)]*)\)", text)
    if whole and whole.group(1) in values:
        used.add(whole.group(1))
        return values[whole.group(1)]

    def one(match: re.Match[str]) -> str:
        inner = match.group(1)
        if inner == "$":
            return "$"
        name = inner[1:-1]
        if not inner or name not in values:
            return match.group(0)
        used.add(name)
        value = values[name]
        return ("true" if value else "false") if isinstance(value, bool) else str(value)

    return _REFERENCE.sub(one, text)
