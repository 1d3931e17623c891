"""Collects the facts about fields that the published schemas lack, from a checkout of upstream's source.

    python tools/extract_facts.py CHECKOUT > tools/field_facts.json

Published schemas list fields alphabetically and know neither defaults nor enumerations. From the Go declarations come
the order of the fields, what is written even when unset, which scalars are pointers, and the values of enumerations;
from the OpenAPI v3 documents come the defaults. Only facts are kept: names, numbers and values, no text.

The result is committed, so a checkout is needed only when the API level rises.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

API = "staging/src/k8s.io/api"
META = "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1"

# Go package -> prefix of its definitions' names.
PACKAGES = {
    **{
        f"{API}/{package}": f"io.k8s.api.{package.replace('/', '.')}"
        for package in (
            "admissionregistration/v1",
            "apps/v1",
            "authentication/v1",
            "authorization/v1",
            "autoscaling/v1",
            "autoscaling/v2",
            "batch/v1",
            "certificates/v1",
            "coordination/v1",
            "core/v1",
            "discovery/v1",
            "events/v1",
            "flowcontrol/v1",
            "networking/v1",
            "node/v1",
            "policy/v1",
            "rbac/v1",
            "resource/v1",
            "scheduling/v1",
            "storage/v1",
        )
    },
    META: "io.k8s.apimachinery.pkg.apis.meta.v1",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
    ),
    "staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/v1": (
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"
    ),
}

# Structs in Go that are something else on the wire -> what is written for their zero value.
SCALARS: dict[str, Any] = {
    "metav1.Time": None,
    "metav1.MicroTime": None,
    "metav1.Duration": "0s",
    "resource.Quantity": "0",
    "intstr.IntOrString": 0,
    "runtime.RawExtension": None,
    "metav1.FieldsV1": {},
    "JSON": None,
}
ZEROES: dict[str, Any] = {"string": "", "bool": False, "float64": 0}
ZEROES |= dict.fromkeys(("int", "int32", "int64", "uint32", "uint64", "uint"), 0)

FIELD = re.compile(r"^\t(?:(?P<name>\w+)\s+)?(?P<type>[*\[\]\w.]+)\s+`(?P<tag>[^`]*)`")

# `Name Type = "value"`, `Name = Type("value")`
CONSTANT = re.compile(r'^(?:\s+|const )(\w+)(?:\s+(\w+))?\s*=\s*(?:(\w+)\()?"([^"]*)"', re.M)

# Constants made of other constants.
DERIVED = {"AddressType": ["IPv4", "IPv6"]}


class Package:
    """The declarations of one Go package, as far as they shape JSON."""

    def __init__(self, folder: Path) -> None:
        self.structs: dict[str, list[tuple[str, str, list[str]]]] = {}
        self.named: dict[str, str] = {}
        self.enums: dict[str, list[str]] = {}
        text = "\n".join(
            path.read_text()
            for path in sorted(folder.glob("*.go"))
            if not path.name.endswith(("_test.go", "generated.go")) and not path.name.startswith("zz_")
            if path.name not in ("generated.pb.go", "doc.go")
        )
        enum_types = set()
        for comment, name, kind in re.findall(r"((?:^//[^\n]*\n)*)^type (\w+) (?:= )?([\[\]\w.*]+)$", text, re.M):
            self.named[name] = kind
            if re.search(r"^// *\+enum", comment, re.M):
                enum_types.add(name)
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
            self.structs[name] = [
                (match["name"] or "", match["type"], tag[1].split(","))
                for line in body.splitlines()
                if (match := FIELD.match(line)) and (tag := re.search(r'json:"([^"]*)"', match["tag"]))
            ]
        for name, before, after, value in CONSTANT.findall(text):
            if (before or after) in enum_types and name[0].isupper():
                self.enums.setdefault(before or after, []).append(value)
        for name in self.enums.keys() & DERIVED.keys():
            self.enums[name] += DERIVED[name]


class Facts:
    def __init__(self, checkout: Path) -> None:
        self.packages = {prefix: Package(checkout / folder) for folder, prefix in PACKAGES.items()}
        self.schemas: dict[str, Any] = {}
        for path in sorted((checkout / "api/openapi-spec/v3").glob("*v[12]_openapi.json")):
            self.schemas |= json.loads(path.read_text())["components"]["schemas"]

    def collect(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Definition -> field in order of declaration -> what is special about it."""
        result = {}
        for prefix, package in self.packages.items():
            for name in package.structs:
                schema = self.schemas.get(f"{prefix}.{name}")
                if schema is None or "properties" not in schema:
                    continue
                fields = dict(self.fields(package, name))
                properties = schema["properties"]
                for field, fact in fields.items():
                    if field in properties and "default" in properties[field]:
                        fact["default"] = properties[field]["default"]
                missing = properties.keys() ^ fields.keys()
                if missing:
                    print(f"{prefix}.{name}: Go and OpenAPI differ in {sorted(missing)}", file=sys.stderr)
                result[f"{prefix}.{name}"] = {field: fact for field, fact in fields.items() if field in properties}
        return result

    def fields(self, package: Package, struct: str) -> Any:
        for name, type_, (wire, *options) in package.structs[struct]:
            if wire == "-":
                continue
            if "inline" in options or (not name and not wire):
                if type_.endswith("TypeMeta"):
                    yield "kind", {}
                    yield "apiVersion", {}
                else:
                    yield from self.fields(package, type_)
                continue
            fact: dict[str, Any] = {}
            zero, struct_like = self.zero(package, type_)
            if ("omitempty" not in options or struct_like) and "omitzero" not in options:
                fact["always"] = zero
            elif self.is_plain(package, type_.removeprefix("*")) and type_.startswith("*"):
                fact["pointer"] = True
            if enum := self.enum(package, type_):
                fact["enum"] = sorted(enum)
            yield wire, fact

    def zero(self, package: Package, type_: str) -> tuple[Any, bool]:
        """What Go writes for the zero value of a type, and whether it does so in spite of `omitempty`."""
        if type_.startswith(("*", "[", "map")):
            return None, False
        local = f"metav1.{type_}" if package is self.packages[PACKAGES[META]] else type_
        if local in SCALARS:
            return SCALARS[local], True
        if type_ in ZEROES:
            return ZEROES[type_], False
        package, type_ = self.resolve(package, type_)
        if type_ in package.named:
            return self.zero(package, package.named[type_])
        if type_ in package.structs:
            return {}, True
        return ("" if type_ == "UID" else None), False

    def is_plain(self, package: Package, type_: str) -> bool:
        """Whether a type is a text, number or flag."""
        zero, struct_like = self.zero(package, type_)
        return zero is not None and not struct_like

    def enum(self, package: Package, type_: str) -> list[str] | None:
        package, type_ = self.resolve(package, re.sub(r"^(\*|\[\]|map\[[^]]*\])+", "", type_))
        return package.enums.get(type_)

    def resolve(self, package: Package, type_: str) -> tuple[Package, str]:
        alias, dot, name = type_.rpartition(".")
        if not dot:
            return package, type_
        for prefix, other in self.packages.items():
            *_, group, version = prefix.split(".")
            names = {f"{group}{version}", *(["v1", "apiv1", "corev1"] if (group, version) == ("core", "v1") else [])}
            if alias in names:
                return other, name
        return package, name


if __name__ == "__main__":
    facts = Facts(Path(sys.argv[1])).collect()
    lines = (f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(facts.items()))
    print("{\n" + ",\n".join(lines) + "\n}")
