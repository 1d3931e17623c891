"""Who may only read: every verb on every resource answers as the rules say, and tricks with paths do not help."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from apiserver.authz.conftest import User, grant, rule
from apiserver.client import Client

from pybernetes.api.resources import RESOURCES, Resource

AsUser = Callable[..., User]
READS = ("get", "list", "watch")


@pytest.fixture(scope="module")
def reader(admin: Client) -> User:
    name = f"reader-{secrets.token_hex(4)}"
    grant(admin, name, rule("get,list,watch", "*", "*"))
    return User(admin.server, name)


STREAMS = ("/pods/nothing/attach", "/pods/nothing/exec", "/pods/nothing/portforward")


def requests(resource: Resource) -> Iterator[tuple[str, str, str]]:
    """Each verb, with the method and path that ask for it."""
    base = resource.path + ("/namespaces/default" if resource.namespaced else "")
    collection, single = f"{base}/{resource.plural}", f"{base}/{resource.plural}/nothing"
    yield "get", "GET", single
    yield "list", "GET", collection
    yield "watch", "GET", f"{collection}?watch=1&timeoutSeconds=1&resourceVersion=1"
    yield "create", "POST", collection
    yield "update", "PUT", single
    yield "patch", "PATCH", single
    yield "delete", "DELETE", single
    yield "deletecollection", "DELETE", collection
    for subresource in resource.subresources:
        for verb, method in (("get", "GET"), ("create", "POST"), ("update", "PUT"), ("patch", "PATCH")):
            yield verb, method, f"{single}/{subresource.name}"


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each.group}/{each.version}/{each.plural}")
def test_every_verb_answers_as_the_rules_say(reader: User, resource: Resource) -> None:
    allowed_to_all = resource.group in ("authorization.k8s.io", "authentication.k8s.io") and "self" in resource.plural
    wrong = []
    for verb, method, path in requests(resource):
        if verb == "watch" and "watch" in resource.verbs:
            path = path.replace("resourceVersion=1", "resourceVersion=0")
        connection = reader.connect()
        connection.request(method, path, b"{}", reader._headers({}, {}))
        status = connection.getresponse().status
        connection.close()
        allowed = verb in READS or (allowed_to_all and verb == "create")
        if path.endswith(STREAMS):
            allowed = False  # a command is run: who comes by WebSocket, with GET, must be allowed to create, too
        if (status != 403) != allowed:
            wrong.append((verb, path, status))
    assert wrong == []


PLAIN = "/api/v1/namespaces/kube-system/secrets"
TRICKS = [
    "//api/v1/namespaces/kube-system/secrets",
    "/api//v1/namespaces/kube-system/secrets",
    "/api/v1//namespaces/kube-system/secrets",
    "/api/v1/namespaces//secrets",
    "/api/v1/namespaces/kube-system//secrets",
    "/api/v1/namespaces/kube-system/secrets/",
    "/api/v1/namespaces/kube-system/secrets//",
    "/api/v1/namespaces/kube-system/pods/../secrets",
    "/api/v1/namespaces/default/../kube-system/secrets",
    "/healthz/../api/v1/namespaces/kube-system/secrets",
    "/version/../api/v1/namespaces/kube-system/secrets",
    "/healthz/%2e%2e/api/v1/namespaces/kube-system/secrets",
    "/version/%2e%2e/api/v1/secrets",
    "/./api/v1/namespaces/kube-system/secrets",
    "/%2e/api/v1/namespaces/kube-system/secrets",
    "/api/v1/namespaces/kube-system/%73ecrets",
    "/api/v1/namespaces/kube-system%2fsecrets",
    "/api/v1/namespaces%2fkube-system%2fsecrets",
    "/api%2fv1%2fnamespaces/kube-system/secrets",
    "/%61pi/v1/namespaces/kube-system/secrets",
    "/api/v1/namespaces/kube-system/secrets%00",
    "/api/v1/namespaces/kube-system/secrets%00.json",
    "/healthz%00/../api/v1/secrets",
    "/API/v1/namespaces/kube-system/secrets",
    "/Api/V1/Namespaces/kube-system/Secrets",
    "/api/v1/namespaces/kube-system/Secrets",
    "/api/v1/namespaces/kube-system/secrets;x=y",
    "/api/v1/namespaces/kube-system/secrets%20",
    "/api/v1/namespaces/kube-system/secrets%0a",
    "/api/v1/namespaces/kube-system/secrets?watch=0",
    "/api/v1/watch/namespaces/kube-system/secrets",
    "/api/v1/proxy/namespaces/kube-system/secrets",
    "/api/v1/namespaces/kube-system/secrets/%2e",
    "/api/v1/namespaces/kube-system/secrets/%2e%2e",
    "/api/v1/namespaces/kube-system/secrets/..%2f..%2fdefault",
    "/apis//v1/namespaces/kube-system/secrets",
    "/apis/core/v1/namespaces/kube-system/secrets",
    "/api/v1/namespaces/kube-system/secrets#",
    "\\api\\v1\\secrets",
    "/healthz/etcd/../../api/v1/secrets",
    "/version?x=/api/v1/secrets",
    "/api/v1/namespaces/" + "a" * 100_000 + "/secrets",
    "/" + "a/" * 50_000,
]


@pytest.mark.parametrize("path", TRICKS, ids=[each[:60] for each in TRICKS])
def test_no_path_leads_where_the_plain_one_does_not(admin: Client, path: str) -> None:
    without_token = Client(admin.server, token="")
    assert without_token.get(PLAIN).status == 403
    connection = without_token.connect()
    connection.putrequest("GET", path, skip_host=False)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status in (400, 401, 403, 404, 431) or b"gitVersion" in body, (answer.status, body[:200])
    assert b"SecretList" not in body
