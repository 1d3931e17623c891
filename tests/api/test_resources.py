"""The table agrees with upstream's discovery documents, and knowing it costs no kinds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pybernetes.api import scheme
from pybernetes.api.resources import GROUPS, RESOURCES, VERBS, Resource


def find(api_version: str, plural: str) -> Resource:
    group, version = scheme.split_api_version(api_version)
    resource = scheme.resource(group, version, plural)
    assert resource is not None
    return resource


def test_importing_the_table_imports_no_kinds() -> None:
    script = (
        "import sys, pybernetes.api.resources, pybernetes.api.scheme\n"
        "print([name for name in sys.modules if name.startswith('pybernetes.api.') and name.count('.') > 2])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("api_version", "plural", "short_names", "categories", "namespaced"),
    [
        ("v1", "pods", ("po",), ("all",), True),
        ("v1", "nodes", ("no",), (), False),
        ("v1", "secrets", (), (), True),
        ("apps/v1", "deployments", ("deploy",), ("all",), True),
        ("batch/v1", "jobs", (), ("all",), True),
        ("autoscaling/v1", "horizontalpodautoscalers", ("hpa",), ("all",), True),
        ("networking.k8s.io/v1", "networkpolicies", ("netpol",), (), True),
        ("apiextensions.k8s.io/v1", "customresourcedefinitions", ("crd", "crds"), ("api-extensions",), False),
        ("storage.k8s.io/v1", "volumeattributesclasses", ("vac",), (), False),
    ],
)
def test_names_and_scope(
    api_version: str, plural: str, short_names: tuple[str, ...], categories: tuple[str, ...], namespaced: bool
) -> None:
    resource = find(api_version, plural)
    assert (resource.short_names, resource.categories, resource.namespaced) == (short_names, categories, namespaced)


@pytest.mark.parametrize(
    ("api_version", "plural", "verbs"),
    [
        ("v1", "pods", VERBS),
        ("v1", "namespaces", ("create", "delete", "get", "list", "patch", "update", "watch")),
        ("v1", "componentstatuses", ("get", "list")),
        ("v1", "bindings", ("create",)),
        ("authentication.k8s.io/v1", "tokenreviews", ("create",)),
    ],
)
def test_verbs(api_version: str, plural: str, verbs: tuple[str, ...]) -> None:
    assert find(api_version, plural).verbs == verbs


def test_pods_have_the_subresources_of_discovery_in_its_order() -> None:
    names = " ".join(each.name for each in find("v1", "pods").subresources)
    assert names == "attach binding ephemeralcontainers eviction exec log portforward proxy resize status"
    eviction = find("v1", "pods").subresource("eviction")
    assert eviction is not None
    assert (eviction.group, eviction.version, eviction.kind) == ("policy", "v1", "Eviction")


@pytest.mark.parametrize(
    ("api_version", "plural", "prefix"),
    [
        ("v1", "pods", "/registry/pods/"),
        ("v1", "nodes", "/registry/minions/"),
        ("v1", "services", "/registry/services/specs/"),
        ("v1", "endpoints", "/registry/services/endpoints/"),
        ("v1", "replicationcontrollers", "/registry/controllers/"),
        ("events.k8s.io/v1", "events", "/registry/events/"),
        ("networking.k8s.io/v1", "ingresses", "/registry/ingress/"),
        ("autoscaling/v1", "horizontalpodautoscalers", "/registry/horizontalpodautoscalers/"),
        ("apiregistration.k8s.io/v1", "apiservices", "/registry/apiregistration.k8s.io/apiservices/"),
        (
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "/registry/apiextensions.k8s.io/customresourcedefinitions/",
        ),
        ("authorization.k8s.io/v1", "subjectaccessreviews", ""),
    ],
)
def test_objects_are_stored_where_upstream_stores_them(api_version: str, plural: str, prefix: str) -> None:
    assert find(api_version, plural).storage_prefix == prefix


@pytest.mark.parametrize(
    ("api_version", "plural", "value"),
    [
        ("v1", "pods", "xPOwRZ+Yhw8="),
        ("apps/v1", "deployments", "8aSe+NMegvE="),
        ("autoscaling/v1", "horizontalpodautoscalers", "qwQve8ut294="),
        ("autoscaling/v2", "horizontalpodautoscalers", "qwQve8ut294="),
        ("events.k8s.io/v1", "events", "r2yiGXH7wu8="),
        ("v1", "bindings", ""),
    ],
)
def test_storage_version_hash(api_version: str, plural: str, value: str) -> None:
    assert find(api_version, plural).storage_version_hash == value


def test_only_versions_of_one_resource_share_a_prefix() -> None:
    by_prefix: dict[str, set[str]] = {}
    for resource in RESOURCES:
        if resource.stored:
            by_prefix.setdefault(resource.storage_prefix, set()).add(resource.plural)
            assert scheme.storage_resource(resource).storage_prefix == resource.storage_prefix
    assert all(len(plurals) == 1 for plurals in by_prefix.values())


def test_every_group_has_resources_in_each_of_its_versions() -> None:
    served = {(each.group, each.version) for each in RESOURCES}
    assert served == {(group.name, version) for group in GROUPS for version in group.versions}
    assert all(len(group.versions) == len(group.version_priorities) for group in GROUPS)
    autoscaling = scheme.group("autoscaling")
    assert autoscaling is not None
    assert autoscaling.preferred_version == "v2"


def test_kinds_are_found_also_when_they_are_only_part_of_a_path() -> None:
    for api_version, kind in [("autoscaling/v1", "Scale"), ("policy/v1", "Eviction"), ("v1", "Pod")]:
        found = scheme.type_for(api_version, kind)
        assert found is not None
        assert found.__name__ == kind
    for api_version, kind in [("v1", "PodSpec"), ("v1", "Nothing"), ("nowhere/v1", "Pod"), ("apps/v9", "Deployment")]:
        assert scheme.type_for(api_version, kind) is None
