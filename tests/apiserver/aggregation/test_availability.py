"""The condition Available of APIServices, and what requests get while it does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from apiserver.aggregation.conftest import NAME, PATH, Registered
from apiserver.aggregation.extension import GROUP, ROOT, VERSION, Extension, own_address
from apiserver.client import Client

import tools
from pybernetes.cluster import components

LOCAL = {"type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available"}


def test_every_step_on_the_way_to_an_available_service_has_upstreams_words(registered: Registered) -> None:
    registered.api_service()
    shown = f'service/ext in "{registered.namespace}"'

    def expect(reason: str, message: str, status: str = "False") -> None:
        found = registered.wait_for(reason)
        assert (found["status"], found["message"]) == (status, message)
        assert found["type"] == "Available"
        assert found["lastTransitionTime"]

    expect("ServiceNotFound", f"{shown} is not present")
    answer = registered.admin.get(f"{ROOT}/namespaces/default/flunders")
    assert (answer.status, answer.body) == (503, b"service unavailable\n")
    registered.service(ports=[{"name": "https", "port": 8443}])
    expect("ServicePortError", f"{shown} is not listening on port 443")
    path = f"/api/v1/namespaces/{registered.namespace}/services/ext"
    registered.admin.patch(path, {"spec": {"ports": [{"name": "https", "port": 443}]}})
    expect("EndpointsNotFound", f"cannot find endpointslices for {shown}")
    registered.slice(ready=False)
    expect("MissingEndpoints", f'endpointslices for {shown} have no addresses with port name "https"')
    gauge = f'aggregator_unavailable_apiservice{{name="{NAME}"}}'
    assert f"{gauge} 1.0" in registered.admin.get("/metrics").body.decode()
    registered.slice()
    expect("Passed", "all checks passed", "True")
    assert f"{gauge} 0.0" in registered.admin.get("/metrics").body.decode()
    assert registered.admin.get(f"{ROOT}/namespaces/default/flunders").status == 200
    registered.admin.delete(path)
    expect("ServiceNotFound", f"{shown} is not present")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("error", "bad status from https://{host}{root}: 500"),
        ("garbage", 'Get "https://{host}{root}": net/http: HTTP/1.x transport connection broken'),
        ("untrusted", 'Get "https://{host}{root}": tls: failed to verify certificate: x509: '),
        ("closed", 'Get "https://{host}{root}": dial tcp {host}: connect: connection refused'),
    ],
)
def test_a_server_that_does_not_answer_discovery_is_not_available(
    registered: Registered, mode: str, words: str
) -> None:
    server = registered.server
    server.mode = mode
    registered.service()
    registered.slice()
    if mode == "untrusted":
        registered.api_service(caBundle=_other_bundle())
    elif mode == "closed":
        server.close()
        registered.api_service()
    else:
        registered.api_service()
    found = registered.wait_for("FailedDiscoveryCheck")
    host = f"{own_address()}:{server.port}"
    expected = f"failing or missing response from https://{host}{ROOT}: {words.format(host=host, root=ROOT)}"
    assert found["message"].startswith(expected), found


def _other_bundle() -> str:
    import base64

    from pybernetes import pki

    return base64.b64encode(pki.create_authority("other").certificate_pem).decode()


def test_one_that_recovers_is_available_again_soon(registered: Registered) -> None:
    registered.server.mode = "error"
    registered.service()
    registered.slice()
    registered.api_service()
    registered.wait_for("FailedDiscoveryCheck")
    registered.server.mode = ""
    registered.wait_for("Passed")
    assert registered.admin.get(f"{ROOT}/namespaces/default/flunders").status == 200


def test_a_server_that_hangs_is_given_up_after_five_seconds(registered: Registered) -> None:
    registered.server.mode = "hang"
    registered.service()
    registered.slice()
    registered.api_service()
    found = registered.wait_for("FailedDiscoveryCheck")
    assert found["message"].endswith("context deadline exceeded")


def test_one_endpoint_that_answers_is_enough(registered: Registered) -> None:
    registered.service()
    registered.slice()
    assert registered.slice(name="ext-2", address="198.51.100.7").status == 201  # an address without a server
    registered.api_service()
    registered.wait_for("Passed")


def test_insecure_skip_tls_verify_accepts_an_untrusted_certificate(registered: Registered) -> None:
    registered.service()
    registered.slice()
    registered.api_service(caBundle=None, insecureSkipTLSVerify=True)
    registered.wait_for("Passed")


def test_a_server_that_came_back_elsewhere_is_found(available: Registered, tmp_path: Path) -> None:
    """Its pod died and another took its place, with the same certificate authority but another port."""
    admin = available.admin
    proxies = admin.server.folder / "pki" / "front-proxy-ca.crt"
    available.server.close()
    available.server = Extension(own_address(), [f"ext.{available.namespace}.svc"], tmp_path / "new", proxies)
    available.server.put("new")
    admin.patch(PATH, {"spec": {"caBundle": available.server.bundle}})
    available.slice()

    def found() -> bool:
        answer = admin.get(f"{ROOT}/namespaces/default/flunders")
        return answer.status == 200 and len(answer.json["items"]) == 1

    tools.wait_until(found, "the new server answers")
    available.server.close()


def test_a_group_that_is_given_back_is_served_here_again(available: Registered) -> None:
    admin = available.admin
    body = {"op": "remove", "path": "/spec/service"}
    bundle = {"op": "remove", "path": "/spec/caBundle"}
    assert admin.patch(PATH, [body, bundle], "json").status == 200
    assert available.wait_for("Local")["message"] == LOCAL["message"]
    assert admin.get(f"{ROOT}/namespaces/default/flunders").status == 404


# -- those of what is served here -----------------------------------------------------------------------------------


def test_the_groups_that_are_served_here_have_apiservices_of_their_own(admin: Client) -> None:
    found = {
        each["metadata"]["name"]: each
        for each in admin.get("/apis/apiregistration.k8s.io/v1/apiservices").json["items"]
    }
    groups = admin.get("/apis").json["groups"]
    local = {f"{version['version']}.{group['name']}" for group in groups for version in group["versions"]}
    assert found.keys() - {NAME} == (local | {"v1."}) - {"v1.apiregistration.k8s.io", NAME}
    core, apps = found["v1."], found["v1.apps"]
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert apps["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
    assert apps["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    assert {key: apps["status"]["conditions"][0][key] for key in LOCAL} == LOCAL


def test_the_apiservices_of_custom_resources_come_and_go_with_them(admin: Client) -> None:
    path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.shirts.example.com"
    definition = {
        "metadata": {"name": "shirts.shirts.example.com"},
        "spec": {
            "group": "shirts.example.com",
            "names": {"plural": "shirts", "kind": "Shirt"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert admin.post(definitions, definition).status == 201
    found = tools.wait_until(lambda: (answer := admin.get(path)).status == 200 and answer.json, "it is registered")
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert found["spec"] == {
        "group": "shirts.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    }
    assert admin.patch(path, {"spec": {"versionPriority": 7}}).status == 200
    restored = lambda: admin.get(path).json["spec"]["versionPriority"] == 100  # noqa: E731
    tools.wait_until(restored, "what is managed is put right")
    admin.delete(path)
    tools.wait_until(lambda: admin.get(path).status == 200, "it is made again")
    admin.delete(f"{definitions}/shirts.shirts.example.com")
    tools.wait_until(lambda: admin.get(path).status == 404, "it is gone")


def test_a_custom_resource_and_an_extension_server_may_share_a_group(available: Registered) -> None:
    """The definition has another version of it; where both have the same, the APIService of the user wins."""
    admin = available.admin
    version = {"served": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    definition = {
        "metadata": {"name": f"flunders.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": "flunders", "kind": "Flunder"},
            "scope": "Namespaced",
            "versions": [{"name": VERSION, "storage": False, **version}, {"name": "v1", "storage": True, **version}],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert admin.post(definitions, definition).status == 201
    tools.wait_until(lambda: admin.get(f"/apis/{GROUP}/v1/flunders").status == 200, "it is served")
    available.server.put("remote")
    assert [each["metadata"]["name"] for each in admin.get(f"{ROOT}/flunders").json["items"]] == ["remote"]
    assert admin.get(f"/apis/{GROUP}/v1/flunders").json["items"] == []
    assert admin.get(PATH).json["spec"]["service"]["name"] == "ext"
    versions = admin.get(f"/apis/{GROUP}").json["versions"]
    assert [each["version"] for each in versions] == ["v1", VERSION]
    admin.delete(f"{definitions}/flunders.{GROUP}")
    tools.wait_until(lambda: admin.get(f"/apis/{GROUP}/v1/flunders").status == 404, "it is gone")


def test_after_a_restart_all_is_as_it_was(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/store.db"
    flags = components.front_proxy(tmp_path / "pki")
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    with tools.api_server(tmp_path, *flags, store=store) as server:
        admin = Client(server)
        assert admin.patch(f"{services}/v1.batch", {"spec": {"versionPriority": 3}}).status == 200
        assert admin.delete(f"{services}/v1.policy").status == 200
        before = {each["metadata"]["name"]: each["metadata"]["uid"] for each in admin.get(services).json["items"]}
    with tools.api_server(tmp_path, *flags, store=store) as server:
        admin = Client(server)
        after = {each["metadata"]["name"]: each["metadata"]["uid"] for each in admin.get(services).json["items"]}
        assert before.items() <= after.items()
        assert after.keys() - before.keys() == {"v1.policy"}
        assert admin.get(f"{services}/v1.batch").json["spec"]["versionPriority"] == 15
