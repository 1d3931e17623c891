"""Collects the numbers of fields in Kubernetes' protobuf messages, from a checkout of upstream's source.

    python tools/extract_protobuf.py CHECKOUT > src/pybernetes/api/protobuf/messages.txt

A section for each package, a line for each message: its name and then `field=number:type` for each field, where the
field is named as in JSON (`.` if JSON has its fields in the message itself). A type is one of protobuf's, one of
`SPECIAL` (what is a message there and something else in JSON), or a message, with its package if that is another one;
`[]` before it is a list, `{}` a map with texts as keys. Only facts are kept: names, numbers and types, no text.

The message files name and number the fields; the tags of the Go declarations tell where JSON has another name.

The result is committed, so a checkout is needed only when the API level rises.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

API = "staging/src/k8s.io/api"
MACHINERY = "staging/src/k8s.io/apimachinery/pkg"

# Section -> folder.
PACKAGES = {
    "meta/v1": f"{MACHINERY}/apis/meta/v1",
    **{
        package: f"{API}/{package}"
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
            "policy/v1beta1",  # evictions of old clients
            "rbac/v1",
            "resource/v1",
            "scheduling/v1",
            "storage/v1",
        )
    },
    "apiextensions/v1": "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "apiregistration/v1": "staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
}

# Messages that are something else in JSON -> the word for it.
SPECIAL = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Duration": "duration",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "json",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "micro-time",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "date-time",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "json",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON": "json",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "schema-or-list",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "schema-or-texts",
}
PLAIN = ("bool", "bytes", "double", "int32", "int64", "string")

FIELD = re.compile(r"^\s+(optional|repeated|map<string, *([\w.]+)>) +(?:([\w.]+) +)?(\w+) = (\d+);$")
TAG = re.compile(
    r'`.*json:"([^",]*)(,[^"]*)?".*protobuf:"\w+,(\d+)[,"]|`.*protobuf:"\w+,(\d+).*json:"([^",]*)(,[^"]*)?"'
)


def main(checkout: Path) -> None:
    """Write all sections to the standard output."""
    sections = {_proto_package(checkout / folder): name for name, folder in PACKAGES.items()}
    for section, folder in PACKAGES.items():
        print(f"[{section}]")
        for line in _messages(checkout / folder, sections):
            print(line)


def _proto_package(folder: Path) -> str:
    found = re.search(r"^package ([\w.]+);$", (folder / "generated.proto").read_text(), re.M)
    assert found, folder
    return found[1]


def _messages(folder: Path, sections: dict[str, str]) -> list[str]:
    package = _proto_package(folder)
    names, lists = _declarations(folder)
    lines, message, fields = [], "", []
    for line in (folder / "generated.proto").read_text().splitlines():
        if line.startswith("message "):
            message, fields = line.split()[1], []
        elif line == "}" and message:
            if f"{package}.{message}" not in SPECIAL and message not in lists:
                lines.append(" ".join((message, *fields)))
            message = ""
        elif message and (found := FIELD.match(line)):
            shape, element, kind, name, number = found.groups()
            kind = _type(element or kind, package, sections, lists)
            mark = "[]" if shape == "repeated" else "{}" if element else ""
            fields.append(f"{names.get((message, int(number)), name)}={number}:{mark}{kind}")
    return lines


def _type(name: str, package: str, sections: dict[str, str], lists: set[str]) -> str:
    if name in PLAIN:
        return name
    if not name.startswith("."):
        if name in lists:
            return "texts"
        name = f"{package}.{name}"
    name = name.removeprefix(".")
    if name in SPECIAL:
        return SPECIAL[name]
    where, _, message = name.rpartition(".")
    return message if where == package else f"{sections[where]}.{message}"


def _declarations(folder: Path) -> tuple[dict[tuple[str, int], str], set[str]]:
    """The names in JSON by struct and number, and the types that are lists of texts."""
    names: dict[tuple[str, int], str] = {}
    lists: set[str] = set()
    for file in folder.glob("*.go"):
        if file.name.startswith(("zz_", "generated")) or file.name.endswith("_test.go"):
            continue
        struct = ""
        for line in file.read_text().splitlines():
            if found := re.match(r"type (\w+) struct \{", line):
                struct = found[1]
            elif found := re.match(r"type (\w+) \[\]string", line):
                lists.add(found[1])
            elif line == "}":
                struct = ""
            elif struct and (found := TAG.search(line)):
                before, options, number, other_number, after, other_options = found.groups()
                inline = ",inline" in (options or other_options or "")
                names[struct, int(number or other_number)] = "." if inline else before or after
    return names, lists


if __name__ == "__main__":
    main(Path(sys.argv[1]))
