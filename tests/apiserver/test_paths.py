"""Identity, health, versions, metrics, discovery."""

from __future__ import annotations

import ssl
import urllib.request

import pytest
from apiserver.client import Client

from pybernetes.apiserver.health import Health
from pybernetes.apiserver.requestinfo import request_info
from pybernetes.net.http import Request
from tools import ApiServer


def test_who_is_not_known_gets_401_and_no_reason(cluster: ApiServer) -> None:
    for token in ("", "wrong"):
        answer = Client(cluster, token).get("/api/v1/namespaces")
        assert answer.status == 401
        assert answer.json["reason"] == answer.json["message"] == "Unauthorized"


def test_health_and_version_are_public(cluster: ApiServer) -> None:
    without_token = Client(cluster, "")
    for path in ("/healthz", "/livez", "/readyz"):
        assert without_token.get(path).body == b"ok"
    assert without_token.get("/version").json["gitVersion"].startswith("v1.36.")
    assert without_token.get("/metrics").status == 401


def test_a_client_certificate_is_its_common_name_and_organizations(cluster: ApiServer) -> None:
    import base64
    import json

    import yaml

    config = yaml.safe_load(cluster.kubeconfig.read_text())
    user = config["users"][0]["user"]
    files = {}
    for part in ("certificate", "key"):
        path = cluster.folder / f"client-{part}.pem"
        path.write_bytes(base64.b64decode(user[f"client-{part}-data"]))
        files[part] = path
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    context.load_cert_chain(files["certificate"], files["key"])
    request = urllib.request.Request(
        f"{cluster.url}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        data=b"{}",
        headers={"Content-Type": "application/json"},
    )
    review = json.loads(urllib.request.urlopen(request, context=context).read())
    assert review["status"]["userInfo"]["username"] == "kubernetes-admin"
    assert "system:masters" in review["status"]["userInfo"]["groups"]


def test_health_in_detail(client: Client) -> None:
    verbose = client.get("/readyz?verbose").body.decode()
    assert "[+]ping ok\n" in verbose
    assert "[+]etcd ok\n" in verbose
    assert verbose.endswith("readyz check passed\n")
    assert client.get("/livez/ping").body == b"ok"
    assert client.get("/readyz/nope").status == 404
    excluded = client.get("/readyz?verbose&exclude=etcd").body.decode()
    assert "[+]etcd excluded: ok" in excluded


async def test_why_a_check_failed_is_in_the_log_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise OSError("the disk is on fire")

    health = Health()
    health.add("disk", broken)
    request = Request(None, "GET", "/livez", "verbose", {}, b"")
    request.info = request_info("GET", "/livez", "verbose")
    with caplog.at_level("INFO"):
        answer = await health(request)
    assert (answer.status, b"[-]disk failed: reason withheld\n" in answer.body) == (500, True)
    assert b"fire" not in answer.body
    assert "health check disk failed: the disk is on fire" in caplog.text


async def test_a_check_with_several_names_is_made_once_for_all_of_them() -> None:
    asked: list[bool] = []

    async def check() -> None:
        asked.append(True)

    health = Health()
    health.add("one", check)
    health.add("two", check)
    request = Request(None, "GET", "/livez", "verbose", {}, b"")
    request.info = request_info("GET", "/livez", "verbose")
    assert (await health(request)).body == b"[+]one ok\n[+]two ok\nlivez check passed\n"
    assert asked == [True]


@pytest.mark.parametrize("path", ["healthz", "livez", "readyz"])
def test_the_steps_of_the_start_have_the_names_that_monitoring_asks_for(client: Client, path: str) -> None:
    verbose = client.get(f"/{path}?verbose=1").body.decode().splitlines()
    for name in ("log", "autoregister-completion", "poststarthook/crd-informer-synced"):
        assert f"[+]{name} ok" in verbose
    assert client.get(f"/{path}/poststarthook/scheduling/bootstrap-system-priority-classes").body == b"ok"


def test_metrics_count_requests(client: Client, namespace: str) -> None:
    def count() -> float:
        for line in client.get("/metrics").body.decode().splitlines():
            if (
                line.startswith("apiserver_request_total{")
                and 'resource="limitranges"' in line
                and 'verb="LIST"' in line
            ):
                assert 'code="200"' in line
                return float(line.split()[-1])
        return 0.0

    before = count()
    for _ in range(3):
        client.get(f"/api/v1/namespaces/{namespace}/limitranges")
    assert count() == before + 3
    text = client.get("/metrics").body.decode()
    assert "apiserver_request_duration_seconds_bucket" in text
    assert "process_resident_memory_bytes" in text


def test_what_a_built_in_group_does_not_serve_is_404_with_a_status(client: Client) -> None:
    for path in ("/api/v1/nopes", "/api/v2/pods", "/apis/apps/v1/pods", "/apis/apps/v9", "/version/x"):
        answer = client.get(path)
        assert (answer.status, answer.json["kind"]) == (404, "Status"), path
        assert answer.message == "the server could not find the requested resource"


def test_unknown_paths_are_404_in_plain_text(client: Client) -> None:
    for path in ("/nope", "/apis/nope", "/apis/nope/v1/things", "/healthz/nope", "/openapi/v4", "/metrics/x"):
        answer = client.get(path)
        assert (answer.status, answer.body) == (404, b"404 page not found\n"), path
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_a_resource_cannot_do_is_405(client: Client) -> None:
    for method, path in (("PUT", "/api/v1/pods"), ("POST", "/version"), ("DELETE", "/api/v1/componentstatuses/x")):
        answer = client(method, path, {})
        assert (answer.status, answer.json["reason"]) == (405, "MethodNotAllowed"), path


def test_discovery_documents(client: Client) -> None:
    assert client.get("/api").json["versions"] == ["v1"]
    groups = {group["name"]: group for group in client.get("/apis").json["groups"]}
    assert {"apps", "batch", "rbac.authorization.k8s.io", "resource.k8s.io"} <= set(groups)
    assert groups["autoscaling"]["preferredVersion"]["version"] == "v2"
    assert client.get("/apis/apps").json["kind"] == "APIGroup"
    core = {each["name"]: each for each in client.get("/api/v1").json["resources"]}
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods"]["categories"] == ["all"]
    assert core["pods/eviction"]["group"] == "policy"
    assert "watch" in core["pods"]["verbs"]
    assert core["nodes"]["namespaced"] is False


def test_aggregated_discovery_has_an_etag(client: Client) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    answer = client.get("/apis", Accept=accept)
    assert answer.json["kind"] == "APIGroupDiscoveryList"
    assert answer.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    apps = next(item for item in answer.json["items"] if item["metadata"]["name"] == "apps")
    deployments = next(each for each in apps["versions"][0]["resources"] if each["resource"] == "deployments")
    assert {each["subresource"] for each in deployments["subresources"]} == {"scale", "status"}
    same = client.get("/apis", Accept=accept, If_None_Match=answer.headers["ETag"])
    assert (same.status, same.body) == (304, b"")
    plain = client.get("/apis", Accept="application/json")
    assert plain.json["kind"] == "APIGroupList"


def test_every_listed_resource_answers_a_list(client: Client) -> None:
    documents = ["/api/v1"]
    for group in client.get("/apis").json["groups"]:
        documents += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    kinds = 0
    for document in documents:
        for resource in client.get(document).json["resources"]:
            if "/" in resource["name"] or "list" not in resource["verbs"]:
                continue
            found = client.get(f"{document}/{resource['name']}")
            assert found.status == 200, (document, resource["name"], found.body)
            assert found.json["kind"] == f"{resource['kind']}List"
            kinds += 1
    assert kinds > 55


@pytest.mark.parametrize("verb", ["get", "delete"])
def test_access_reviews_answer(client: Client, verb: str) -> None:
    spec = {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}}
    review = client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec})
    assert (review.status, review.json["status"]["allowed"]) == (201, True)
    empty = client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}})
    assert empty.status == 422


def test_token_reviews_tell_whose_token_it_is(client: Client) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    known = client.post(path, {"spec": {"token": client.token}}).json
    assert known["status"]["user"]["username"] == "kubernetes-admin"
    assert not client.post(path, {"spec": {"token": "wrong"}}).json["status"].get("authenticated")


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default/status/x", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/a/b/c"]
)
def test_nothing_is_below_a_subresource(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status, answer.message) == (404, "the server could not find the requested resource")


def test_the_address_is_the_servers_own_and_not_what_a_client_calls_it(client: Client) -> None:
    def told(**headers: str) -> str:
        [answer] = client("GET", "/api", **headers).json["serverAddressByClientCIDRs"]
        assert answer["clientCIDR"] == "0.0.0.0/0"
        return str(answer["serverAddress"])

    assert told(Host="elsewhere.example.com:1") == told()
    assert "elsewhere" not in told()
