"""Who may do what at a kubelet's own server, and what it answers there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
from pathlib import Path
from typing import Any

import pytest
from apiserver.client import Answer
from apiserver.connect.place import NODE, Place, place
from kubelet.server.fakes import FakeRuntime, FakeSource

from pybernetes import pki
from pybernetes.client.metrics import Registry
from pybernetes.cluster import certificates
from pybernetes.kubelet.server import log_query
from pybernetes.kubelet.server.authz import subresources
from pybernetes.kubelet.server.log_query import LogQuery, journal_flags, parse_query, read_query
from pybernetes.kubelet.server.server import KubeletServer
from pybernetes.net.streams.duplex import dial, request_head
from tools import ApiServer, wait_until


async def direct(
    here: Place, path: str, *, method: str = "GET", token: str = "", certificate: Path | None = None
) -> Answer:
    """A request to the kubelet itself."""
    context = ssl.create_default_context(cafile=str(here.server.ca_file))
    if certificate is not None:
        context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    connection = await dial(here.address, here.kubelet.port, context)
    lines = [("Host", "kubelet"), ("Connection", "close"), *([("Authorization", f"Bearer {token}")] if token else [])]
    head = await connection.request(request_head(method, path, lines))
    body = await connection.body(head, 1 << 20)
    connection.abort()
    return Answer(head.status, dict(head.headers), body, [])


async def service_account(here: Place, name: str, resources: list[str]) -> str:
    """A token of an account that may get these subresources of nodes."""
    base = "/api/v1/namespaces/default/serviceaccounts"
    await here.ask("POST", base, {"metadata": {"name": name}})
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get", "create"]}]
    await here.ask("POST", f"/apis/{group}/v1/clusterroles", {"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    await here.ask("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    answer = await here.ask("POST", f"{base}/{name}/token", {"spec": {}})
    return str(answer.json["status"]["token"])


async def test_a_missing_or_bad_credential_is_unauthenticated(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        for token in ("", "wrong"):
            answer = await direct(here, "/pods", token=token)
            assert (answer.status, answer.body) == (401, b"Unauthorized")


async def test_an_untrusted_certificate_is_a_bad_credential_and_no_reason_to_disconnect(
    connected: ApiServer, tmp_path: Path
) -> None:
    stranger = pki.issue_client(pki.create_authority("elsewhere"), "kubernetes-admin", ["system:masters"])
    certificates.write(tmp_path, "stranger", stranger)
    async with place(connected, tmp_path / "k") as here:
        assert (await direct(here, "/pods", certificate=tmp_path / "stranger")).status == 401
        answer = await direct(here, "/pods", certificate=tmp_path / "stranger", token=here.client.token)
        assert answer.status == 200


async def test_certificates_of_the_cluster_are_known(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        folder = connected.folder / "pki"
        assert (await direct(here, "/pods", certificate=folder / certificates.KUBELET_CLIENT)).status == 200
        answer = await direct(here, "/pods", certificate=folder / certificates.SCHEDULER)
        assert answer.status == 403
        shown = "user=system:kube-scheduler, verb=get, resource=nodes, subresource(s)=[pods proxy]"
        assert answer.body.decode() == f"Forbidden ({shown})\n"


async def test_permissions_are_by_the_nodes_subresources(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        token = await service_account(here, "looker", ["nodes/pods", "nodes/log"])
        assert (await direct(here, "/pods", token=token)).status == 200
        assert (await direct(here, "/runningpods/", token=token)).status == 200
        assert (await direct(here, "/logs/", token=token)).status == 200
        for path in ("/healthz", "/configz", "/metrics", "/containerLogs/default/web/main", "/exec/default/web/main"):
            assert (await direct(here, path, token=token)).status == 403, path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/pods", ["pods", "proxy"]),
        ("/runningpods/", ["pods", "proxy"]),
        ("/healthz/ping", ["healthz", "proxy"]),
        ("/configz", ["configz", "proxy"]),
        ("/stats/summary", ["stats"]),
        ("/metrics/cadvisor", ["metrics"]),
        ("/logs/syslog", ["log"]),
        ("/checkpoint/a/b/c", ["checkpoint"]),
        ("/exec/a/b/c", ["proxy"]),
        ("/podsx", ["proxy"]),
        ("/", ["proxy"]),
    ],
)
def test_the_subresource_of_a_path(path: str, found: list[str]) -> None:
    assert subresources(path) == found


async def test_pods_running_pods_configuration_and_health(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        proxy = f"/api/v1/nodes/{NODE}/proxy"
        pods = (await here.ask("GET", f"{proxy}/pods")).json
        assert (pods["kind"], [each["metadata"]["name"] for each in pods["items"]]) == ("PodList", ["web"])
        running: Any = (await here.ask("GET", f"{proxy}/runningpods/")).json
        assert [each["spec"]["containers"][0]["name"] for each in running["items"]] == ["main"]
        assert json.loads((await here.ask("GET", f"{proxy}/configz")).body) == {"kubeletconfig": {"maxPods": 110}}
        here.source.problem = "PLEG is not healthy"
        answer = await here.ask("GET", f"{proxy}/healthz")
        assert (answer.status, b"[-]syncloop failed: reason withheld" in answer.body) == (500, True)


async def test_files_of_the_node_and_nothing_beside_them(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        (here.runtime.logs / "sys.log").write_text("boot\n")
        (here.runtime.logs / "out").symlink_to("/etc/passwd")
        (tmp_path / "secret").write_text("secret")
        proxy = f"/api/v1/nodes/{NODE}/proxy/logs"
        assert (await here.ask("GET", f"{proxy}/sys.log")).body == b"boot\n"
        assert b'<a href="sys.log">sys.log</a>' in (await here.ask("GET", f"{proxy}/")).body
        token = here.client.token
        assert (await direct(here, "/logs/out", token=token)).status == 404
        assert (await direct(here, "/logs/../secret", token=token)).status in (400, 404)
        assert (await direct(here, "/logs/%2e%2e/secret", token=token)).status in (400, 404)


async def test_logs_of_services_are_found_by_their_names(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        logs = here.runtime.logs
        (logs / "cron.log").write_text("cron\n")
        (logs / "web").mkdir()
        (logs / "web" / "web.log").write_text("web\n" * 100_000)
        (logs / "out.log").symlink_to("/etc/passwd")
        proxy = f"/api/v1/nodes/{NODE}/proxy/logs/"

        async def ask(query: str) -> tuple[int, str]:
            answer = await here.ask("GET", f"{proxy}?{query}")
            return answer.status, answer.body.decode()

        assert await ask("query=cron") == (200, "cron\n")
        assert await ask("query=web") == (200, "web\n" * 100_000)
        assert await ask("query=/cron.log") == (200, "cron\n")
        assert await ask("query=no&query=cron") == (200, "\nlog not found for no\ncron\n")
        assert await ask("query=out") == (200, "\nlog not found for out\n")
        words = "\noptions present and query resolved to log files for [cron]\ntry without specifying options\n"
        assert await ask("query=cron&tailLines=3") == (200, words)
        for query, status, why in (
            ("query=+", 400, 'query: Invalid value: [" "]: may not be empty'),
            ("query=cron&boot=x&sinceTime=1", 400, "[sinceTime: Invalid value"),
            ("tailLines=3", 406, "query: Required value: cannot be empty with options"),
            ("query=a%3Bb", 406, 'query: Invalid value: "a;b": input contains unsupported characters'),
            ("query=cron&boot=1", 406, "boot: Invalid value: 1: must be less than 1"),
            ("query=cron&tailLines=100001", 406, "must be between 0 and 100000, inclusive"),
            ("query=cron&pattern=(", 406, 'pattern: Invalid value: "(": error parsing regexp: missing'),
            ("query=/no.log", 406, "no such file or directory"),
            ("query=/cron.log&tailLines=1", 406, "cannot specify file with options"),
        ):
            found = await ask(query)
            assert (found[0], why in found[1]) == (status, True), found


JOURNALCTL = """#!/bin/sh
case "$*" in
  "--field _SYSTEMD_UNIT") echo cron.service; echo slow.service;;
  *slow*) echo begins; exec sleep 1000;;
  *) echo "$@";;
esac
"""


async def test_services_are_read_from_the_journal_until_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "journalctl"
    program.write_text(JOURNALCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    async def read(*services: str) -> str:
        return b"".join([each async for each in read_query(LogQuery(services), tmp_path)]).decode()

    assert await read("cron") == "--utc --no-pager --output=short-precise --unit=cron\n"
    monkeypatch.setattr(log_query, "WITHIN", 1.0)
    assert await read("slow") == "begins\n"


async def test_a_running_container_is_checkpointed_by_the_runtime(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        token = await service_account(here, "keeper", ["nodes/checkpoint"])

        async def ask(path: str) -> tuple[int, str]:
            answer = await direct(here, f"/checkpoint/default/{path}", token=token, method="POST")
            return answer.status, answer.body.decode()

        status, body = await ask("web/main?timeout=1&timeout=300")
        (location,) = json.loads(body)["items"]
        assert status == 200
        assert re.fullmatch(rf"{tmp_path}/checkpoints/checkpoint-web_default-main-\d{{4}}-.*Z\.tar", location)
        assert here.runtime.checkpoints == [("main-1", location, 300)]
        for path, status, why in (
            ("no/main", 404, "pod does not exist"),
            ("web/no", 404, "container no does not exist"),
            ("web/main?timeout=x", 404, "cannot parse value of timeout parameter"),
            ("web/main?timeout=-1", 500, "failed (CheckpointContainer requires the timeout value to be > 0)"),
        ):
            found = await ask(path)
            assert (found[0], why in found[1]) == (status, True), found
        here.runtime.running = False
        assert await ask("web/main") == (500, "checkpointing of default/web/main failed (container main not found)")


def test_the_journal_is_asked_for_what_the_query_wants() -> None:
    query = parse_query(
        {
            "query": ["cron", "ssh"],
            "sinceTime": ["2026-01-02T03:04:05+01:00"],
            "tailLines": ["5"],
            "pattern": ["a b"],
            "boot": ["-1"],
        }
    )
    assert query is not None
    assert journal_flags(query, query.services)[3:] == [
        *("--since=2026-01-02 02:04:05", "--pager-end", "--lines=5", "--unit=cron", "--unit=ssh", "--grep=a b"),
        *("--boot", "-1"),
    ]


async def test_a_command_without_streams(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        token = here.client.token
        answer = await direct(here, "/run/default/web/main?cmd=echo+hi", method="POST", token=token)
        assert (answer.status, answer.body) == (200, b"hi\n")
        answer = await direct(here, "/run/default/web/main?cmd=false", method="POST", token=token)
        assert answer.status == 500
        assert (await direct(here, "/run/default/web/main?cmd=ls", token=token)).status == 405


async def test_the_kubelet_does_not_wait_for_the_clients_that_are_there_when_it_ends(
    connected: ApiServer, tmp_path: Path
) -> None:
    async with place(connected, tmp_path) as here:
        websocket = await here.websocket(
            f"{here.pod}/exec?container=main&stdin=1&stdout=1&command=cat", "v5.channel.k8s.io"
        )
        await asyncio.to_thread(wait_until, lambda: here.kubelet.streams, "the stream")
        async with asyncio.timeout(30):
            await here.kubelet.stop()
            while await websocket.receive() is not None:
                pass


async def test_ports_without_a_credential_tell_of_health_and_perhaps_of_pods(tmp_path: Path) -> None:
    source, runtime = FakeSource(NODE), FakeRuntime(tmp_path)
    for health_only, statuses in ((True, [200, 404, 404]), (False, [200, 200, 404])):
        server = KubeletServer(source, runtime, authn=None, authz=None, health_only=health_only)
        port = await server.start("127.0.0.1", 0, None)
        found = []
        for path in ("/healthz", "/pods", "/exec/default/web/main"):
            connection = await dial("127.0.0.1", port)
            found.append((await connection.request(request_head("GET", path, [("Host", "x")]))).status)
            connection.abort()
        await server.stop()
        assert found == statuses


async def test_requests_are_counted_by_what_they_ask_for(tmp_path: Path) -> None:
    registry = Registry()
    server = KubeletServer(FakeSource(NODE), FakeRuntime(tmp_path), authn=None, authz=None, metrics=registry)
    port = await server.start("127.0.0.1", 0, None)
    for method, path in (("GET", "/pods"), ("GET", "/pods"), ("PURGE", "/no/such/path"), ("GET", "/metrics/probes")):
        connection = await dial("127.0.0.1", port)
        await connection.request(request_head(method, path, [("Host", "x")]))
        connection.abort()
    await server.stop()
    text = registry.render().decode()
    server_type = 'server_type="readonly",long_running="false"'
    assert f'kubelet_http_requests_total{{method="GET",path="pods",{server_type}}} 2' in text
    assert f'kubelet_http_requests_duration_seconds_count{{method="GET",path="pods",{server_type}}} 2' in text
    assert f'kubelet_http_inflight_requests{{method="GET",path="pods",{server_type}}} 0' in text
    assert f'kubelet_http_requests_total{{method="GET",path="metrics/probes",{server_type}}} 1' in text
    assert f'kubelet_http_requests_total{{method="other",path="other",{server_type}}} 1' in text
