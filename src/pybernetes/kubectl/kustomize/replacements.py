"""Replacements: the value of one field, or a text, put into fields of other objects.

A field keeps its type: a number that is put into text is text. A field of text that holds YAML or JSON, as ConfigMaps
have, may be gone into.
"""

from __future__ import annotations

from pybernetes.kubectl.data import copy
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.field_paths import lookup, places, split_items, text_of
from pybernetes.kubectl.kustomize.resources import Kind, chosen_by_labels, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.kustomize.files import Folder
    from pybernetes.kubectl.kustomize.resources import Identity, Resource, Resources

    Object = dict[str, Any]


def rules(entries: list[Object], folder: Folder) -> list[Object]:
    """The rules of `replacements`, with those of files. Raises CLIError."""
    from pybernetes.kubectl.kustomize import nodes
    from pybernetes.kubectl.kustomize.settings import REPLACEMENT, decoded

    found: list[Object] = []
    for entry in entries:
        if not entry.get("path"):
            found.append(entry)
            continue
        if entry.get("source") is not None or entry.get("targets"):
            raise CLIError("cannot specify both path and inline replacement")
        content = nodes.parsed(folder.load(entry["path"]), f"replacements of {entry['path']}")
        if not isinstance(content, list | dict):
            raise CLIError("unsupported replacement type encountered within replacement path: string")
        for each in content if isinstance(content, list) else [content]:
            found.append(decoded(each, REPLACEMENT, "Replacement"))
    return found


def replace(resources: Resources, rule: Object) -> None:
    """Applies one rule. Raises CLIError."""
    if (rule.get("source") is None and rule.get("sourceValue") is None) or not rule.get("targets"):
        raise CLIError("replacements must specify a source and at least one target")
    value = _value(resources, rule)
    for target in rule["targets"]:
        select = target.get("select")
        if select is None:
            raise CLIError("target must specify resources to select")
        for resource in resources.items:
            identities = [resource.current(), *resource.earlier()]
            if not chosen_by_labels(resource, select) or _rejected(resource, identities, target.get("reject") or ()):
                continue
            if any(_selects(select, each) for each in identities):
                for path in target.get("fieldPaths") or ("metadata.name",):
                    _put(resource.object, path, value, target.get("options") or {})


def _value(resources: Resources, rule: Object) -> Any:
    source = rule.get("source")
    if rule.get("sourceValue") is not None:
        if source is not None:
            raise CLIError("value and resource selectors are mutually exclusive")
        return rule["sourceValue"]
    assert source is not None
    found = [
        each for each in resources.items if any(_is(each_id, source) for each_id in (each.current(), *each.earlier()))
    ]
    if len(found) != 1:
        raise CLIError(f"{'multiple matches for selector' if found else 'nothing selected by'} {_shown(source)}")
    path = source.get("fieldPath") or "metadata.name"
    value = lookup(found[0].object, split_items(path))
    if value is None or value in ({}, []):
        raise CLIError(f"fieldPath `{path}` is missing for replacement source {_identity(source)}")
    options = source.get("options") or {}
    if options.get("delimiter"):
        if isinstance(value, dict | list):
            raise CLIError("delimiter option can only be used with scalar nodes")
        pieces, index = text_of(value).split(options["delimiter"]), options.get("index") or 0
        if not 0 <= index < len(pieces):
            raise CLIError(f"options.index {index} is out of bounds for value {text_of(value)}")
        return pieces[index]
    return value


def _is(identity: Identity, source: Object) -> bool:
    """Whether a source names an object; its values are no regular expressions."""
    kind = Kind(*(str(source.get(key) or "") for key in ("group", "version", "kind")))
    namespace = source.get("namespace")
    return (
        (not source.get("name") or source["name"] == identity.name)
        and (not namespace or identity.effective() == ("default" if namespace == "default" else namespace))
        and identity.kind.selected(kind)
    )


def _identity(source: Object) -> str:
    from pybernetes.kubectl.kustomize.resources import Identity

    kind = Kind(*(str(source.get(key) or "") for key in ("group", "version", "kind")))
    return str(Identity(kind, str(source.get("name") or ""), str(source.get("namespace") or "")))


def _shown(source: Object) -> str:
    options = source.get("options") or {}
    parts = [_identity(source), source.get("fieldPath") or ""]
    if options.get("delimiter") or options.get("create"):
        create = str(bool(options.get("create"))).lower()
        parts.append(f"{options.get('delimiter') or ''}({options.get('index') or 0}), create={create}")
    return ":".join(part for part in parts if part)


def _selects(target: Object, identity: Identity) -> bool:
    kind = identity.kind
    for key, value in (
        ("group", kind.group), ("version", kind.version), ("kind", kind.kind), ("name", identity.name),
        ("namespace", identity.namespace),
    ):  # fmt: skip
        if target.get(key) and not pattern(target[key]).match(value):
            return False
    return True


def _rejected(resource: Resource, identities: list[Identity], targets: Any) -> bool:
    for target in targets:
        labelled = target.get("labelSelector") or target.get("annotationSelector")
        if labelled and chosen_by_labels(resource, target):
            return True
        named = any(target.get(key) for key in ("group", "version", "kind", "name", "namespace"))
        if named and any(_selects(target, each) for each in identities):
            return True
    return False


def _put(obj: Object, path: str, value: Any, options: Object) -> None:
    parts = split_items(path)
    create: type | None = None
    if options.get("create"):
        create = type(value) if isinstance(value, dict | list) else _New
    if _put_inside_text(obj, parts, value, create):
        return
    what = f'unable to find{" or create" if create else ""} field "{path}" in replacement target'
    try:
        found = places(obj, parts, create)
    except CLIError as error:
        raise CLIError(f"{what}: {error.message}") from None
    if not found:
        raise CLIError(what)
    for holder, key in found:
        holder[key] = _joined(holder[key], value, options, parts)


def _joined(here: Any, value: Any, options: Object, parts: list[str]) -> Any:
    value = copy(value)
    delimiter = options.get("delimiter")
    if delimiter:
        if isinstance(here, dict | list):
            raise CLIError("delimiter option can only be used with scalar nodes")
        pieces, index, text = text_of(here).split(delimiter), options.get("index") or 0, text_of(value)
        if index < 0:
            pieces = [text, *pieces]
        elif index >= len(pieces):
            pieces.append(text)
        else:
            pieces[index] = text
        value = delimiter.join(pieces)
    if isinstance(here, _New):
        return _plain(value, parts)
    if isinstance(here, dict | list) or here is None:
        return value
    if isinstance(value, dict | list):
        return ""
    return _typed(here, text_of(value))


class _New(str):
    """The text of a field that was not there before."""

    __slots__ = ()


def _plain(value: Any, parts: list[str]) -> Any:
    """A value in a new field: what looks like a number is one, but not in labels and annotations."""
    from pybernetes.api.yaml import YAMLProblem, yaml12_to_value

    if not isinstance(value, str) or parts[:2] in (["metadata", "labels"], ["metadata", "annotations"]):
        return value
    try:
        found = yaml12_to_value(value.encode("utf-8", "surrogateescape"))
    except YAMLProblem:
        return value
    return value if isinstance(found, dict | list) or found is None else found


def _typed(here: Any, text: str) -> Any:
    """Text as the type that a field has. Raises CLIError if it is none."""
    if isinstance(here, str):
        return text
    wanted, name = (
        (bool, "bool") if isinstance(here, bool) else (int, "int") if isinstance(here, int) else (float, "float")
    )
    if wanted is bool:
        if text in ("true", "false"):
            return text == "true"
    else:
        try:
            return wanted(text)
        except ValueError:
            pass
    kind = "float" if wanted is int and _is_float(text) else "str"
    raise CLIError(f"map[string]interface {{}}(nil): yaml: cannot decode !!{kind} `{text}` as a !!{name}")


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -- fields of text that hold YAML or JSON


def _put_inside_text(obj: Object, parts: list[str], value: Any, create: type | None) -> bool:
    """Puts the value into the document that a field on the way holds as text; False if there is no such field."""
    from pybernetes.api.yaml import YAMLProblem, yaml12_to_value

    for length in range(1, len(parts)):
        try:
            text = lookup(obj, parts[:length])
        except CLIError:
            continue
        if not isinstance(text, str):
            continue
        try:
            content = yaml12_to_value(text.encode("utf-8", "surrogateescape"))
            found = places(content, parts[length:], create)
        except (YAMLProblem, CLIError):
            return False
        if not found:
            return False
        for holder, key in found:
            here = holder[key]
            whole = isinstance(here, dict | list) or isinstance(value, dict | list) or here is None
            holder[key] = copy(value) if whole else _typed(here, text_of(value))
        holder, key = places(obj, parts[:length], None)[0]
        holder[key] = _written(content, text)
        return True
    return False


def _written(content: Any, before: str) -> str:
    from pybernetes.kubectl import data
    from pybernetes.kubectl.printers import yaml_text

    if before.strip()[:1] in ("{", "["):
        if "\n" in before and "  " in before:
            return data.pretty(content, indent="  ")
        return data.dumps(content)
    return yaml_text.dumps(content, sort=False).strip()
