"""Upstream's sentences are there, from a package that every installation has; at another level our own words are."""

from __future__ import annotations

from importlib import metadata

import pytest

from pybernetes.apiserver.openapi import documents
from pybernetes.apiserver.openapi.descriptions import Descriptions

POD = "io.k8s.api.core.v1.Pod"


def test_with_the_package_kinds_and_fields_are_described() -> None:
    described, fields = Descriptions().of(POD)
    assert described.startswith("Pod is a collection of containers")
    assert fields.keys() == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert "desired behavior of the pod" in fields["spec"]
    _, fields = Descriptions().of("io.k8s.api.core.v1.Container")
    assert fields["image"].startswith("Container image name.")
    assert "``" not in fields["ports"]


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        ("io.k8s.api.networking.v1.NetworkPolicyIngressRule", "from"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", "continue"),
        ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", "x-kubernetes-list-type"),
    ],
)
def test_fields_that_python_cannot_name_are_found(definition: str, field: str) -> None:
    assert Descriptions().of(definition)[1][field]


def test_most_fields_are_described() -> None:
    properties = [
        field
        for definition in documents.v2()["definitions"].values()
        for field in definition.get("properties", {}).values()
    ]
    assert sum("description" in field for field in properties) > 0.97 * len(properties)


@pytest.mark.parametrize("version", ["1.35.0.8", "1.37.0.8", None])
def test_without_the_package_or_at_another_level_our_own_words_do(
    monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    def answer(name: str) -> str:
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", answer)
    assert Descriptions().of(POD) == ("", {})
    pod = documents.v2()["definitions"][POD]
    assert pod["description"] == "Containers that live and die together on one node."
    assert "description" not in pod["properties"]["spec"]
    in_v3 = documents.v3()["api/v1"]["components"]["schemas"][POD]["properties"]["spec"]
    assert "description" not in in_v3
    assert in_v3["allOf"]


def test_names_that_are_not_there_have_no_description() -> None:
    assert Descriptions().of("org.example.v1.Widget") == ("", {})
