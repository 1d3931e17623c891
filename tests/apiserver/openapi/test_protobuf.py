"""What is encoded can be decoded by Google's own library, given the messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from pybernetes.apiserver.openapi import documents
from pybernetes.apiserver.openapi.protobuf import encode_v2, encode_v3

# Message -> field -> (number, type); a star means repeated.
V2 = {
    "Document": {"swagger": (1, "string"), "info": (2, "Info"), "paths": (8, "Paths"), "definitions": (9, "Schemas")},
    "Info": {"title": (1, "string"), "version": (2, "string")},
    "Paths": {"path": (2, "*NamedPath")},
    "NamedPath": {"name": (1, "string"), "value": (2, "PathItem")},
    "PathItem": {"get": (2, "Operation"), "post": (4, "Operation"), "parameters": (9, "*ParametersItem")},
    "Operation": {"operation_id": (5, "string"), "parameters": (8, "*ParametersItem"), "extensions": (13, "*NamedAny")},
    "ParametersItem": {"parameter": (1, "Parameter"), "json_reference": (2, "Reference")},
    "Parameter": {"body": (1, "Body"), "non_body": (2, "NonBody")},
    "Body": {"name": (2, "string"), "required": (4, "bool"), "schema": (5, "Schema")},
    "NonBody": {"query": (3, "Query"), "path": (4, "PathParameter")},
    "Query": {"name": (4, "string"), "type": (6, "string"), "unique_items": (20, "bool")},
    "PathParameter": {"required": (1, "bool"), "name": (4, "string"), "type": (5, "string")},
    "Reference": {"ref": (1, "string")},
    "Schemas": {"additional_properties": (1, "*NamedSchema")},
    "NamedSchema": {"name": (1, "string"), "value": (2, "Schema")},
    "Schema": {
        "ref": (1, "string"),
        "required": (19, "*string"),
        "enum": (20, "*Any"),
        "additional": (21, "Additional"),
        "type": (22, "Types"),
        "items": (23, "Items"),
        "properties": (25, "Schemas"),
        "extensions": (31, "*NamedAny"),
    },
    "Additional": {"schema": (1, "Schema"), "boolean": (2, "bool")},
    "Types": {"value": (1, "*string")},
    "Items": {"schema": (1, "*Schema")},
    "NamedAny": {"name": (1, "string"), "value": (2, "Any")},
    "Any": {"yaml": (2, "string")},
}
V3 = {
    "Document": {"openapi": (1, "string"), "info": (2, "Info"), "paths": (4, "Paths"), "components": (5, "Components")},
    "Info": {"title": (1, "string"), "version": (6, "string")},
    "Paths": {"path": (1, "*NamedPath")},
    "NamedPath": {"name": (1, "string"), "value": (2, "PathItem")},
    "PathItem": {"get": (4, "Operation")},
    "Operation": {"operation_id": (5, "string")},
    "Components": {"schemas": (1, "Schemas")},
    "Schemas": {"additional_properties": (1, "*NamedSchema")},
    "NamedSchema": {"name": (1, "string"), "value": (2, "SchemaOrReference")},
    "SchemaOrReference": {"schema": (1, "Schema"), "reference": (2, "Reference")},
    "Reference": {"ref": (1, "string")},
    "Schema": {
        "type": (25, "string"),
        "all_of": (26, "*SchemaOrReference"),
        "one_of": (27, "*SchemaOrReference"),
        "properties": (31, "Schemas"),
        "default": (33, "Default"),
        "format": (35, "string"),
    },
    "Default": {"number": (1, "double"), "boolean": (2, "bool"), "string": (3, "string")},
}


def document_class(messages: dict[str, dict[str, tuple[int, str]]], package: str) -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {"string": kinds.TYPE_STRING, "bool": kinds.TYPE_BOOL, "double": kinds.TYPE_DOUBLE}
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            added = message.field.add(name=field, number=number, label=label)
            added.type = scalars.get(kind, kinds.TYPE_MESSAGE)
            if kind not in scalars:
                added.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Document"))


def test_version_2_decodes_to_what_the_document_says() -> None:
    written = documents.v2()
    document = document_class(V2, "test_v2")()
    document.ParseFromString(encode_v2(written))
    assert (document.swagger, document.info.title) == ("2.0", "Kubernetes")
    paths = {path.name: path.value for path in document.paths.path}
    assert paths.keys() == written["paths"].keys()
    pods = paths["/api/v1/namespaces/{namespace}/pods"]
    assert pods.get.operation_id == "listCoreV1NamespacedPod"
    assert pods.parameters[0].json_reference.ref.startswith("#/parameters/namespace-")
    body = pods.post.parameters[0].parameter.body
    assert (body.name, body.required, body.schema.ref) == ("body", True, "#/definitions/io.k8s.api.core.v1.Pod")
    dry_run = pods.post.parameters[1].parameter.non_body.query
    assert (dry_run.name, dry_run.type, dry_run.unique_items) == ("dryRun", "string", True)
    extensions = {each.name: json.loads(each.value.yaml) for each in pods.get.extensions}
    assert extensions["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}
    definitions = {each.name: each.value for each in document.definitions.additional_properties}
    assert definitions.keys() == written["definitions"].keys()
    spec = definitions["io.k8s.api.core.v1.PodSpec"]
    assert list(spec.required) == ["containers"]
    properties = {each.name: each.value for each in spec.properties.additional_properties}
    containers = properties["containers"]
    assert list(containers.type.value) == ["array"]
    assert containers.items.schema[0].ref == "#/definitions/io.k8s.api.core.v1.Container"
    assert json.loads(containers.extensions[0].value.yaml) == "map"
    assert list(properties["nodeSelector"].additional.schema.type.value) == ["string"]
    assert [json.loads(each.yaml) for each in properties["restartPolicy"].enum] == ["Always", "Never", "OnFailure"]


def test_version_3_decodes_to_what_the_document_says() -> None:
    written = documents.v3()["apis/apps/v1"]
    document = document_class(V3, "test_v3")()
    document.ParseFromString(encode_v3(written))
    assert (document.openapi, document.info.version) == ("3.0.0", "1.36")
    paths = {path.name: path.value for path in document.paths.path}
    assert paths.keys() == written["paths"].keys()
    assert paths["/apis/apps/v1/"].get.operation_id == "getAppsV1APIResources"
    schemas = {each.name: each.value.schema for each in document.components.schemas.additional_properties}
    assert schemas.keys() == written["components"]["schemas"].keys()
    ports = {
        each.name: each.value.schema
        for each in schemas["io.k8s.api.core.v1.ContainerPort"].properties.additional_properties
    }
    assert ports["protocol"].default.string == "TCP"
    assert (ports["containerPort"].type, ports["containerPort"].format) == ("integer", "int32")
    either = schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"].one_of
    assert [each.schema.type for each in either] == ["integer", "string"]


def test_what_has_no_place_in_a_message_is_an_error() -> None:
    with pytest.raises(KeyError):
        encode_v2({"definitions": {"Widget": {"typo": "string"}}})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"additionalProperties": True}, b"\xaa\x01\x02\x10\x01"),
        ({"minimum": 1}, b"I\x00\x00\x00\x00\x00\x00\xf0?"),
        ({"maxLength": 300}, b"X\xac\x02"),
        ({"minLength": -1}, b"`" + b"\xff" * 9 + b"\x01"),
        ({"x-kubernetes-int-or-string": True}, b"\x12\x07\x12\x05true\n"),
    ],
)
def test_fields_that_only_custom_kinds_use(schema: dict[str, Any], expected: bytes) -> None:
    assert encode_v2({"definitions": {"W": schema}}).endswith(expected)
