"""`crds`: OpenAPI definitions of custom resources that say which fields refer to ConfigMaps, Secrets and others."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.field_specs import Configuration, FieldSpec, merged
from pybernetes.kubectl.kustomize.resources import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Object = dict[str, Any]


def configuration(content: bytes, name: str) -> Configuration:
    """The fields that a file of definitions marks. Raises CLIError."""
    from pybernetes.kubectl.kustomize import nodes

    document = nodes.parsed(content, f"unable to parse CRDs of {name}")
    if not isinstance(document, dict):
        raise CLIError(f"unable to parse CRDs of {name}: a mapping of definitions is wanted")
    definitions = document.get("definitions")
    document = definitions if isinstance(definitions, dict) else document
    types = {str(key): _schema(value) for key, value in document.items()}
    found = Configuration()
    for key, schema in types.items():
        if {"apiVersion", "kind", "metadata"} <= set(schema.get("properties") or {}):
            kind = key.rpartition(".")[2]
            _walk(types, schema, "", kind, found, (key,))
    return found


def _schema(value: Any) -> Object:
    """A definition, or the Schema that Go's generator wraps it in."""
    if not isinstance(value, dict):
        return {}
    inner = value.get("Schema") or value.get("schema")
    return inner if isinstance(inner, dict) else value


def _walk(
    types: dict[str, Object], schema: Object, path: str, kind: str, found: Configuration, seen: tuple[str, ...]
) -> None:
    for name, field in (schema.get("properties") or {}).items():
        if not isinstance(field, dict):
            continue
        here = f"{path}/{name}" if path else str(name)
        _note(field, here, kind, found)
        reference = field.get("$ref") or (field.get("items") or {}).get("$ref") or ""
        target = str(reference).rpartition("/")[2]
        if target in types and target not in seen:
            _walk(types, types[target], here, kind, found, (*seen, target))
        elif "properties" in field:
            _walk(types, field, here, kind, found, seen)


def _note(field: Object, path: str, kind: str, found: Configuration) -> None:
    for mark, step in (
        ("x-kubernetes-label-selector", "commonLabels"),
        ("x-kubernetes-annotation", "commonAnnotations"),
        ("x-kubernetes-identity", "namePrefix"),
    ):
        if mark in field:
            found.specs[step] = merged(found.specs[step], [FieldSpec(path, kind)])
    if "x-kubernetes-object-ref-api-version" in field and "x-kubernetes-object-ref-kind" in field:
        version, target = (str(field[f"x-kubernetes-object-ref-{each}"]) for each in ("api-version", "kind"))
        name = str(field.get("x-kubernetes-object-ref-name-key") or "name")
        more = Configuration()
        more.references.append((Kind("", version, target), [FieldSpec(f"{path}/{name}", kind)]))
        found.merge(more)
