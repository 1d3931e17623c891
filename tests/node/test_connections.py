"""exec, attach, forwarded ports and logs on a real node, by the protocols that newer clients speak.

`test_kubectl.py` has Debian's kubectl, which speaks SPDY; here it is WebSocket, through the API server and the kubelet
to the runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlencode, urlsplit

import pytest
from node.cluster import Cluster
from node.pods import Namespace, container, pod

import tools
from pybernetes.client import config
from pybernetes.net.streams import channels
from pybernetes.net.streams.channels import ERROR, FORMS, RESIZE, STDERR, STDIN, STDOUT
from pybernetes.net.streams.duplex import dial, request_head
from pybernetes.net.streams.spdy_session import Session
from pybernetes.net.streams.spdy_tunnel import Tunnel
from pybernetes.net.streams.websocket import WebSocket, new_key

V5 = FORMS["v5.channel.k8s.io"]


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    """A namespace with a pod `web`: a shell that waits, and a server on port 8080; `old` has ended once."""
    made = Namespace(node, "connections")
    serve = "echo serving; while true; do echo -e 'HTTP/1.0 200 OK\\r\\n\\r\\nhello' | nc -l -p 8080; done"
    made.apply(
        pod("web", [container(serve), container("exec cat", "cat", stdin=True)]),
        pod(
            "old",
            "if [ -e /data/x ]; then echo second; sleep 1000; fi; touch /data/x; echo first; exit 1",
            main={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            volumes=[{"name": "data", "emptyDir": {}}],
            restartPolicy="OnFailure",
        ),
    )
    made.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=110s")
    yield made
    node.kubectl("delete", "namespace", "connections", "--wait=false")


@contextlib.asynccontextmanager
async def websocket(space: Namespace, subresource: str, protocol: str, **query: object) -> AsyncIterator[WebSocket]:
    """A WebSocket to the pod `web`."""
    loaded = config.load(space.cluster.environment["KUBECONFIG"])
    server = urlsplit(loaded.server)
    assert server.hostname
    connection = await dial(server.hostname, server.port or 443, loaded.tls())
    path = f"/api/v1/namespaces/{space.name}/pods/web/{subresource}?{urlencode(query, doseq=True)}"
    lines = [("Host", server.netloc), ("Connection", "Upgrade"), ("Upgrade", "websocket")]
    lines += [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", new_key()), ("Sec-WebSocket-Protocol", protocol)]
    head = await connection.request(request_head("GET", path, lines))
    assert head.status == 101, (head.raw, await connection.body(head, 1000))
    made = WebSocket(connection, server=False)
    try:
        yield made
    finally:
        made.close()


async def collected(websocket: WebSocket) -> dict[int, bytes]:
    """Everything until the end, by channel."""
    found: dict[int, bytes] = {}
    async with asyncio.timeout(60):
        while (message := await websocket.receive()) is not None:
            channel, data = channels.decode(V5, message[1])
            found[channel] = found.get(channel, b"") + (data or b"")
    return found


async def test_exec_reads_until_its_input_is_closed(space: Namespace) -> None:
    command = ["sh", "-c", "sort; echo to stderr >&2; exit 7"]
    flags = {"container": "main", "stdin": 1, "stdout": 1, "stderr": 1, "command": command}
    async with websocket(space, "exec", "v5.channel.k8s.io", **flags) as made:
        made.send(channels.encode(V5, STDIN, b"b\na\n"))
        made.send(channels.encode_close(STDIN))
        found = await collected(made)
    assert (found[STDOUT], found[STDERR]) == (b"a\nb\n", b"to stderr\n")
    assert json.loads(found[ERROR])["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


async def test_a_terminal_has_the_clients_size(space: Namespace) -> None:
    script = "until stty size 2>/dev/null | grep .; do sleep 0.1; done"  # it says nothing while there is no size
    flags = {"container": "main", "stdin": 1, "stdout": 1, "tty": 1, "command": ["sh", "-c", script]}
    async with websocket(space, "exec", "v5.channel.k8s.io", **flags) as made:
        made.send(channels.encode(V5, RESIZE, b'{"Width":101,"Height":41}'))
        found = await collected(made)
    assert b"41 101" in found[STDOUT]


async def test_attach_talks_to_the_process_that_runs(space: Namespace) -> None:
    flags = {"container": "cat", "stdin": 1, "stdout": 1, "stderr": 1}
    async with websocket(space, "attach", "v5.channel.k8s.io", **flags) as made, asyncio.timeout(60):
        made.send(channels.encode(V5, STDIN, b"echo\n"))
        while (message := await made.receive()) is not None and message[1] != b"\x01echo\n":
            pass
        assert message is not None
    assert "echo" in space.kubectl("logs", "web", "-c", "cat")


async def test_ports_are_forwarded_by_spdy_in_websocket(space: Namespace) -> None:
    async with websocket(space, "portforward", "SPDY/3.1+portforward.k8s.io") as made, asyncio.timeout(60):
        session = Session(Tunnel(made), server=False)
        running = asyncio.create_task(session.run())
        answers = []
        for number, port in enumerate(("8080", "9999")):
            headers = {"port": port, "requestID": str(number)}
            error = await session.open({**headers, "streamType": "error"})
            data = await session.open({**headers, "streamType": "data"})
            data.write(b"GET / HTTP/1.0\r\n\r\n")
            answers.append((await data.read_all(), await error.read_all()))
        running.cancel()
    assert answers[0][0].endswith(b"hello\n")
    assert b"connection refused" in answers[1][1]


async def test_a_command_that_cannot_run_is_an_error(space: Namespace) -> None:
    async with websocket(
        space, "exec", "v5.channel.k8s.io", container="main", stdout=1, command="no-such-program"
    ) as made:
        status = json.loads((await collected(made))[ERROR])
    assert status["status"] == "Failure"
    assert "executable file not found" in status["message"]


def test_logs_of_the_container_before(space: Namespace) -> None:
    tools.wait_until(lambda: space.kubectl("logs", "old", check=False) == "second\n", "it was restarted", 60.0)
    assert space.kubectl("logs", "old", "--previous") == "first\n"
    refused = space.kubectl("logs", "web", "-c", "main", "--previous", check=False)
    assert 'previous terminated container "main" in pod "web" not found' in refused


def test_logs_are_cut_as_asked(space: Namespace) -> None:
    space.apply(pod("lines", "for i in 1 2 3 4 5; do echo line $i; done"))
    space.kubectl("wait", "pod/lines", "--for=condition=Ready=false", "--timeout=110s")
    tools.wait_until(lambda: space.kubectl("logs", "lines", check=False).count("line") == 5, "all lines", 30.0)
    assert space.kubectl("logs", "lines", "--tail=2") == "line 4\nline 5\n"
    assert space.kubectl("logs", "lines", "--limit-bytes=9") == "line 1\nli"
    assert space.kubectl("logs", "lines", "--since=1h", "--tail=1") == "line 5\n"
    stamped = space.kubectl("logs", "lines", "--timestamps", "--tail=1")
    assert stamped.endswith("Z line 5\n")
    assert len(stamped) == len("2026-01-01T00:00:00.000000000Z line 5\n")
    assert "container none is not valid for pod lines" in space.kubectl("logs", "lines", "-c", "none", check=False)
