"""Writes the kinds under `src/pybernetes/api/` from the published schemas.

    python tools/generate_kinds.py

Fields and types come from the schemas in the PyPI package `kubernetes-validate`; their order, defaults and
enumerations from `tools/field_facts.json` (see `extract_facts.py`). The result is committed and meant to be read.
Upstream's descriptions are left out: the API reference has them.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import msgspec
from kind_layout import CLASS_DOCS, META_HAND_WRITTEN, MODULES

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / "src/pybernetes/api"
SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema/v1.36.0-local/_definitions.json"
FACTS = ROOT / "tools/field_facts.json"

# Definitions that are not classes but types with a name.
ALIASES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "JSON",
}
# Definitions that are unions in Go and have no type in the schemas.
EXTENSION = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
UNIONS = {
    f"{EXTENSION}JSONSchemaPropsOrArray": "JSONSchemaProps | list[JSONSchemaProps]",
    f"{EXTENSION}JSONSchemaPropsOrBool": "JSONSchemaProps | bool",
    f"{EXTENSION}JSONSchemaPropsOrStringArray": "JSONSchemaProps | list[str]",
}
SCALARS = {"string": "str", "boolean": "bool", "number": "float", "integer": "int", "object": "dict[str, Any]"}
FORMATS = {"int32": "Int32", "int64": "Int64", "double": "Double", "byte": "Base64", "date-time": "Time"}

PACKAGE_OF_PREFIX = {
    "io.k8s.apimachinery.pkg.apis.meta.v1": "meta.v1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1": "apiextensions.v1",
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1": "apiregistration.v1",
}
STABLE = re.compile(r"io\.k8s\.api\.([a-z]+)\.(v[12])$")

WORD = re.compile(r"[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def snake(wire: str) -> str:
    """The Python name of a field: `clusterIPs` -> `cluster_ips`, `$ref` -> `ref`, `from` -> `from_`."""
    name = "_".join(word.lower() for word in WORD.findall(wire))
    return f"{name}_" if keyword.iskeyword(name) or name in SCALARS.values() else name


def camel(name: str) -> str:
    """What msgspec would call the field on the wire."""
    struct = msgspec.defstruct("Probe", [name], rename="camel")
    return struct.__struct_encode_fields__[0]


class Definition:
    def __init__(self, full_name: str, schema: dict[str, Any], facts: dict[str, Any], package: str) -> None:
        self.full_name, self.schema, self.package = full_name, schema, package
        self.name = full_name.rpartition(".")[2]
        self.module = MODULES.get(package, {}).get(self.name)
        properties = schema.get("properties", {})
        order = [*facts, *(wire for wire in properties if wire not in facts)]
        if not facts and "kind" in properties:
            order = ["kind", "apiVersion", *(wire for wire in properties if wire not in ("kind", "apiVersion"))]
        self.fields = {wire: properties[wire] for wire in order if wire in properties}
        self.facts = facts
        self.required = set(schema.get("required", ()))

    @property
    def is_list(self) -> bool:
        reference = self.schema.get("properties", {}).get("metadata", {}).get("$ref", "")
        return self.name.endswith("List") and reference.endswith(".ListMeta")

    @property
    def is_kind(self) -> bool:
        return {"kind", "apiVersion"} <= self.fields.keys() and self.fields.get("metadata", {}).get(
            "$ref", ""
        ).endswith(".ObjectMeta")

    @property
    def path(self) -> str:
        """Where the class lives, as a module below `api`."""
        return f"{self.package}.{self.module}" if self.module else self.package


class Generator:
    def __init__(self) -> None:
        schemas = json.loads(SCHEMAS.read_text())["$defs"]
        facts = json.loads(FACTS.read_text())
        self.definitions: dict[str, Definition] = {}
        for full_name, schema in schemas.items():
            prefix = full_name.rpartition(".")[0]
            package = PACKAGE_OF_PREFIX.get(prefix) or (
                f"{match[1]}.{match[2]}" if (match := STABLE.match(prefix)) else None
            )
            if package is None or full_name in ALIASES or full_name in UNIONS or full_name.endswith("meta.v1.Patch"):
                continue
            definition = Definition(full_name, schema, facts.get(full_name, {}), package)
            if not definition.is_list:
                self.definitions[full_name] = definition

    def write(self) -> None:
        by_path: dict[str, list[Definition]] = {}
        for definition in self.definitions.values():
            if definition.package in MODULES and definition.module is None:
                sys.exit(f"{definition.full_name}: give it a module in kind_layout.py")
            by_path.setdefault(definition.path, []).append(definition)
        written = [self.write_module(path, definitions) for path, definitions in by_path.items()]
        for package in MODULES:
            written.append(self.write_package(package))
        for command in ("format", "--quiet"), ("check", "--fix", "--quiet"), ("format", "--quiet"):
            subprocess.run([sys.executable, "-m", "ruff", *command, *written], check=True, cwd=ROOT)

    def write_module(self, path: str, definitions: list[Definition]) -> Path:
        order = MODULES.get(definitions[0].package)
        if order is None:
            definitions = self.reading_order(definitions)
        else:
            definitions.sort(key=lambda each: list(order).index(each.name))
        classes = [self.render(each) for each in definitions]
        body = "\n\n\n".join(classes)
        file = (API / path.replace(".", "/")).with_suffix(".py")
        depth = "." * (path.count(".") + 1)
        imports = [
            f"from .{other.module if other.package == each.package else depth[1:] + other.path} import {other.name}"
            for each in definitions
            for other in self.references(each.schema)
            if other.path != path and re.search(rf"\b{other.name}\b", body)
        ]
        names = set(re.findall(r"\b[A-Z]\w+\b", re.sub(r'"[^"]*"', "", body)))
        bases = sorted(names & {"Kind", "Struct"})
        if bases:
            imports.append(f"from {depth}base import {', '.join(bases)}")
        types = names & (TYPE_NAMES - {each.name for each in definitions})
        if types:
            imports.append(f"from {depth}types import {', '.join(sorted(types))}")
        typing = sorted(names & {"Annotated", "Any", "ClassVar"})
        if typing:
            imports.append(f"from typing import {', '.join(typing)}")
        if "field(" in body:
            imports.append("from msgspec import field")
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in (file.parent, file.parent.parent):
            if folder != API and not (folder / "__init__.py").exists():
                (folder / "__init__.py").touch()
        unions = ""
        if any("JSONSchemaPropsOr" in text for text in classes):
            unions = "\n\n" + "\n".join(f"{name.rpartition('.')[2]} = {text}" for name, text in UNIONS.items())
        file.write_text(
            f'"""{self.module_doc(path)}\n\nWritten by tools/generate_kinds.py.\n"""\n\n'
            "from __future__ import annotations\n\n" + "\n".join(imports) + "\n\n\n" + body + unions + "\n"
        )
        return file

    def reading_order(self, definitions: list[Definition]) -> list[Definition]:
        """Each kind, followed by what it is made of."""
        ordered: dict[str, Definition] = {}

        def add(definition: Definition) -> None:
            if definition.package == definitions[0].package and definition.name not in ordered:
                ordered[definition.name] = definition
                for reference in self.references(definition.fields):
                    add(reference)

        for definition in sorted(definitions, key=lambda each: (not each.is_kind, each.name)):
            add(definition)
        return list(ordered.values())

    def write_package(self, package: str) -> Path:
        """The `__init__.py` of a version that is spread over modules: all names in one place."""
        names: dict[str, list[str]] = {}
        for definition in self.definitions.values():
            if definition.package == package:
                names.setdefault(definition.module or "", []).append(definition.name)
        if package == "meta.v1":
            for module, classes in META_HAND_WRITTEN.items():
                names.setdefault(module, []).extend(classes)
        file = API / package.replace(".", "/") / "__init__.py"
        lines = [f"from .{module} import {', '.join(sorted(classes))}" for module, classes in sorted(names.items())]
        every = sorted(name for classes in names.values() for name in classes)
        file.write_text(
            f'"""Every class of {package.replace(".", "/")}.\n\nWritten by tools/generate_kinds.py.\n"""\n\n'
            "from __future__ import annotations\n\n" + "\n".join(lines) + f"\n\n__all__ = {every!r}\n"
        )
        return file

    def module_doc(self, path: str) -> str:
        group, version, *module = path.split(".")
        return f"{group}/{version}: {module[0]}." if module else f"The kinds of {group}/{version}."

    def references(self, node: Any) -> Iterator[Definition]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                definition = self.definitions.get(node["$ref"].removeprefix("#/$defs/"))
                if definition is not None:
                    yield definition
            for value in node.values():
                yield from self.references(value)
        elif isinstance(node, list):
            for value in node:
                yield from self.references(value)

    def render(self, definition: Definition) -> str:
        base = "Kind" if definition.is_kind else "Struct"
        lines = [f"class {definition.name}({base}):"]
        if doc := CLASS_DOCS.get(definition.package, {}).get(definition.name):
            lines += [f'    """{doc}"""', ""]
        if map_type := definition.schema.get("x-kubernetes-map-type"):
            lines.append(f"    map_type: ClassVar = MapType({map_type!r})")
        for union in definition.schema.get("x-kubernetes-unions", ()):
            fields = union["fields-to-discriminateBy"]
            lines.append(f"    union: ClassVar = Union({union.get('discriminator')!r}, {fields!r})")
        if len(lines) > 1 and lines[-1]:
            lines.append("")
        inherited = {"kind", "apiVersion", "metadata"} - definition.required if definition.is_kind else set()
        fields = [
            self.render_field(definition, wire, schema)
            for wire, schema in definition.fields.items()
            if wire not in inherited
        ]
        lines += fields
        if len(lines) == 1:
            lines.append("    pass")
        return "\n".join(lines).rstrip()

    def render_field(self, definition: Definition, wire: str, schema: dict[str, Any]) -> str:
        name = snake(wire)
        type_ = self.type_of(schema)
        annotation = type_ if type_ in ("Any", *(ALIASES[each] for each in ANYTHING)) else f"{type_} | None"
        if markers := self.markers(definition, wire, schema, type_):
            annotation = f"Annotated[{annotation}, {', '.join(markers)}]"
        default = "None" if camel(name) == wire else f"field(default=None, name={wire!r})"
        return f"    {name}: {annotation} = {default}"

    def type_of(self, schema: dict[str, Any]) -> str:
        if "$ref" in schema:
            full_name = schema["$ref"].removeprefix("#/$defs/")
            if full_name in UNIONS:
                return full_name.rpartition(".")[2]
            return ALIASES.get(full_name) or self.definitions[full_name].name
        kind = schema.get("type", "object")
        kind = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
        if kind == "array":
            return f"list[{self.type_of(schema['items'])}]"
        if kind == "object" and "additionalProperties" in schema:
            return f"dict[str, {self.type_of(schema['additionalProperties'])}]"
        return FORMATS.get(schema.get("format", "")) or SCALARS[kind]

    def markers(self, definition: Definition, wire: str, schema: dict[str, Any], type_: str) -> list[str]:
        fact = definition.facts.get(wire, {})
        result = []
        if wire in definition.required:
            result.append("Required")
        if "always" in fact:
            result.append(f"Always({fact['always']!r})")
        if fact.get("pointer"):
            result.append("Pointer")
        implied = "always" in fact and type_ not in ("IntOrString", "Quantity") and fact["always"] is not None
        if ("default" in fact) != implied or (implied and fact["default"] != fact["always"]):
            if "default" not in fact:
                sys.exit(f"{definition.full_name}.{wire}: Always({fact['always']!r}) but no default in the schema")
            result.append(f"Default({fact['default']!r})")
        if values := fact.get("enum"):
            result.append(f"Enum({', '.join(map(repr, values))})")
        if list_type := schema.get("x-kubernetes-list-type"):
            keys = schema.get("x-kubernetes-list-map-keys", ())
            result.append(f"ListType({list_type!r}{f', keys={tuple(keys)!r}' if keys else ''})")
        if map_type := schema.get("x-kubernetes-map-type"):
            result.append(f"MapType({map_type!r})")
        if strategy := schema.get("x-kubernetes-patch-strategy"):
            key = schema.get("x-kubernetes-patch-merge-key")
            result.append(f"Patch({strategy!r}{f', {key!r}' if key else ''})")
        return result


ANYTHING = [name for name, alias in ALIASES.items() if alias in ("FieldsV1", "JSON", "RawExtension")]
TYPE_NAMES = set(ALIASES.values()) | set(FORMATS.values())
TYPE_NAMES |= {"Always", "Default", "Duration", "Enum", "ListType", "MapType", "Patch", "Pointer", "Required", "Union"}

if __name__ == "__main__":
    Generator().write()
