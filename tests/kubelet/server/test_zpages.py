"""What a kubelet tells of itself: its flags, its age, how its health was."""

from __future__ import annotations

import json
from pathlib import Path

from kubelet.server.fakes import FakeRuntime, FakeSource

from pybernetes.kubelet.config.load import set_defaults
from pybernetes.kubelet.config.types import KubeletConfiguration
from pybernetes.kubelet.options import flag_values, parse
from pybernetes.kubelet.server.authn import Authenticator
from pybernetes.kubelet.server.authz import AlwaysAllow
from pybernetes.kubelet.server.server import KubeletServer
from pybernetes.kubelet.server.zpages import add_zpages
from pybernetes.net.streams.duplex import dial, request_head

AS = "application/json;as={};v=v1beta1;g=config.k8s.io"


async def test_a_kubelet_tells_its_flags_its_age_and_how_its_health_was(tmp_path: Path) -> None:
    source = FakeSource("n")
    server = KubeletServer(source, FakeRuntime(tmp_path), authn=Authenticator(anonymous=True), authz=AlwaysAllow())
    add_zpages(server, lambda: {"b": "2", "a": "1"})
    port = await server.start("127.0.0.1", 0, None)

    async def ask(path: str, accept: str = "") -> tuple[int, str]:
        connection = await dial("127.0.0.1", port)
        lines = [("Host", "x"), ("Connection", "close"), *([("Accept", accept)] if accept else [])]
        head = await connection.request(request_head("GET", path, lines))
        body = await connection.body(head, 1 << 20)
        connection.abort()
        return head.status, body.decode()

    try:
        assert (await ask("/flagz"))[1].startswith("\nkubelet flagz\nWarning: ")
        assert json.loads((await ask("/flagz", AS.format("Flagz")))[1])["flags"] == {"a": "1", "b": "2"}
        status = json.loads((await ask("/statusz", AS.format("Statusz")))[1])
        assert status["metadata"] == {"name": "kubelet"}
        assert status["paths"] == ["/configz", "/flagz", "/healthz", "/metrics"]
        assert (await ask("/statusz", AS.format("Flagz")))[0] == 406
        assert await ask("/healthz") == (200, "ok")
        source.problem = "PLEG is not healthy"
        assert (await ask("/healthz"))[0] == 500
        assert await ask("/healthz/syncloop") == (500, "internal server error: PLEG is not healthy\n")
        told = (await ask("/metrics/slis"))[1]
        assert 'kubernetes_healthcheck{name="syncloop",type="healthz"} 0\n' in told
        assert 'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2\n' in told
        source.problem = ""
        source.failed = {"node status": "a mistake"}
        code, words = await ask("/healthz")
        assert (code, "[-]task-node-status failed: reason withheld" in words) == (500, True)
        assert await ask("/healthz/task-node-status") == (500, "internal server error: a mistake\n")
        source.failed = {}
        assert await ask("/healthz") == (200, "ok")
    finally:
        await server.stop()


def test_flags_that_were_not_given_have_what_is_in_force() -> None:
    config = KubeletConfiguration()
    given = ("--max-pods=7", "--node-labels=a=b,c=d", "--anonymous-auth=false", "--register-with-taints=k=v:NoSchedule")
    options = parse(given)
    options.apply(config)
    set_defaults(config)
    flags = flag_values(options, config)
    assert (flags["max-pods"], flags["node-labels"]) == ("7", "a=b,c=d")
    assert flags["register-with-taints"] == "k=v:NoSchedule"
    assert (flags["anonymous-auth"], flags["cgroup-driver"], flags["hostname-override"]) == ("false", "cgroupfs", "")
    assert flags["minimum-container-ttl-duration"] == "0s"
    assert not [name for name in flags if "_" in name]
