"""Initializers, the old alpha feature: they change new objects before other clients see them."""

from __future__ import annotations

import base64
import secrets
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from apiserver.client import Answer, Client
from apiserver.initializers.running import initializer

import tools

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    flags = (
        "--enable-admission-plugins=Initializers",
        "--runtime-config=admissionregistration.k8s.io/v1alpha1=true",
        "--authorization-mode=RBAC",
    )
    with tools.api_server(tmp_path_factory.mktemp("initializers"), *flags) as server:
        yield Client(server)


@pytest.fixture
def place(admin: Client) -> str:
    return admin.namespace()


class Configure:
    def __init__(self, admin: Client) -> None:
        self._admin = admin
        self.made: list[str] = []

    def __call__(
        self, name: str, *initializers: str, resources: tuple[str, ...] = ("configmaps",), **rule: Any
    ) -> Answer:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": list(resources), **rule}]
        body = {"metadata": {"name": name}, "initializers": [{"name": each, "rules": rules} for each in initializers]}
        answer = self._admin.post(CONFIGURATIONS, body)
        self.made.append(name)
        return answer


@pytest.fixture
def configure(admin: Client) -> Iterator[Configure]:
    configure = Configure(admin)
    yield configure
    for name in configure.made:
        admin.delete(f"{CONFIGURATIONS}/{name}")


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def names(answer: Answer) -> list[str]:
    return [each["metadata"]["name"] for each in answer.json["items"]]


def remove_first(admin: Client, path: str) -> Answer:
    return admin.patch(path, [{"op": "remove", "path": "/metadata/initializers/pending/0"}], "json")


# -- three initializers at work -------------------------------------------------------------------------------------


def sidecar(pod: dict[str, Any]) -> str:
    pod["spec"]["containers"].append({"name": "proxy", "image": "envoy"})
    return ""


def certificates(namespace: str) -> Any:
    def change(pod: dict[str, Any]) -> str:
        if pod["metadata"]["namespace"] == namespace:
            pod["spec"].setdefault("volumes", []).append({"name": "tls", "secret": {"secretName": "tls"}})
            for container in pod["spec"]["containers"]:
                mounts = container.setdefault("volumeMounts", [])
                mounts.append({"name": "tls", "mountPath": "/etc/tls", "readOnly": True})
        return ""

    return change


def long_passwords(secret: dict[str, Any]) -> str:
    password = base64.b64decode((secret.get("data") or {}).get("password", ""))
    return "the password has fewer than 20 characters" if 0 < len(password) < 20 else ""


def test_a_sidecar_and_a_certificate_are_put_into_pods_before_clients_see_them(
    admin: Client, place: str, configure: Configure
) -> None:
    configure("b-certificates", "certificates.example.com", resources=("pods",))
    configure("a-sidecar", "sidecar.example.com", resources=("pods",))
    pods = f"{NAMESPACES}/{place}/pods"
    body = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    with (
        initializer(admin, "sidecar.example.com", "/api/v1/pods", sidecar),
        initializer(admin, "certificates.example.com", "/api/v1/pods", certificates(place)),
        admin.watch(f"{pods}?watch=true") as watching,
    ):
        made = admin.post(f"{pods}?timeout=25s", body)
        assert made.status == 201, made.body
        (event,) = watching.take(1)
    for pod in (made.json, event["object"], admin.get(f"{pods}/web").json):
        assert "initializers" not in pod["metadata"]
        assert [each["name"] for each in pod["spec"]["containers"]] == ["web", "proxy"]
        # the sidecar has it too: the one who mounts came second
        assert [each["volumeMounts"][0]["mountPath"] for each in pod["spec"]["containers"]] == ["/etc/tls"] * 2
    assert event["type"] == "ADDED"
    refused = admin.patch(f"{pods}/web", {"spec": {"containers": []}})
    assert refused.status == 422  # from now on it is a pod as all others


def test_a_secret_with_a_short_password_is_refused(admin: Client, place: str, configure: Configure) -> None:
    configure("passwords", "passwords.example.com", resources=("secrets",))
    path = f"{NAMESPACES}/{place}/secrets"
    with initializer(admin, "passwords.example.com", "/api/v1/secrets", long_passwords):
        refused = admin.post(
            f"{path}?timeout=25s", {"metadata": {"name": "weak"}, "stringData": {"password": "123456"}}
        )
        strong = {"metadata": {"name": "strong"}, "stringData": {"password": "correct horse battery"}}
        assert admin.post(f"{path}?timeout=25s", strong).status == 201
    assert (refused.status, refused.message) == (403, "the password has fewer than 20 characters")
    assert names(admin.get(f"{path}?includeUninitialized=true")) == ["strong"]


# -- hidden ---------------------------------------------------------------------------------------------------------


def test_what_is_not_initialized_is_hidden_unless_asked_for(admin: Client, place: str, configure: Configure) -> None:
    assert configure("hide", "one.example.com", "two.example.com").status == 201
    path = f"{NAMESPACES}/{place}/configmaps"
    made = admin.post(f"{path}?includeUninitialized=true", config_map("a"))
    pending = [{"name": "one.example.com"}, {"name": "two.example.com"}]
    assert (made.status, made.json["metadata"]["initializers"]) == (201, {"pending": pending})
    version = made.json["metadata"]["resourceVersion"]
    assert admin.get(f"{path}/a").status == 404
    assert admin.get(f"{path}/a").message == 'configmaps "a" not found'
    assert names(admin.get(path)) == []
    assert "a" not in names(admin.get("/api/v1/configmaps?labelSelector=!x"))
    assert admin.get(f"{path}/a?includeUninitialized=true").status == 200
    assert names(admin.get(f"{path}?includeUninitialized=true")) == ["a"]
    with (
        admin.watch(f"{path}?watch=true&resourceVersion={version}") as all_see,
        admin.watch(f"{path}?watch=true&resourceVersion={version}&includeUninitialized=true") as some_see,
    ):
        for _ in range(2):
            assert remove_first(admin, f"{path}/a").status == 200
        assert [each["type"] for each in some_see.take(2)] == ["MODIFIED", "MODIFIED"]
        (event,) = all_see.take(1)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        assert "initializers" not in event["object"]["metadata"]
        admin.patch(f"{path}/a", {"data": {"x": "y"}})
        assert all_see.take(1)[0]["type"] == "MODIFIED"
    assert names(admin.get(path)) == ["a"]


def test_pages_pass_over_what_is_hidden(admin: Client, place: str, configure: Configure) -> None:
    path = f"{NAMESPACES}/{place}/configmaps"
    for name in ("a", "d"):
        assert admin.post(path, config_map(name)).status == 201
    configure("hide-pages", "one.example.com")
    for name in ("b", "c"):
        admin.post(f"{path}?includeUninitialized=true", config_map(name))
    first = admin.get(f"{path}?limit=1").json
    rest = admin.get(f"{path}?limit=5&continue={first['metadata']['continue']}")
    assert [each["metadata"]["name"] for each in first["items"]] + names(rest) == ["a", "d"]


# -- who may --------------------------------------------------------------------------------------------------------


@pytest.fixture
def user(admin: Client, place: str) -> str:
    """A user who may do everything with ConfigMaps but initialize them."""
    name = f"u-{secrets.token_hex(4)}"
    grant(admin, place, name, "create", "get", "list", "watch", "update", "patch", "delete")
    return name


def grant(admin: Client, place: str, user: str, *verbs: str) -> None:
    role = f"{user}-{secrets.token_hex(3)}"
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}]
    assert admin.post(f"{root}/roles", {"metadata": {"name": role}, "rules": rules}).status == 201
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
        "roleRef": {"kind": "Role", "name": role, "apiGroup": group},
    }
    assert admin.post(f"{root}/rolebindings", binding).status == 201


def test_only_who_may_initialize_changes_what_is_not_initialized(
    admin: Client, place: str, configure: Configure, user: str
) -> None:
    configure("who", "one.example.com", "two.example.com")
    path = f"{NAMESPACES}/{place}/configmaps"
    admin.post(f"{path}?includeUninitialized=true", config_map("a"))
    change = {"data": {"x": "y"}}
    headers = {"Content_Type": "application/merge-patch+json", "Impersonate_User": user}
    refused = admin("PATCH", f"{path}/a", change, **headers)
    assert refused.status == 403
    assert "update to uninitialized resource denied" in refused.message
    grant(admin, place, user, "initialize")
    allowed = admin("PATCH", f"{path}/a", change, **headers)
    assert (allowed.status, allowed.json["data"]) == (200, {"x": "y"})


@pytest.mark.parametrize(
    ("pending", "words"),
    [
        (["one.example.com"], "only the first pending initializer may be removed"),
        (["two.example.com", "one.example.com"], "only the first pending initializer may be removed"),
        ([], "only the first pending initializer may be removed"),
        (["one.example.com", "two.example.com", "x.example.com"], "only the first pending initializer may be removed"),
    ],
)
def test_only_the_first_name_may_be_removed(
    admin: Client, place: str, configure: Configure, pending: list[str], words: str
) -> None:
    configure("first", "one.example.com", "two.example.com")
    path = f"{NAMESPACES}/{place}/configmaps"
    obj = admin.post(f"{path}?includeUninitialized=true", config_map("a")).json
    obj["metadata"]["initializers"]["pending"] = [{"name": each} for each in pending]
    answer = admin.put(f"{path}/a", obj)
    assert answer.status == 422
    assert "metadata.initializers.pending: Invalid value" in answer.message
    assert words in answer.message


def test_what_is_initialized_stays_so(admin: Client, place: str, configure: Configure) -> None:
    path = f"{NAMESPACES}/{place}/configmaps"
    admin.post(path, config_map("a"))
    answer = admin.patch(f"{path}/a", {"metadata": {"initializers": {"pending": [{"name": "x.example.com"}]}}})
    assert answer.status == 422
    assert "field is immutable once initialization has completed" in answer.message
    assert admin.patch(f"{path}/a", {"metadata": {"initializers": {"pending": []}}}).status == 200


def test_who_may_initialize_may_bypass_it(admin: Client, place: str, configure: Configure, user: str) -> None:
    configure("bypass", "one.example.com")
    path = f"{NAMESPACES}/{place}/configmaps"
    body = {"metadata": {"name": "a", "initializers": {"pending": []}}}
    refused = admin.post(path, body, Impersonate_User=user)
    assert (refused.status, "create with initializers denied" in refused.message) == (403, True)
    made = admin.post(path, body)
    assert (made.status, "initializers" in made.json["metadata"]) == (201, False)
    assert names(admin.get(path)) == ["a"]
    own = {"metadata": {"name": "b", "initializers": {"pending": [{"name": "bad"}]}}}
    assert "at least three segments" in admin.post(path, own).message


# -- the end --------------------------------------------------------------------------------------------------------


def test_a_create_waits_as_long_as_its_client_and_the_object_stays(
    admin: Client, place: str, configure: Configure, user: str
) -> None:
    configure("slow", "nobody.example.com")
    path = f"{NAMESPACES}/{place}/configmaps"
    answer = admin.post(f"{path}?timeout=300ms", config_map("a"))
    assert answer.status == 504
    words = "server has timed out waiting for the initialization of configmaps a"
    assert words in answer.message
    assert admin.get(f"{path}/a?includeUninitialized=true").status == 200
    assert admin.delete(f"{path}/a", Impersonate_User=user).status == 200
    assert admin.get(f"{path}/a?includeUninitialized=true").status == 404
    admin.post(f"{path}?includeUninitialized=true", config_map("b"))
    assert admin.delete(path).status == 200
    assert "b" not in names(admin.get(f"{path}?includeUninitialized=true"))


def test_a_create_whose_object_is_deleted_meanwhile_fails(admin: Client, place: str, configure: Configure) -> None:
    configure("deleted", "nobody.example.com")
    path = f"{NAMESPACES}/{place}/configmaps"
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(admin.post(f"{path}?timeout=25s", config_map("a"))))
    thread.start()
    hidden = f"{path}/a?includeUninitialized=true"
    tools.wait_until(lambda: admin.get(hidden).status == 200, "it is there")
    admin.delete(f"{path}/a")
    thread.join(30)
    assert answers[0].status == 500
    assert "object deleted while waiting for creation" in answers[0].message


@pytest.mark.parametrize("status", ["Success", ""])
def test_a_result_is_a_failure(admin: Client, place: str, configure: Configure, status: str) -> None:
    configure("result", "one.example.com")
    path = f"{NAMESPACES}/{place}/configmaps"
    obj = admin.post(f"{path}?includeUninitialized=true", config_map("a")).json
    obj["metadata"]["initializers"]["result"] = {"status": status, "message": "x"}
    answer = admin.put(f"{path}/a", obj)
    assert (answer.status, "must be 'Failure'" in answer.message) == (422, True)


# -- configurations -------------------------------------------------------------------------------------------------


def test_configurations_are_put_in_by_name_and_each_name_once(admin: Client, place: str, configure: Configure) -> None:
    configure("z", "three.example.com", "one.example.com")
    configure("m", "two.example.com", "one.example.com")
    configure("a", "never.example.com", resources=("pods",))
    configure("b", "other.example.com", apiGroups=["apps"])
    made = admin.post(f"{NAMESPACES}/{place}/configmaps?includeUninitialized=true", config_map("a"))
    found = [each["name"] for each in made.json["metadata"]["initializers"]["pending"]]
    assert found == ["two.example.com", "one.example.com", "three.example.com"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([{"name": "short"}], 'initializers[0].name: Invalid value: "short": should be a domain with at least three'),
        ([{"name": "a.b.c"}, {"name": "a.b.c"}], 'initializers[1].name: Duplicate value: "a.b.c"'),
        ([{"name": "a.b.c", "rules": [{}]}], "initializers[0].rules[0].apiGroups: Required value"),
        (
            [{"name": "a.b.c", "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/status"]}]}],
            "must not specify subresources",
        ),
        (
            [{"name": "a.b.c", "rules": [{"apiGroups": ["", "*"], "apiVersions": ["v1"], "resources": ["pods"]}]}],
            "if '*' is present, must not specify other API groups",
        ),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(admin: Client, body: Any, words: str) -> None:
    answer = admin.post(CONFIGURATIONS, {"metadata": {"name": "bad"}, "initializers": body})
    assert answer.status == 422
    assert words in answer.message


def test_a_custom_resource_is_initialized_too(admin: Client, place: str, configure: Configure) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "metadata": {"name": "shoes.init.example.com"},
        "spec": {
            "group": "init.example.com",
            "names": {"plural": "shoes", "kind": "Shoe"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    assert admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).status == 201
    path = f"/apis/init.example.com/v1/namespaces/{place}/shoes"
    tools.wait_until(lambda: admin.get(path).status == 200, "it is served")
    configure("shoes", "shoes.example.com", resources=("shoes",), apiGroups=["init.example.com"])
    body = {"kind": "Shoe", "apiVersion": "init.example.com/v1", "metadata": {"name": "a"}}
    made = admin.post(f"{path}?includeUninitialized=true", {**body, "spec": {"initializers": {"x": 1}}})
    assert made.status == 201, made.body
    assert admin.get(f"{path}/a").status == 404
    assert remove_first(admin, f"{path}/a").status == 200
    assert admin.get(f"{path}/a").json["spec"] == {"initializers": {"x": 1}}
    assert names(admin.get(path)) == ["a"]


def test_the_group_is_in_discovery_and_kubectl_knows_it(admin: Client, kubectl: str) -> None:
    versions = admin.get("/apis/admissionregistration.k8s.io").json["versions"]
    assert [each["version"] for each in versions] == ["v1", "v1alpha1"]
    command = [kubectl, f"--kubeconfig={admin.server.kubeconfig}", "get", "initializerconfigurations"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr


# -- without it -----------------------------------------------------------------------------------------------------


def test_a_default_server_knows_nothing_of_it(client: Client, namespace: str) -> None:
    assert client.get(CONFIGURATIONS).status == 404
    versions = client.get("/apis/admissionregistration.k8s.io").json["versions"]
    assert [each["version"] for each in versions] == ["v1"]
    body = {"metadata": {"name": "a", "initializers": {"pending": [{"name": "x.example.com"}]}}}
    made = client.post(f"{NAMESPACES}/{namespace}/configmaps", body)
    assert made.status == 201
    assert made.warnings == ['299 - "unknown field \\"metadata.initializers\\""']
    assert "initializers" not in made.json["metadata"]


def test_the_plugin_needs_its_api() -> None:
    command = [*tools.PYTHON, "apiserver", "--etcd-servers=memory://", "--enable-admission-plugins=Initializers"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ran.returncode != 0
    assert "needs --runtime-config=admissionregistration.k8s.io/v1alpha1=true" in ran.stderr
