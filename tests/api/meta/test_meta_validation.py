"""Metadata, selectors and conditions: what is refused, where, and in which words."""

from __future__ import annotations

import pytest

from pybernetes.api.field import Path
from pybernetes.api.meta.v1 import (
    Condition,
    LabelSelector,
    LabelSelectorRequirement,
    ManagedFieldsEntry,
    ObjectMeta,
    OwnerReference,
)
from pybernetes.api.meta.validation import (
    has_invalid_label_value,
    validate_conditions,
    validate_label_selector,
    validate_object_meta,
    validate_object_meta_update,
    validate_template_meta,
)
from pybernetes.api.names import name_is_dns_subdomain

AT = Path("metadata")
OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="1")


def messages(meta: ObjectMeta, namespaced: bool = True, custom: bool = False) -> list[str]:
    return [str(error) for error in validate_object_meta(meta, namespaced, name_is_dns_subdomain, AT, custom=custom)]


def changed(new: ObjectMeta, old: ObjectMeta) -> list[str]:
    return [str(error) for error in validate_object_meta_update(new, old, AT)]


@pytest.mark.parametrize(
    "meta",
    [
        ObjectMeta(name="a", namespace="b"),
        ObjectMeta(name="a", namespace="b", generate_name="a-", labels={"x.io/y": "", "z": "Z_1"}),
        ObjectMeta(name="a", namespace="b", annotations={"X.io/Y": "anything at all \n"}),
        ObjectMeta(name="a", namespace="b", finalizers=["orphan", "x.io/y"], owner_references=[OWNER]),
        ObjectMeta(name="a", namespace="b", managed_fields=[ManagedFieldsEntry(operation="Apply", manager="é")]),
    ],
)
def test_good_metadata_is_accepted(meta: ObjectMeta) -> None:
    assert messages(meta) == []


def test_a_name_is_needed() -> None:
    assert messages(ObjectMeta(namespace="b")) == ["metadata.name: Required value: name or generateName is required"]


def test_a_namespace_is_needed_where_there_are_namespaces_and_refused_where_not() -> None:
    assert messages(ObjectMeta(name="a")) == ["metadata.namespace: Required value"]
    assert messages(ObjectMeta(name="a", namespace="b"), namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_annotations_are_counted_in_bytes() -> None:
    meta = ObjectMeta(name="a", namespace="b", annotations={"k": "é" * (128 * 1024)})
    assert messages(meta) == ["metadata.annotations: Too long: may not be more than 262144 bytes"]


def test_finalizers_without_a_domain_are_for_custom_resources_only() -> None:
    meta = ObjectMeta(name="a", namespace="b", finalizers=["mine"])
    assert messages(meta, custom=True) == []
    assert messages(meta) == [
        'metadata.finalizers[0]: Invalid value: "mine": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]


def test_managed_fields_have_a_form() -> None:
    entries = [ManagedFieldsEntry(operation="Delete", fields_type="FieldsV2", manager="a\x00", subresource="s" * 257)]
    assert messages(ObjectMeta(name="a", namespace="b", managed_fields=entries)) == [
        'metadata.managedFields[0].operation: Invalid value: "Delete": must be `Apply` or `Update`',
        'metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`',
        'metadata.managedFields[0].manager: Invalid value: "a\\x00": invalid character U+0000 (at position 1)',
        "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
    ]


@pytest.mark.parametrize(
    ("field", "before", "after", "message"),
    [
        ("name", "a", "b", 'metadata.name: Invalid value: "b": field is immutable'),
        ("namespace", "a", "b", 'metadata.namespace: Invalid value: "b": field is immutable'),
        ("uid", "a", "b", 'metadata.uid: Invalid value: "b": field is immutable'),
        (
            "creation_timestamp",
            "2024-01-01T00:00:00Z",
            "2025-01-01T00:00:00Z",
            'metadata.creationTimestamp: Invalid value: "2025-01-01T00:00:00Z": field is immutable',
        ),
        (
            "deletion_timestamp",
            None,
            "2025-01-01T00:00:00Z",
            'metadata.deletionTimestamp: Invalid value: "2025-01-01T00:00:00Z": field is immutable',
        ),
        (
            "deletion_grace_period_seconds",
            30,
            5,
            "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        ),
        ("generation", 2, 1, "metadata.generation: Invalid value: 1: must not be decremented"),
    ],
)
def test_most_of_metadata_never_changes(field: str, before: object, after: object, message: str) -> None:
    old, new = ObjectMeta(), ObjectMeta()
    setattr(old, field, before)
    setattr(new, field, after)
    assert changed(new, old) == [message]


def test_what_is_being_deleted_gets_no_new_finalizers_but_may_lose_some() -> None:
    old = ObjectMeta(deletion_timestamp="2025-01-01T00:00:00Z", finalizers=["x.io/a", "x.io/b"])
    more = ObjectMeta(deletion_timestamp="2025-01-01T00:00:00Z", finalizers=["x.io/a", "x.io/d", "x.io/c"])
    fewer = ObjectMeta(deletion_timestamp="2025-01-01T00:00:00Z", finalizers=["x.io/a"])
    assert changed(fewer, old) == []
    assert changed(more, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x.io/c", "x.io/d"}'
    ]


def test_a_selector_must_make_sense() -> None:
    selector = LabelSelector(
        match_labels={"a": "b c"},
        match_expressions=[
            LabelSelectorRequirement(key="a", operator="In"),
            LabelSelectorRequirement(key="a", operator="Exists", values=["x"]),
            LabelSelectorRequirement(key="a b", operator="Near", values=["-"]),
        ],
    )
    found = [(error.field, error.type) for error in validate_label_selector(selector, Path("s"))]
    assert found == [
        ("s.matchLabels", "FieldValueInvalid"),
        ("s.matchExpressions[0].values", "FieldValueRequired"),
        ("s.matchExpressions[1].values", "FieldValueForbidden"),
        ("s.matchExpressions[2].operator", "FieldValueInvalid"),
        ("s.matchExpressions[2].key", "FieldValueInvalid"),
        ("s.matchExpressions[2].values[0]", "FieldValueInvalid"),
    ]
    assert validate_label_selector(None, Path("s")) == []


def test_values_that_no_label_has_can_be_tolerated() -> None:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="In", values=["b c"])])
    assert has_invalid_label_value(selector)
    assert validate_label_selector(selector, Path("s"), allow_invalid_values=True) == []


def test_conditions_are_complete_and_there_once() -> None:
    good = Condition(type="Ready", status="True", reason="Up", message="", last_transition_time="2025-01-01T00:00:00Z")
    bad = Condition(type="Ready", status="Maybe", reason="not a reason", observed_generation=-1)
    assert validate_conditions([good], Path("c")) == []
    assert [(error.field, error.type) for error in validate_conditions([good, bad], Path("c"))] == [
        ("c[1].type", "FieldValueDuplicate"),
        ("c[1].status", "FieldValueNotSupported"),
        ("c[1].observedGeneration", "FieldValueInvalid"),
        ("c[1].lastTransitionTime", "FieldValueRequired"),
        ("c[1].reason", "FieldValueInvalid"),
    ]


def test_the_template_of_a_claim_has_labels_and_annotations_only() -> None:
    meta = ObjectMeta(name="a", uid="u", labels={"a": "b"})
    assert [str(error) for error in validate_template_meta(meta, AT)] == [
        "metadata.name: Forbidden: cannot be set",
        "metadata.uID: Forbidden: cannot be set",
    ]
