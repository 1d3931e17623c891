"""Discovery, old and new, and OpenAPI of aggregated groups."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from apiserver.aggregation.conftest import PATH, Registered
from apiserver.aggregation.extension import DEFINITION, GROUP, KIND, RESOURCES, ROOT, VERSION, Handler

import tools
from pybernetes.apiserver.aggregation import discovery, openapi
from pybernetes.apiserver.aggregation.merging import merged
from pybernetes.apiserver.aggregation.openapi_conversion import to_v3

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
RESOURCE = {
    "resource": "flunders",
    "responseKind": {"group": "", "version": "", "kind": "Flunder"},
    "scope": "Namespaced",
    "singularResource": "flunder",
    "verbs": ["create", "delete", "get", "list", "watch"],
    "shortNames": ["fl"],
    "subresources": [
        {
            "subresource": "status",
            "responseKind": {"group": "", "version": "", "kind": "Flunder"},
            "verbs": ["get"],
        }
    ],
}


def aggregated(registered: Registered) -> list[dict[str, Any]]:
    """The versions of the group in the document of everything."""
    items = registered.admin.get("/apis", Accept=V2).json["items"]
    return next((each["versions"] for each in items if each["metadata"]["name"] == GROUP), [])


def test_the_group_is_in_the_old_documents_by_its_priority(available: Registered) -> None:
    admin = available.admin
    names = [each["name"] for each in admin.get("/apis").json["groups"]]
    assert names[0] == "apiregistration.k8s.io"
    assert names[-1] == GROUP  # there is nothing with less than 2000 here
    assert admin.get(f"/apis/{GROUP}").json == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": GROUP,
        "versions": [{"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}],
        "preferredVersion": {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION},
    }
    assert admin.get(ROOT).json == RESOURCES
    admin.patch(PATH, {"spec": {"groupPriorityMinimum": 17799}})
    moved = lambda: [each["name"] for each in admin.get("/apis").json["groups"]].index(GROUP) == 2  # noqa: E731
    tools.wait_until(moved, "behind apps")
    assert [each["metadata"]["name"] for each in admin.get("/apis", Accept=V2).json["items"]].index(GROUP) == 2


def test_everything_in_one_document_has_what_a_server_of_the_old_kind_says(available: Registered) -> None:
    wanted = [{"version": VERSION, "resources": [RESOURCE], "freshness": "Current"}]
    tools.wait_until(lambda: aggregated(available) == wanted, "its resources are known")


def test_everything_in_one_document_has_what_a_server_of_the_new_kind_says(registered: Registered) -> None:
    entry = {"version": VERSION, "resources": [{"resource": "new", "scope": "Cluster", "verbs": ["get"]}]}

    def answer(handler: Handler) -> bool:
        if handler.path == "/apis" and "apidiscovery" in handler.headers.get("Accept", ""):
            items = [{"metadata": {"name": GROUP}, "versions": [entry, {"version": "v7"}]}]
            handler.answer({"kind": "APIGroupDiscoveryList", "items": items}, 200, V2)
            return True
        return False

    registered.server.custom = answer
    registered.service()
    registered.slice()
    registered.api_service()
    kind = {"group": "", "version": "", "kind": ""}
    resource = {"resource": "new", "scope": "Cluster", "verbs": ["get"], "responseKind": kind}
    wanted = [{"version": VERSION, "resources": [resource], "freshness": "Current"}]
    tools.wait_until(lambda: aggregated(registered) == wanted, "its resources are known")


@pytest.mark.parametrize("mode", ["error", "lie"])
def test_a_server_that_says_nothing_sensible_is_stale(registered: Registered, mode: str) -> None:
    registered.server.mode = mode
    registered.service()
    registered.slice()
    registered.api_service()
    registered.wait_for("FailedDiscoveryCheck" if mode == "error" else "Passed")
    wanted = [{"version": VERSION, "freshness": "Stale"}]
    tools.wait_until(lambda: aggregated(registered) == wanted, "it is stale")
    assert registered.admin.get("/apis").status == 200


def test_one_that_dies_becomes_stale_and_one_that_is_removed_is_gone(available: Registered) -> None:
    admin = available.admin
    tools.wait_until(lambda: (aggregated(available) or [{}])[0].get("freshness") == "Current", "it is current")
    available.server.close()
    available.slice(ready=False)
    available.wait_for("MissingEndpoints")
    tools.wait_until(lambda: (aggregated(available) or [{}])[0].get("freshness") == "Stale", "it is stale")
    admin.delete(PATH)
    assert aggregated(available) == []
    assert admin.get(f"/apis/{GROUP}").status == 404
    assert admin.get(ROOT).status == 404


def test_kubectl_finds_and_lists_what_is_served_elsewhere(available: Registered, kubectl: str) -> None:
    available.server.put("hello")
    config = str(available.admin.server.kubeconfig)
    command = [kubectl, f"--kubeconfig={config}", f"--cache-dir={available.admin.server.folder}/{available.namespace}"]
    ran = subprocess.run([*command, "get", "flunders", "-o", "name"], capture_output=True, text=True, timeout=30)
    assert ran.stdout.split() == [f"flunder.{GROUP}/hello"], ran.stderr
    shown = subprocess.run([*command, "get", "apiservice", f"{VERSION}.{GROUP}"], capture_output=True, text=True)
    assert shown.stdout.splitlines()[1].split()[:3] == [f"{VERSION}.{GROUP}", f"{available.namespace}/ext", "True"]


def test_version_2_has_the_paths_of_the_group_and_what_they_need(available: Registered) -> None:
    admin = available.admin
    document = admin.get("/openapi/v2").json
    ours = document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    assert "finalizers" in ours["properties"]
    assert f"{ROOT}/namespaces/{{namespace}}/flunders" in document["paths"]
    assert "/healthz/" not in document["paths"]
    assert document["definitions"][DEFINITION]["description"] == "A flunder."
    assert "com.example.unused.Thing" not in document["definitions"]
    media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert DEFINITION.encode() in admin.get("/openapi/v2", Accept=media).body
    admin.delete(PATH)
    assert DEFINITION not in admin.get("/openapi/v2").json["definitions"]


def test_version_3_is_converted_for_a_server_that_does_not_speak_it(available: Registered) -> None:
    admin, path = available.admin, ROOT.strip("/")
    url = admin.get("/openapi/v3").json["paths"][path]["serverRelativeURL"]
    document = admin.get(url).json
    operation = document["paths"][f"{ROOT}/namespaces/{{namespace}}/flunders"]["get"]
    assert operation["x-kubernetes-group-version-kind"] == KIND
    schema = {"$ref": f"#/components/schemas/{DEFINITION}"}
    assert operation["responses"]["200"]["content"] == {"application/json": {"schema": schema}}
    assert document["components"]["schemas"][DEFINITION]["type"] == "object"


def test_version_3_of_a_server_that_speaks_it_is_passed_on(available: Registered) -> None:
    path = ROOT.strip("/")
    document = {"openapi": "3.0.0", "info": {"title": "own", "version": "1"}, "paths": {}}
    url = f"/openapi/v3/{path}?hash=ABC"
    available.server.openapi = {
        "/openapi/v3": {"paths": {path: {"serverRelativeURL": url}, "apis/apps/v1": {"serverRelativeURL": "/no"}}},
        f"/openapi/v3/{path}": document,
    }
    paths = available.admin.get("/openapi/v3").json["paths"]
    assert paths[path] == {"serverRelativeURL": url}
    assert paths["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")
    assert available.admin.get(url).json == document


@pytest.mark.parametrize("answer", [[], {"paths": 1}, {"definitions": []}, {"paths": {ROOT: {"get": 5}}}, "x"])
def test_nonsense_of_an_extension_server_does_not_spoil_our_documents(available: Registered, answer: Any) -> None:
    available.server.openapi = {"/openapi/v2": answer}
    assert "/api/v1/pods" in available.admin.get("/openapi/v2").json["paths"]
    assert "apis/apps/v1" in available.admin.get("/openapi/v3").json["paths"]


# -- the pure parts -------------------------------------------------------------------------------------------------


def test_a_subresource_without_its_resource_and_one_of_another_scope() -> None:
    alone = {"resources": [{"name": "a/scale", "namespaced": True, "kind": "Scale", "verbs": ["get"]}]}
    (found,) = discovery.from_resource_list(json.dumps(alone).encode(), "v1")["resources"]
    assert (found["resource"], found["scope"], found["subresources"][0]["subresource"]) == ("a", "Namespaced", "scale")
    mixed = {"resources": [{"name": "a", "namespaced": False}, {"name": "a/scale", "namespaced": True}]}
    with pytest.raises(ValueError, match="a is Cluster"):
        discovery.from_resource_list(json.dumps(mixed).encode(), "v1")


def test_names_of_definitions_that_are_taken_get_a_number() -> None:
    reference = {"$ref": "#/definitions/com.x.A"}
    document = {
        "paths": {f"{ROOT}/a": {"get": {"responses": {"200": {"schema": reference}}}}},
        "definitions": {"com.x.A": {"properties": {"next": reference}}, "com.x.B": {}},
    }
    part = openapi.cut(document, ROOT, {"com.x.A", "com.x.A_v2"})
    assert part["definitions"] == {"com.x.A_v3": {"properties": {"next": {"$ref": "#/definitions/com.x.A_v3"}}}}
    schema = part["paths"][f"{ROOT}/a"]["get"]["responses"]["200"]["schema"]
    assert schema == {"$ref": "#/definitions/com.x.A_v3"}


def test_bodies_and_shared_parameters_are_converted() -> None:
    document = {
        "parameters": {"p": {"name": "limit", "in": "query", "type": "integer"}},
        "paths": {
            "/apis/g/v/a": {
                "post": {
                    "consumes": ["application/json"],
                    "parameters": [{"in": "body", "name": "body", "schema": {"type": "object"}, "required": True}],
                    "responses": {"401": {"description": "no"}},
                },
                "parameters": [{"$ref": "#/parameters/p"}],
            }
        },
    }
    (item,) = to_v3(document, "/apis/g/v")["paths"].values()
    assert item["parameters"] == [{"name": "limit", "in": "query", "schema": {"type": "integer"}}]
    body = {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True}
    assert item["post"] == {"requestBody": body, "responses": {"401": {"description": "no"}}}


def test_versions_of_a_group_from_several_servers_are_ordered_by_their_priorities() -> None:
    from types import SimpleNamespace

    from pybernetes.api.resources import Group

    def at(group: str, version: str, above: int, priority: int) -> Any:
        return SimpleNamespace(group=group, version=version, priority=above, version_priority=priority)

    local = [Group("", priority=18000, version_priorities=(1,)), Group("custom.example.com", ("v2", "v1"))]
    remote = [
        at("z.example.com", "v1", 1000, 5),
        at("custom.example.com", "v3", 900, 500),
        at("a.example.com", "v1beta1", 1000, 10),
        at("a.example.com", "v1", 1000, 10),
    ]
    found = {group.name: group.versions for group in merged(local, remote)}
    assert list(found.items()) == [
        ("", ("v1",)),
        ("a.example.com", ("v1", "v1beta1")),
        ("custom.example.com", ("v3", "v2", "v1")),
        ("z.example.com", ("v1",)),
    ]
