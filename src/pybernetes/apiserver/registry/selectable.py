"""The fields each kind can be selected by, as upstream has them, and how to read them from an object's bytes.

Decoding a whole object to look at three fields would be most of the cost of a filtered list, so a small Struct is made
for each resource that holds only the labels and those fields; msgspec skips the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.gocompat.quote import quote
from pybernetes.api.resources import Resource

_EVENT = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)

SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "events"): _EVENT,
    ("events.k8s.io", "events"): _EVENT,
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
    ("resource.k8s.io", "resourceslices"): ("spec.nodeName", "spec.driver"),
}

# The names that a version has for fields of the stored one; it knows these only.
ALIASES: dict[tuple[str, str], dict[str, str]] = {
    ("events.k8s.io", "events"): {
        **{label.replace("involvedObject", "regarding"): label for label in _EVENT if "." in label},
        "reportingController": "reportingComponent",
        "reason": "reason",
        "type": "type",
    },
}


def selectable(resource: Resource) -> frozenset[str]:
    """The fields that objects of a resource can be selected by."""
    own = ALIASES.get((resource.group, resource.plural)) or SELECTABLE.get((resource.group, resource.plural), ())
    if own and not resource.namespaced:  # a kind with fields of its own says itself what it has
        return frozenset(("metadata.name", *own))
    return frozenset(("metadata.name", "metadata.namespace", *own))


def not_selectable(resource: Resource, label: str) -> str:
    """The message for a field that objects cannot be selected by."""
    name = (resource.group, resource.plural)
    if resource.package == "unstructured":
        return f"field label not supported: {label}"
    if name not in SELECTABLE:
        return f'{quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"'
    if name == ("batch", "jobs"):
        return f"field label {quote(label)} not supported for Job"
    if name == ("resource.k8s.io", "resourceslices"):
        return f"field label not supported for {resource.api_version}, Kind={resource.kind}: {label}"
    return f"field label not supported: {label}"


# What an absent field counts as, where it is not the empty string.
_ZERO = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
# Where the value is read from, when it has another name on the wire.
_WIRE = {"status.successful": "status.succeeded", "source": "source.component"}


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """The attributes that selectors use."""

    labels: dict[str, str]
    fields: dict[str, str]
    uninitialized: bool = False
    """Whether it waits for initializers; only looked at where these are on."""


class _Metadata(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labels(msgspec.Struct, gc=False):
    metadata: _Metadata


def attribute_reader(group: str, plural: str) -> Callable[[bytes, str, str], Attributes]:
    """A function from an object's bytes, namespace and name to what selectors look at."""
    selectable = SELECTABLE.get((group, plural), ())
    if not selectable:
        decode = msgspec.json.Decoder(_Labels).decode

        def read(raw: bytes, namespace: str, name: str) -> Attributes:
            labels = decode(raw).metadata.labels or {}
            return Attributes(labels, {"metadata.name": name, "metadata.namespace": namespace})

        return read

    partial = _partial(selectable)
    decode_partial = msgspec.json.Decoder(partial).decode
    paths = [(label, _WIRE.get(label, label).split("."), _ZERO.get(label, "")) for label in selectable]

    def read_fields(raw: bytes, namespace: str, name: str) -> Attributes:
        found: Any = decode_partial(raw)
        fields = {"metadata.name": name, "metadata.namespace": namespace}
        for label, path, zero in paths:
            value: Any = found
            for part in path:
                value = getattr(value, part, None)
            fields[label] = _text(value, zero)
        if "source" in fields and not fields["source"]:
            fields["source"] = fields.get("reportingComponent", "")
        return Attributes(found.metadata.labels or {}, fields)

    return read_fields


def _text(value: Any, zero: str) -> str:
    if value is None:
        return zero
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, list):  # status.podIPs
        return ",".join(part.get("ip", "") for part in value)
    return str(value)


def _partial(selectable: tuple[str, ...]) -> type[msgspec.Struct]:
    """A Struct with the labels and exactly these paths."""
    tree: dict[str, Any] = {}
    for label in selectable:
        *parents, leaf = _WIRE.get(label, label).split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = None

    def make(name: str, node: dict[str, Any]) -> type[msgspec.Struct]:
        fields: list[tuple[str, Any, Any]] = []
        for key, child in node.items():
            kind = make(f"{name}_{key}", child) | None if child else Any
            fields.append((key, kind, None))
        if name == "Partial":
            fields.append(("metadata", _Metadata, msgspec.field(default_factory=_Metadata)))
        return msgspec.defstruct(name, fields, gc=False)

    return make("Partial", tree)
