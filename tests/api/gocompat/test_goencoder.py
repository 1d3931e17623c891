"""Objects as Go would write them, and structs as messages show them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pybernetes.api import schema
from pybernetes.api.admissionregistration.v1 import WebhookClientConfig
from pybernetes.api.apiextensions.v1 import CustomResourceDefinition, JSONSchemaProps
from pybernetes.api.apps.v1 import Deployment
from pybernetes.api.base import Struct
from pybernetes.api.certificates.v1 import CertificateSigningRequestSpec
from pybernetes.api.core.v1 import ConfigMap, ContainerStatus, Namespace, Pod, PodCondition, PodStatus, Service
from pybernetes.api.gocompat import goencoder
from pybernetes.api.gocompat.goform import go_form
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.normalize import normalize
from pybernetes.api.rbac.v1 import Role
from pybernetes.api.resource.v1 import ResourceClaimTemplate
from pybernetes.api.resources import RESOURCES
from pybernetes.api.storage.v1 import CSIDriver, CSIDriverSpec, TokenRequest, VolumeAttachment, VolumeAttachmentSpec


def filled(obj: Struct) -> Any:
    goencoder.fill(obj)
    return msgspec.to_builtins(obj)


def test_zero_values_are_filled_in_at_every_depth() -> None:
    assert filled(VolumeAttachment()) == {
        "metadata": {},
        "spec": {"attacher": "", "source": {}, "nodeName": ""},
        "status": {"attached": False},
    }


def test_items_of_lists_are_filled_in_and_what_is_set_stays() -> None:
    obj = CSIDriver(spec=CSIDriverSpec(token_requests=[TokenRequest(), TokenRequest(audience="a")]))
    assert filled(obj)["spec"] == {"tokenRequests": [{"audience": ""}, {"audience": "a"}]}


def test_structs_inside_structs_that_were_missing_are_filled_in() -> None:
    assert filled(ResourceClaimTemplate())["spec"] == {"metadata": {}, "spec": {"devices": {}}}
    assert filled(Service())["status"] == {"loadBalancer": {}}


def test_empty_lists_and_maps_are_not_written() -> None:
    spec = {"tolerations": [], "nodeSelector": {}, "containers": [{"name": "a", "env": [], "ports": []}]}
    pod = msgspec.convert({"metadata": {"labels": {}, "finalizers": []}, "spec": spec}, Pod)
    assert filled(pod) == {
        "metadata": {"labels": {}, "finalizers": []},
        "spec": {**spec, "containers": [{"name": "a", "env": [], "ports": [], "resources": {}}]},
        "status": {},
    }, "validation may tell them from absent ones"
    assert json.loads(goencoder.encode(pod)) == {
        "metadata": {},
        "spec": {"containers": [{"name": "a", "resources": {}}]},
        "status": {},
    }


def test_an_empty_struct_behind_a_pointer_stays() -> None:
    pod = msgspec.convert({"spec": {"containers": None, "securityContext": {}, "volumes": [{"emptyDir": {}}]}}, Pod)
    assert filled(pod)["spec"] == {"securityContext": {}, "volumes": [{"name": "", "emptyDir": {}}]}


def test_null_is_written_where_go_has_nothing_else_to_write() -> None:
    pod = Pod(status=PodStatus(conditions=[PodCondition(type="Ready", status="True")]))
    assert json.loads(goencoder.encode(pod)) == {
        "metadata": {},
        "spec": {"containers": None},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}]
        },
    }


@pytest.mark.parametrize("rules", [None, []])
def test_an_empty_list_that_must_be_written_is_null(rules: Any) -> None:
    role = Role(rules=rules)
    assert goencoder.encode(role) == b'{"metadata":{},"rules":null}'
    assert role.rules is None


def test_an_object_that_cannot_be_written_is_as_it_was() -> None:
    role = Role(metadata=ObjectMeta(name="\ud800"))
    with pytest.raises(ValueError, match="surrogates"):
        goencoder.encode(role)
    assert role.rules is None


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each.api_version} {each.kind}")
def test_what_is_written_reads_back_the_same_for_every_kind(resource: Any) -> None:
    obj = _sample(resource.type, 0)
    normalize(obj)
    raw = goencoder.encode(obj)
    again = msgspec.json.decode(raw, type=resource.type)
    normalize(again)
    assert goencoder.encode(again) == raw


def test_zeroes_of_pointers_are_kept_and_others_are_absent() -> None:
    deployment = msgspec.convert(
        {"spec": {"replicas": 0, "paused": False, "minReadySeconds": 0, "progressDeadlineSeconds": 0}}, Deployment
    )
    normalize(deployment)
    assert msgspec.to_builtins(deployment) == {"spec": {"replicas": 0, "progressDeadlineSeconds": 0}}


def test_a_zero_that_is_always_written_is_so_whether_it_was_sent_or_not() -> None:
    sent = msgspec.convert({"name": "a", "ready": False, "restartCount": 0, "started": False}, ContainerStatus)
    normalize(sent)
    assert filled(sent) == {
        "name": "a",
        "state": {},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
        "started": False,
    }


def test_the_zero_of_an_int_or_string_is_the_number() -> None:
    ports = [{"port": 1, "targetPort": 0}, {"port": 2, "targetPort": ""}]
    service = msgspec.convert({"spec": {"ports": ports}}, Service)
    normalize(service)
    assert msgspec.to_builtins(service) == {"spec": {"ports": [{"port": 1}, {"port": 2, "targetPort": ""}]}}


def test_bytes_that_are_empty_are_absent_unless_they_are_always_written() -> None:
    config = msgspec.convert({"caBundle": ""}, WebhookClientConfig)
    normalize(config)
    assert msgspec.to_builtins(config) == {}
    request = msgspec.convert({"request": ""}, CertificateSigningRequestSpec)
    normalize(request)
    assert json.loads(goencoder.encode(request)) == {"request": "", "signerName": ""}


def test_schemas_within_schemas_are_reached_through_unions() -> None:
    schema = msgspec.convert(
        {"items": {"nullable": False, "items": [{"title": ""}]}, "additionalProperties": {"type": "", "required": []}},
        JSONSchemaProps,
    )
    normalize(schema)
    assert json.loads(goencoder.encode(schema)) == {"items": {"items": [{}]}, "additionalProperties": {}}
    open_schema = msgspec.convert({"additionalProperties": False}, JSONSchemaProps)
    normalize(open_schema)
    assert filled(open_schema) == {"additionalProperties": False}


def test_kinds_without_a_spec_show_no_more_than_their_metadata() -> None:
    assert goencoder.encode(ConfigMap()) == b'{"metadata":{}}'
    assert goencoder.encode(Namespace()) == b'{"metadata":{},"spec":{},"status":{}}'
    assert json.loads(goencoder.encode(CustomResourceDefinition()))["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": None,
    }


def test_messages_show_every_field_of_a_struct_by_its_name_in_go() -> None:
    spec = VolumeAttachmentSpec(attacher="a")
    shown = bytes(go_form(spec))
    assert shown == (b'{"Attacher":"a","Source":{"PersistentVolumeName":null,"InlineVolumeSpec":null},"NodeName":""}')


def _sample(cls: type[Struct], depth: int) -> Any:
    """An object with something in every list and every struct, three levels deep, and zeros everywhere else."""
    obj: Any = cls()
    for field in schema.fields(cls):
        if field.struct is not None and depth < 3:
            setattr(obj, field.name, _sample(field.struct, depth + 1))
        elif field.kind == schema.LIST and field.items and field.items.struct and depth < 3:
            setattr(obj, field.name, [_sample(field.items.struct, depth + 1)])
        elif field.kind == schema.LIST:
            setattr(obj, field.name, [])
        elif field.kind == schema.MAP:
            setattr(obj, field.name, {})
        elif field.kind == "bool":
            setattr(obj, field.name, False)
        elif field.kind == "int":
            setattr(obj, field.name, 0)
    return obj
