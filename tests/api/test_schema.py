"""Introspection tells what the markers say."""

from __future__ import annotations

from msgspec import UNSET

from pybernetes.api import types
from pybernetes.api.core.v1 import ContainerPort, Pod, PodSpec, Secret, ServicePort, ServiceSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.rbac.v1 import ClusterRole
from pybernetes.api.schema import fields, fields_by_wire


def test_fields_come_in_the_order_of_the_wire() -> None:
    assert [each.wire for each in fields(Pod)] == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert [each.wire for each in fields(ObjectMeta)][:3] == ["name", "generateName", "namespace"]


def test_lists_know_their_elements_and_how_to_merge() -> None:
    containers = fields_by_wire(PodSpec)["containers"]
    assert (containers.kind, containers.list_type, containers.list_map_keys) == ("list", "map", ("name",))
    assert (containers.patch_strategy, containers.patch_merge_key) == ("merge", "name")
    assert containers.items is not None
    assert containers.items.struct is not None
    assert containers.items.struct.__name__ == "Container"
    assert not containers.atomic
    assert fields_by_wire(ServiceSpec)["externalIPs"].atomic


def test_maps_and_structs_know_when_they_are_atomic() -> None:
    assert fields_by_wire(ServiceSpec)["selector"].atomic
    assert not fields_by_wire(ObjectMeta)["labels"].atomic
    claim_ref = fields_by_wire(PodSpec)["imagePullSecrets"].items
    assert claim_ref is not None
    assert claim_ref.atomic


def test_defaults_and_what_is_always_written() -> None:
    port = fields_by_wire(ContainerPort)
    assert (port["protocol"].default, port["protocol"].always) == ("TCP", UNSET)
    assert (port["containerPort"].default, port["containerPort"].always) == (0, 0)
    assert (port["hostIP"].default, port["hostIP"].always) == (UNSET, UNSET)
    assert (fields_by_wire(Pod)["status"].default, fields_by_wire(Pod)["status"].always) == ({}, {})
    rules = fields_by_wire(ClusterRole)["rules"]
    assert (rules.default, rules.always) == (UNSET, None)
    target = fields_by_wire(ServicePort)["targetPort"]
    assert (target.kind, target.format, target.default, target.always) == ("string", "int-or-string", UNSET, 0)


def test_enumerations_belong_to_the_element() -> None:
    families = fields_by_wire(ServiceSpec)["ipFamilies"]
    assert families.enum == ()
    assert families.items is not None
    assert families.items.enum == ("", "IPv4", "IPv6")
    assert fields_by_wire(ServiceSpec)["type"].enum == ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def test_elements_default_to_zero_where_a_schema_can_say_so() -> None:
    command = fields_by_wire(PodSpec)["nodeSelector"].items
    data = fields_by_wire(Secret)["data"].items
    assert command is not None
    assert data is not None
    assert command.default == ""
    assert (data.format, data.default) == ("byte", UNSET)


def test_markers_of_different_kinds_are_never_equal() -> None:
    """Debian's Python 3.11.2 would take one for the other: it keeps one `Annotated` for equal ones."""
    markers = (types.Format, types.ListType, types.MapType, types.Patch, types.Always, types.Default, types.Enum)
    assert len({marker("x") for marker in markers}) == len(markers)
    assert types.Always(0) == types.Always(0)
