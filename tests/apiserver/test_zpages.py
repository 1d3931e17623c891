"""What a server tells about itself: the index, its flags, its state, how its health checks went, how much it logs."""

from __future__ import annotations

import pytest
from apiserver.client import Client

from pybernetes.apiserver import options

KIND = "as={kind};v={version};g=config.k8s.io"


def test_the_index_tells_of_everything(client: Client) -> None:
    paths = client.get("/").json["paths"]
    assert paths == sorted(paths)
    for path in (
        *("/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/flagz"),
        *("/healthz/etcd", "/livez/poststarthook/rbac/bootstrap-roles", "/metrics/slis", "/openapi/v2", "/openapi/v3"),
        *("/openid/v1/jwks", "/readyz/etcd-readiness", "/readyz/shutdown", "/statusz", "/version"),
    ):
        assert path in paths
    assert "/" not in paths
    assert not [path for path in paths if path.startswith("/debug")]
    for path in paths:
        if path != "/openapi/v3/":  # the folder of the documents, which is listed and has no page, as upstream's
            assert client.get(path).status == 200, path


def test_flags_as_text(client: Client) -> None:
    answer = client.get("/flagz")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    lines = answer.body.decode().splitlines()
    assert lines[:2] == ["", "apiserver flagz"]
    assert lines[2].startswith("Warning: ")
    names = [line.replace("=", ":").partition(":")[0].partition(" ")[0] for line in lines[3:]]
    assert names == sorted(names)
    assert {"event-ttl", "secure-port", "v"} <= set(names)


def test_flags_have_the_forms_that_go_gives_them(client: Client) -> None:
    accept = f"application/json;{KIND.format(kind='Flagz', version='v1beta1')}"
    answer = client.get("/flagz", Accept=accept)
    assert answer.headers["Content-Type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    flagz = answer.json
    assert (flagz["kind"], flagz["apiVersion"]) == ("Flagz", "config.k8s.io/v1beta1")
    assert flagz["metadata"] == {"name": "apiserver"}
    flags = flagz["flags"]
    assert flags["event-ttl"] == "1h0m0s"
    assert flags["allow-privileged"] == "true"
    assert flags["service-node-port-range"] == "30000-32767"
    assert flags["disable-admission-plugins"] == "[ServiceAccount]"
    assert flags["enable-admission-plugins"] == "[]"
    assert flags["audit-log-batch-throttle-qps"] == "0"
    assert flags["audit-policy-file"] == ""


def test_every_flag_is_listed() -> None:
    given = ["--etcd-servers=memory://", "--runtime-config=api/all=false,apps/v1=true", "--service-account-issuer=a"]
    values = options.flag_values(options.parse(given))
    assert values["runtime-config"] == "api/all=false,apps/v1=true"
    assert values["service-account-issuer"] == "[a]"
    assert values["authorization-mode"] == "[AlwaysAllow]"
    assert "help" not in values


@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_state_as_an_object(client: Client, media: str, version: str) -> None:
    answer = client.get("/statusz", Accept=f"{media};{KIND.format(kind='Statusz', version=version)}")
    assert answer.headers["Content-Type"] == f"{media};g=config.k8s.io;v={version};as=Statusz"
    old = "This version of the statusz endpoint is deprecated. Please use a newer version."
    assert answer.warnings == ([f'299 - "{old}"'] if version == "v1alpha1" else [])
    if media == "application/json":
        statusz = answer.json
        assert statusz["binaryVersion"].startswith("1.36.")
        assert statusz["emulationVersion"] == "1.36"
        assert statusz["uptimeSeconds"] >= 0
        folders = ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"]
        assert statusz["paths"] == folders


def test_state_as_text(client: Client) -> None:
    text = client.get("/statusz").body.decode()
    assert text.startswith("\napiserver statusz\nWarning: ")
    for name in ("Started", "Up", "Go version", "Binary version", "Emulation version", "Paths"):
        assert f"\n{name}" in text


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("text/*", 200),
        ("application/json,text/plain", 200),
        ("application/json", 406),
        ("application/*", 406),
        ("text/html", 406),
        (f"text/plain;{KIND.format(kind='Flagz', version='v1beta1')}", 406),
        (f"application/json;{KIND.format(kind='Flagz', version='v1')}", 406),
        (f"application/json;{KIND.format(kind='Statusz', version='v1beta1')}", 406),
    ],
)
def test_who_wants_something_else_is_refused(client: Client, accept: str, status: int) -> None:
    answer = client.get("/flagz", Accept=accept)
    assert answer.status == status
    if status == 406:
        accepted = "application/json, application/yaml, text/plain"
        assert answer.message == f"only the following media types are accepted: {accepted}"


def test_health_checks_are_counted_when_all_are_asked_for(client: Client) -> None:
    def counted(name: str) -> float:
        lines = client.get("/metrics/slis").body.decode().splitlines()
        wanted = f'kubernetes_healthchecks_total{{name="{name}",status="success",type="livez"}} '
        return sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))

    before = counted("ping")
    for _ in range(3):
        assert client.get("/livez").status == 200
    assert client.get("/livez/ping").status == 200
    assert counted("ping") == before + 3
    text = client.get("/metrics/slis").body.decode()
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in text


def test_how_much_is_logged_can_be_changed(client: Client) -> None:
    for body, status, text in (
        (b"x", 400, 'strconv.ParseUint: parsing "x": invalid syntax'),
        (b"", 400, 'strconv.ParseUint: parsing "": invalid syntax'),
        (b"99999999999", 400, 'strconv.ParseUint: parsing "99999999999": value out of range'),
        (b"5", 200, "successfully set klog.logging.verbosity to 5"),
        (b"0" * 5000 + b"4", 200, "successfully set klog.logging.verbosity to 4"),
        (b"0", 200, "successfully set klog.logging.verbosity to 0"),
    ):
        answer = client.put("/debug/flags/v", body)
        assert (answer.status, answer.body.decode()) == (status, f"{text}\n")
    assert client.get("/debug/flags/v").status == 406
    assert client.get("/debug/flags").status == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_upstreams_router_serves_is_for_get_alone(client: Client, method: str) -> None:
    for path in ("/version", "/api", "/api/v1", "/apis/apps/v1", "/openid/v1/jwks"):
        assert client(method, path).status == 405, path
    for path in ("/", "/healthz", "/livez/ping", "/apis", "/apis/apps", "/statusz", "/openapi/v2"):
        assert client(method, path).status == 200, path
    for path in ("/nope", "/apis/nope", "/apis/nope/v1", "/apis/apps/v9"):
        assert client(method, path).status == 404, path


def test_the_server_has_a_lease_and_leaves_none_behind(client: Client) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    found = client.get(f"{path}?labelSelector=apiserver.kubernetes.io/identity=kube-apiserver").json["items"]
    assert len(found) == 1
    assert found[0]["spec"]["leaseDurationSeconds"] == 3600
