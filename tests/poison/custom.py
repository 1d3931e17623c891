"""A custom resource with every kind of printer column, and objects that its columns cannot show."""

from __future__ import annotations

from typing import Any

GROUP, VERSION, PLURAL = "poison.example.com", "v1", "oddities"
COLUMNS = (
    {"name": "At", "type": "date", "jsonPath": ".spec.at"},
    {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
    {"name": "Share", "type": "number", "jsonPath": ".spec.share"},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    {"name": "Deep", "type": "string", "jsonPath": "." * 4 + "a"},
    {"name": "Far", "type": "string", "jsonPath": ".spec.list[" + "9" * 40 + "]"},
    {"name": "All", "type": "string", "jsonPath": ".spec.list[*].a"},
)
SPECS: tuple[dict[str, Any], ...] = (
    {"at": "2024-01-01T1:00:00Z"},
    {"at": "2024-01-01T00:00:00+24:60"},
    {"at": "0000-05-01T00:00:00Z"},
    {"at": 5},
    {"at": "9999-12-31T23:59:59-23:59"},
    {"count": 2**63 - 1, "share": 1e308, "on": "yes"},
    {"count": "x", "share": [], "on": {}},
    {"list": [{"a": number} for number in range(2000)]},
    {"list": {"a": {"a": {"a": {"a": 1}}}}},
)


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition; columns that the server refuses are left out by the caller."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": list(COLUMNS),
    }
    names = {"plural": PLURAL, "singular": "oddity", "kind": "Oddity", "listKind": "OddityList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def objects() -> list[dict[str, Any]]:
    """One object for each odd spec."""
    return [
        {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Oddity", "metadata": {"name": f"odd-{number}"}, "spec": spec}
        for number, spec in enumerate(SPECS)
    ]
