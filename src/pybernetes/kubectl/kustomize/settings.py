"""Reads a kustomization file: its fields with their types, fields that have other names by now, and warnings."""

from __future__ import annotations

import os
import sys

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.kustomize.files import Folder

    Object = dict[str, Any]

_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_TEXTS = {"*": "string"}
_SELECTOR = {
    "group": "string", "version": "string", "kind": "string", "name": "string", "namespace": "string",
    "labelSelector": "string", "annotationSelector": "string",
}  # fmt: skip
_OPTIONS = {"labels": _TEXTS, "annotations": _TEXTS, "disableNameSuffixHash": "bool", "immutable": "bool"}
_GENERATOR = {
    "namespace": "string", "name": "string", "behavior": "string", "literals": ["string"], "files": ["string"],
    "envs": ["string"], "env": "string", "options": _OPTIONS,
}  # fmt: skip
_PATCH = {
    "path": "string", "patch": "string", "target": _SELECTOR,
    "options": {"allowNameChange": "bool", "allowKindChange": "bool"},
}  # fmt: skip
_FIELD_SPEC = {"group": "string", "version": "string", "kind": "string", "path": "string", "create": "bool"}
_FIELD_OPTIONS = {"delimiter": "string", "index": "int", "encoding": "string", "create": "bool"}
_SOURCE = {
    "group": "string", "version": "string", "kind": "string", "name": "string", "namespace": "string",
    "fieldPath": "string", "options": _FIELD_OPTIONS,
}  # fmt: skip
REPLACEMENT: Object = {
    "source": _SOURCE,
    "sourceValue": "string",
    "targets": [
        {"select": _SELECTOR, "reject": [_SELECTOR], "fieldPaths": ["string"], "options": _FIELD_OPTIONS},
    ],
}
CONFIGURATION: Object = {
    "nameReference": [
        {"group": "string", "version": "string", "kind": "string", "fieldSpecs": [_FIELD_SPEC]},
    ],
    **{
        key: [_FIELD_SPEC]
        for key in (
            "namePrefix", "nameSuffix", "namespace", "labels", "commonLabels", "templateLabels", "commonAnnotations",
            "varReference", "images", "replicas",
        )
    },
}  # fmt: skip
_IMAGE = {"name": "string", "newName": "string", "tagSuffix": "string", "newTag": "string", "digest": "string"}
_VARIABLE = {
    "name": "string",
    "objref": dict.fromkeys(("apiVersion", "group", "version", "kind", "name", "namespace"), "string"),
    "fieldref": {"fieldpath": "string", "fieldPath": "string"},
}
_FIELDS: Object = {
    "apiVersion": "string", "kind": "string", "metadata": "any", "openapi": _TEXTS, "namePrefix": "string",
    "nameSuffix": "string", "namespace": "string", "commonLabels": _TEXTS,
    "labels": [
        {"pairs": _TEXTS, "includeSelectors": "bool", "includeTemplates": "bool", "fields": [_FIELD_SPEC]},
    ],
    "commonAnnotations": _TEXTS, "patchesStrategicMerge": ["string"], "patchesJson6902": [_PATCH],
    "patches": [_PATCH], "images": [_IMAGE], "imageTags": [_IMAGE],
    "replacements": [{"path": "string", **REPLACEMENT}], "replicas": [{"name": "string", "count": "int"}],
    "vars": [_VARIABLE],
    "sortOptions": {"order": "string", "legacySortOptions": {"orderFirst": ["string"], "orderLast": ["string"]}},
    "resources": ["string"], "components": ["string"], "crds": ["string"], "bases": ["string"],
    "configMapGenerator": [_GENERATOR], "secretGenerator": [{**_GENERATOR, "type": "string"}],
    "helmGlobals": "any", "helmCharts": "any", "helmChartInflationGenerator": "any", "generatorOptions": _OPTIONS,
    "configurations": ["string"], "generators": ["string"], "transformers": ["string"], "validators": ["string"],
    "buildMetadata": ["string"],
}  # fmt: skip
_DEPRECATED = (
    ("bases", "resources"), ("commonLabels", "labels"), ("imageTags", "images"), ("patchesJson6902", "patches"),
    ("patchesStrategicMerge", "patches"), ("vars", "replacements"),
)  # fmt: skip


class Settings:
    """The content of a kustomization file."""

    def __init__(self, folder: Folder) -> None:
        self.file, content = _load(folder)
        value = nodes.parsed(content, "invalid Kustomization")
        if value is None:
            value = {}
        self.fields: Object = decoded(value, _FIELDS, "Kustomization", "invalid Kustomization: ")
        self._warn()
        self._rename()
        given = {key for key, each in self.fields.items() if each is not None and each != ""}
        if not given - {"apiVersion", "kind"}:
            raise CLIError("kustomization.yaml is empty")
        self._check(folder.root)

    def texts(self, name: str) -> list[str]:
        """A field that is a list of texts."""
        return list(self.fields.get(name) or ())

    def entries(self, name: str) -> list[Object]:
        """A field that is a list of mappings."""
        return list(self.fields.get(name) or ())

    def text(self, name: str) -> str:
        """A field that is text."""
        return str(self.fields.get(name) or "")

    @property
    def component(self) -> bool:
        return self.text("kind") == "Component"

    def _warn(self) -> None:
        for old, new in _DEPRECATED:
            if self.fields.get(old) is not None:
                experimental = "[EXPERIMENTAL] " if old == "vars" else ""
                sys.stderr.write(
                    f"# Warning: '{old}' is deprecated. Please use '{new}' instead. {experimental}"
                    "Run 'kustomize edit fix' to update your Kustomization automatically.\n"
                )

    def _rename(self) -> None:
        fields = self.fields
        for old, new in (("bases", "resources"), ("imageTags", "images")):
            if fields.get(old):
                fields[new] = [*(fields.get(new) or ()), *fields.pop(old)]
        for name in ("configMapGenerator", "secretGenerator"):
            for each in fields.get(name) or ():
                if each.get("env"):
                    each["envs"] = [*(each.get("envs") or ()), each.pop("env")]

    def _check(self, root: str) -> None:
        kind = self.text("kind") or "Kustomization"
        problems = []
        if kind not in ("Kustomization", "Component"):
            problems.append("kind should be Kustomization or Component")
        version = f"kustomize.config.k8s.io/{'v1alpha1' if kind == 'Component' else 'v1beta1'}"
        if self.text("apiVersion") not in ("", version):
            problems.append(f"apiVersion for {kind} should be {version}")
        if problems:
            shown = "\n".join(problems)
            raise CLIError(f"Failed to read kustomization file under {root}:\n{shown}")


def _load(folder: Folder) -> tuple[str, bytes]:
    found = [name for name in _NAMES if os.path.isfile(os.path.join(folder.root, name))]
    if not found:
        names = "'kustomization.yaml', 'kustomization.yml' or 'Kustomization'"
        raise CLIError(f"unable to find one of {names} in directory '{folder.root}'")
    if len(found) > 1:
        raise CLIError(f"Found multiple kustomization files under: {folder.root}\n")
    return found[0], folder.load(found[0])


def decoded(value: Any, form: Any, where: str, prefix: str = "") -> Any:
    """The value with its fields' names as they should be spelled. Raises CLIError for other fields and types."""
    if form == "any" or value is None:
        return value
    if isinstance(form, str):
        fits = {"string": str, "bool": bool, "int": int}[form]
        if not isinstance(value, fits) or (form == "int" and isinstance(value, bool)):
            go_type = "int64" if form == "int" else form
            raise CLIError(
                f"{prefix}json: cannot unmarshal {_json_kind(value)} into Go struct field {where} of type {go_type}"
            )
        return value
    if isinstance(form, list):
        if not isinstance(value, list):
            go_type = "[]string" if form[0] == "string" else "[]types"
            raise CLIError(
                f"{prefix}json: cannot unmarshal {_json_kind(value)} into Go struct field {where} of type {go_type}"
            )
        empty: Any = "" if form[0] == "string" else {}
        return [empty if each is None else decoded(each, form[0], where, prefix) for each in value]
    if not isinstance(value, dict):
        what = f"struct field {where}" if "." in where else "value"
        go_type = "map[string]string" if "*" in form else "types.Kustomization"
        raise CLIError(f"{prefix}json: cannot unmarshal {_json_kind(value)} into Go {what} of type {go_type}")
    if "*" in form:
        return {key: decoded(each, form["*"], where, prefix) for key, each in value.items()}
    names = {name.lower(): name for name in form}  # names of fields are read in any case
    found = {}
    for key, each in value.items():
        name = names.get(str(key).lower())
        if name is None:
            raise CLIError(f'{prefix}json: unknown field "{key}"')
        found[name] = decoded(each, form[name], f"{where}.{name}", prefix)
    return found


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "number"
