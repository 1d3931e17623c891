"""exec, attach, cp, port-forward and logs, from real clients to a kubelet's server and a runtime's streams.

Debian's kubectl speaks SPDY. What newer ones speak (channels that can be closed, SPDY in WebSocket) is spoken by the
client's side of our own code; a change of the protocol on both sides at once fails in `tests/net`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest
from apiserver.connect.place import Place, place
from kubelet.server.fakes import echo_server

from pybernetes.net.streams import channels
from pybernetes.net.streams.channels import ERROR, FORMS, RESIZE, STDERR, STDIN, STDOUT
from pybernetes.net.streams.spdy_session import Session
from pybernetes.net.streams.spdy_tunnel import Tunnel
from pybernetes.net.streams.websocket import Opcode, WebSocket
from tools import ApiServer, free_port, wait_until

V5 = FORMS["v5.channel.k8s.io"]
FEATURES = [[], ["ExtendWebSocketsToKubelet"]]  # translated by the API server, or by the kubelet


async def collected(websocket: WebSocket, form: channels.Form = V5) -> dict[int, bytes]:
    """Everything until the end, by channel."""
    found: dict[int, bytes] = {}
    async with asyncio.timeout(30):
        while (message := await websocket.receive()) is not None:
            channel, data = channels.decode(form, message[1])
            found[channel] = found.get(channel, b"") + (data or b"")
    return found


# -- SPDY, by kubectl


async def test_exec_has_output_errors_and_an_exit_code(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    async with place(connected, tmp_path) as here:
        script = "echo out; echo err >&2; exit 3"
        code, out, err = await here.kubectl(kubectl, "exec", "web", "-c", "main", "--", "sh", "-c", script)
        assert (code, out) == (3, b"out\n")
        assert b"err\n" in err
        assert b"command terminated with exit code 3" in err


async def test_what_goes_in_comes_out_however_much_it_is(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    data = bytes(range(256)) * 4000
    async with place(connected, tmp_path) as here:
        argv = ("exec", "-i", "web", "-c", "main", "--", "cat")
        assert await here.kubectl(kubectl, *argv, stdin=data) == (0, data, b"")


async def test_cp_both_ways(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_bytes(b"content" * 1000)
    async with place(connected, tmp_path / "k") as here:
        code, _, err = await here.kubectl(kubectl, "cp", "-c", "main", f"{tmp_path}/file", f"web:{tmp_path}/there/file")
        assert code == 0, err
        code, _, err = await here.kubectl(kubectl, "cp", "-c", "main", f"web:{tmp_path}/there/file", f"{tmp_path}/back")
        assert code == 0, err
    assert (tmp_path / "back").read_bytes() == b"content" * 1000


async def test_attach_talks_to_what_runs(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    async with place(connected, tmp_path) as here:
        code, out, _ = await here.kubectl(kubectl, "attach", "-i", "web", "-c", "main", stdin=b"hello\n")
        assert (code, out) == (0, b"attached\nhello\n")


async def test_exec_in_a_container_that_does_not_run(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    async with place(connected, tmp_path) as here:
        code, _, err = await here.kubectl(kubectl, "exec", "web", "-c", "old", "--", "true")
        assert (code, err) == (1, b'error: unable to upgrade connection: container not found ("old")\n')
        code, _, err = await here.kubectl(kubectl, "exec", "web", "-c", "none", "--", "true")
        assert err == b"Error from server (BadRequest): container none is not valid for pod web\n"


async def test_forwarded_ports_carry_several_connections_at_once(
    connected: ApiServer, tmp_path: Path, kubectl: str
) -> None:
    local = free_port()
    async with place(connected, tmp_path) as here, echo_server() as port:
        process = await asyncio.create_subprocess_exec(
            *(kubectl, f"--kubeconfig={connected.kubeconfig}", "port-forward", "pod/web", f"{local}:{port}"),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout
            async with asyncio.timeout(30):
                await process.stdout.readline()

                async def talk(text: bytes) -> bytes:
                    reader, writer = await asyncio.open_connection("127.0.0.1", local)
                    writer.write(text)
                    found = await reader.readexactly(len(text))
                    writer.close()
                    return found

                texts = [b"%d abc" % n * 10_000 for n in range(4)]
                assert await asyncio.gather(*map(talk, texts)) == [each.upper() for each in texts]
        finally:
            process.terminate()
            await process.wait()
        assert here.kubelet.streams <= 1


async def test_logs_are_followed_until_the_container_ends(connected: ApiServer, tmp_path: Path, kubectl: str) -> None:
    async with place(connected, tmp_path) as here:
        log = here.runtime.logs / "main-1.log"
        log.write_text("2026-01-01T00:00:01Z stdout F one\n")
        process = await asyncio.create_subprocess_exec(
            *(kubectl, f"--kubeconfig={connected.kubeconfig}", "logs", "-f", "web", "-c", "main"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"one\n"
            with log.open("a") as file:
                file.write("2026-01-01T00:00:02Z stdout F two\n")
            assert await process.stdout.readline() == b"two\n"
            here.runtime.running = False
            assert await process.stdout.read() == b""
            assert await process.wait() == 0


# -- channels that can be closed


@pytest.mark.parametrize("features", FEATURES, ids=["by the API server", "by the kubelet"])
async def test_stdin_can_be_closed_in_websocket(connected: ApiServer, tmp_path: Path, features: list[str]) -> None:
    async with place(connected, tmp_path, features=features) as here:
        query = (
            "container=main&stdin=1&stdout=1&stderr=1&command=sh&command=-c&command=sort%3B+echo+x+%3E%262%3B+exit+7"
        )
        websocket = await here.websocket(f"{here.pod}/exec?{query}", "v5.channel.k8s.io")
        websocket.send(channels.encode(V5, STDIN, b"b\n"))
        websocket.send(channels.encode(V5, STDIN, b"a\n"))
        websocket.send(channels.encode_close(STDIN))
        found = await collected(websocket)
        assert (found[STDOUT], found[STDERR]) == (b"a\nb\n", b"x\n")
        status = json.loads(found[ERROR])
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


@pytest.mark.parametrize("features", FEATURES, ids=["by the API server", "by the kubelet"])
async def test_the_size_of_a_terminal_arrives(connected: ApiServer, tmp_path: Path, features: list[str]) -> None:
    async with place(connected, tmp_path, features=features) as here:
        query = "container=main&stdin=1&stdout=1&tty=1&command=sh&command=-c&command=read+x%3B+echo+got+$x"
        websocket = await here.websocket(f"{here.pod}/exec?{query}", "v5.channel.k8s.io")
        websocket.send(channels.encode(V5, RESIZE, b'{"Width":100,"Height":40}'))
        await asyncio.to_thread(wait_until, lambda: here.runtime.sizes, "the size")
        assert here.runtime.sizes == [(100, 40)]
        websocket.send(channels.encode(V5, STDIN, b"it\n"))
        found = await collected(websocket)
        assert found[STDOUT] == b"got it\n"
        assert json.loads(found[ERROR]) == {"metadata": {}, "status": "Success"}


async def test_what_fails_after_the_agreement_is_reported_on_the_error_channel(
    connected: ApiServer, tmp_path: Path
) -> None:
    async with place(connected, tmp_path) as here:
        websocket = await here.websocket(f"{here.pod}/exec?container=old&stdout=1&command=ls", "v5.channel.k8s.io")
        status = json.loads((await collected(websocket))[ERROR])
        assert status["reason"] == "InternalError"
        words = 'Internal error occurred: unable to upgrade connection: container not found ("old")'
        assert status["message"] == words


async def test_a_kubelet_that_is_not_there_is_reported_on_the_error_channel(
    connected: ApiServer, tmp_path: Path
) -> None:
    async with place(connected, tmp_path) as here:
        await here.kubelet.stop()
        websocket = await here.websocket(f"{here.pod}/exec?container=main&stdout=1&command=true", "v5.channel.k8s.io")
        message = json.loads((await collected(websocket))[ERROR])["message"]
        assert 'error sending request: Post "https://' in message
        assert message.endswith("connect: connection refused")


async def test_a_client_that_goes_ends_what_it_started(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        query = "container=main&stdin=1&stdout=1&command=cat"
        websocket = await here.websocket(f"{here.pod}/exec?{query}", "v5.channel.k8s.io")
        websocket.send(channels.encode(V5, STDIN, b"x"))
        assert [await websocket.receive(), await websocket.receive()][1] == (Opcode.BINARY, b"\x01x")
        assert here.kubelet.streams == 1
        websocket.close()
        await asyncio.to_thread(wait_until, lambda: not here.kubelet.streams, "the stream has ended")


# -- the older forms go through as they are


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"])
async def test_older_channels_go_through(connected: ApiServer, tmp_path: Path, protocol: str) -> None:
    async with place(connected, tmp_path) as here:
        query = "container=main&stdout=1&stderr=1&command=echo&command=hi"
        websocket = await here.websocket(f"{here.pod}/exec?{query}", protocol)
        found = await collected(websocket, FORMS[protocol])
        assert found[STDOUT] == b"hi\n"


async def test_a_port_is_forwarded_by_channels(connected: ApiServer, tmp_path: Path) -> None:
    form = FORMS["v4.channel.k8s.io"]
    async with place(connected, tmp_path) as here, echo_server() as port, asyncio.timeout(30):
        websocket = await here.websocket(f"{here.pod}/portforward?ports={port}", "v4.channel.k8s.io")
        for channel in (0, 1):
            message = await websocket.receive()
            assert message is not None
            assert channels.decode(form, message[1]) == (channel, port.to_bytes(2, "little"))
        websocket.send(channels.encode(form, 0, b"hello"))
        message = await websocket.receive()
        assert message is not None
        assert channels.decode(form, message[1]) == (0, b"HELLO")
        websocket.close()


@pytest.mark.parametrize("features", FEATURES, ids=["by the API server", "by the kubelet"])
async def test_spdy_goes_through_websocket(connected: ApiServer, tmp_path: Path, features: list[str]) -> None:
    async with place(connected, tmp_path, features=features) as here, echo_server() as port, asyncio.timeout(30):
        websocket = await here.websocket(f"{here.pod}/portforward", "SPDY/3.1+portforward.k8s.io")
        session = Session(Tunnel(websocket), server=False)
        running = asyncio.create_task(session.run())
        for n in range(2):
            headers = {"port": str(port), "requestID": str(n)}
            error = await session.open({**headers, "streamType": "error"})
            data = await session.open({**headers, "streamType": "data"})
            error.finish()
            data.write(b"hello %d" % n)
            assert await data.read() == b"HELLO %d" % n
            data.finish()
            assert await error.read_all() == b""
        error = await session.open({"port": "1", "requestID": "9", "streamType": "error"})
        await session.open({"port": "1", "requestID": "9", "streamType": "data"})
        assert b"connection refused" in await error.read_all()
        running.cancel()


@pytest.mark.parametrize(("protocol", "text"), [("binary.k8s.io", False), ("base64.binary.k8s.io", True)])
async def test_logs_in_websocket(connected: ApiServer, tmp_path: Path, protocol: str, text: bool) -> None:
    async with place(connected, tmp_path) as here, asyncio.timeout(30):
        (here.runtime.logs / "main-1.log").write_text("2026-01-01T00:00:01Z stdout F one\n")
        websocket = await here.websocket(f"{here.pod}/log?container=main", protocol)
        found = b""
        while (message := await websocket.receive()) is not None:
            found += base64.b64decode(message[1]) if text else message[1]
        assert found == b"one\n"


async def test_following_a_silent_container_sends_an_empty_first_message(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here, asyncio.timeout(30):
        log = here.runtime.logs / "main-1.log"
        log.touch()
        websocket = await here.websocket(f"{here.pod}/log?container=main&follow=1", "binary.k8s.io")
        assert await websocket.receive() == (Opcode.BINARY, b"")
        log.write_text("2026-01-01T00:00:01Z stdout F one\n")
        assert await websocket.receive() == (Opcode.BINARY, b"one\n")
        websocket.close()


# -- who may


async def test_who_may_only_get_cannot_exec_by_websocket(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        await _allow(here, "reader", ["get"])
        answer = await here.ask(
            "GET", f"{here.pod}/exec?container=main&command=ls&stdout=1", **{"Impersonate-User": "reader"}
        )
        assert answer.status == 403
        assert answer.message == 'pods "web" is forbidden: '
        await _allow(here, "writer", ["get", "create"])
        answer = await here.ask(
            "GET", f"{here.pod}/exec?container=main&command=ls&stdout=1", **{"Impersonate-User": "writer"}
        )
        assert (answer.status, answer.message) == (400, "Upgrade request required")


async def _allow(here: Place, user: str, verbs: list[str]) -> None:
    base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs}]
    await here.ask("POST", f"{base}/roles", {"metadata": {"name": user}, "rules": rules})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    answer = await here.ask("POST", f"{base}/rolebindings", binding)
    assert answer.status in (201, 409), answer.body


# -- logs and metrics


async def test_the_audit_log_and_the_metrics_tell_of_connections(connected: ApiServer, tmp_path: Path) -> None:
    async with place(connected, tmp_path) as here:
        path = f"{here.pod}/exec?container=main&stdout=1&command=audited"
        await collected(await here.websocket(path, "v5.channel.k8s.io"))

        def recorded() -> list[tuple[str, str, int]]:
            lines = (connected.folder / "pki" / "audit.log").read_text().splitlines()
            events = [json.loads(line) for line in lines if "command=audited" in line]
            found = [(each["verb"], each["stage"], each.get("responseStatus", {}).get("code", 0)) for each in events]
            return found if len(found) == 3 else []

        stages = await asyncio.to_thread(wait_until, recorded, "the audit log tells of it")
        assert [each[1] for each in stages] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
        assert stages[1] == ("get", "ResponseStarted", 101)
        metrics = (await here.ask("GET", "/metrics")).body.decode()
        assert 'subresource="exec",verb="CONNECT"' in metrics
