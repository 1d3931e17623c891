"""One attempt of each kind of probe, against real servers: verdicts, the words that users see, and events."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tools
from pybernetes import pki
from pybernetes.api.core.v1 import Container, HTTPGetAction, Pod, Probe
from pybernetes.cri.errors import CRIError
from pybernetes.kubelet.probes.exec import exec_probe
from pybernetes.kubelet.probes.grpc import grpc_probe
from pybernetes.kubelet.probes.http import http_probe
from pybernetes.kubelet.probes.outcome import Outcome, ProbeError, Verdict
from pybernetes.kubelet.probes.prober import Prober
from pybernetes.kubelet.probes.results import ProbeType, Result
from pybernetes.kubelet.probes.tcp import tcp_probe

LOCAL = "127.0.0.1"
CONTAINER = msgspec.convert(
    {
        "name": "c",
        "ports": [{"name": "web", "containerPort": 80}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    },
    Container,
)


@contextlib.asynccontextmanager
async def serving(
    answer: bytes | Callable[[bytes], bytes], *, tls: ssl.SSLContext | None = None, hang: bool = False
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers every request with these bytes; gives its port and the requests it gets."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            first = await reader.readexactly(1)
            if first == b"\x16":  # TLS: no server of HTTP knows what to make of it
                writer.write(http("400 Bad Request"))
                return writer.close()
            requests.append(first + await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer(requests[-1]) if callable(answer) else answer)
            if hang:
                await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, LOCAL, 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], requests


def http(status: str, body: str = "", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


async def get(port: int | str, within: float = 30, **fields: Any) -> Outcome:
    action = msgspec.convert({"path": "/healthz", "port": port, **fields}, HTTPGetAction)
    return await http_probe(action, CONTAINER, LOCAL, within)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (http("200 OK", "fine"), Outcome(Verdict.SUCCESS, "fine")),
        (http("204 No Content"), Outcome(Verdict.SUCCESS)),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", Outcome(Verdict.SUCCESS, "until the end")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + http("200 OK", "x"), Outcome(Verdict.SUCCESS, "x")),
        (http("400 Bad Request", "secret"), Outcome(Verdict.FAILURE, "HTTP probe failed with statuscode: 400")),
        (http("503 x", "secret"), Outcome(Verdict.FAILURE, "HTTP probe failed with statuscode: 503")),
        (
            http("302 Found", "gone", Location="http://example.com/"),
            Outcome(Verdict.WARNING, "Probe terminated redirects, Response body: gone"),
        ),
        (http("304 x"), Outcome(Verdict.WARNING, "Probe terminated redirects, Response body: ")),
    ],
)
async def test_the_status_of_the_answer_decides(answer: bytes, expected: Outcome) -> None:
    async with serving(answer) as (port, _):
        assert await get(port) == expected


async def test_the_request_is_upstreams_and_its_headers_are_the_users() -> None:
    async with serving(http("200 OK")) as (port, requests):
        await get(port)
        await get(
            port,
            path="/a b?q=1&r=ü",
            httpHeaders=[
                {"name": "host", "value": "web.example"},
                {"name": "x-two", "value": "1"},
                {"name": "X-Two", "value": "2"},
                {"name": "Accept", "value": ""},
                {"name": "User-Agent", "value": "mine"},
            ],
        )
    assert requests[0].decode() == (
        f"GET /healthz HTTP/1.1\r\nHost: {LOCAL}:{port}\r\nUser-Agent: kube-probe/1.36\r\n"
        "Connection: close\r\nAccept: */*\r\n\r\n"
    )
    assert requests[1].decode() == (
        "GET /a%20b?q=1&r=%C3%BC HTTP/1.1\r\nHost: web.example\r\nUser-Agent: mine\r\n"
        "Connection: close\r\nX-Two: 1\r\nX-Two: 2\r\n\r\n"
    )


async def test_redirects_on_the_same_host_are_followed_but_not_for_ever() -> None:
    def answer(request: bytes) -> bytes:
        path = request.split()[1]
        if path == b"/healthz":
            return http("301 x", Location="/next")
        return http("302 x", Location="/loop") if path == b"/loop" else http("200 OK", "there")

    async with serving(answer) as (port, requests):
        assert await get(port) == Outcome(Verdict.SUCCESS, "there")
        assert [each.split()[1] for each in requests] == [b"/healthz", b"/next"]
        outcome = await get(port, path="/loop")
    assert outcome == Outcome(Verdict.FAILURE, f'Get "http://{LOCAL}:{port}/loop": stopped after 10 redirects')


async def test_who_does_not_answer_has_failed_in_gos_words() -> None:
    port = tools.free_port()
    url = f"http://{LOCAL}:{port}/healthz"
    refused = f"dial tcp {LOCAL}:{port}: connect: connection refused"
    assert await get(port) == Outcome(Verdict.FAILURE, f'Get "{url}": {refused}')
    assert await tcp_probe(LOCAL, port, 30) == Outcome(Verdict.FAILURE, refused)
    async with serving(b"", hang=True) as (port, _):
        late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        assert (await get(port, 1.0)).output == f'Get "http://{LOCAL}:{port}/healthz": {late}'
    async with serving(b"") as (port, _):
        assert (await get(port)).output == f'Get "http://{LOCAL}:{port}/healthz": EOF'
    async with serving(b"SSH-2.0-OpenSSH\r\n") as (port, _):
        assert 'malformed HTTP response "SSH-2.0-OpenSSH"' in (await get(port)).output
    async with serving(http("200 OK")) as (port, _):
        outcome = await get(port, scheme="HTTPS")
        assert (
            outcome.output == f'Get "https://{LOCAL}:{port}/healthz": http: server gave HTTP response to HTTPS client'
        )


async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc") as (port, _):
        with pytest.raises(ProbeError, match="unexpected EOF"):
            await get(port)


async def test_no_more_is_read_of_a_body_than_is_needed() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 20000, hang=True) as (port, _):
        assert len((await get(port)).output) == 10 * 1024


async def test_any_certificate_will_do(tmp_path: Path) -> None:
    identity = pki.issue_server(pki.create_authority("nobody"), "somebody", ["elsewhere"])
    (tmp_path / "crt").write_bytes(identity.certificate_pem)
    (tmp_path / "key").write_bytes(identity.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    async with serving(http("200 OK", "ok"), tls=context) as (port, _):
        assert await get(port, scheme="HTTPS") == Outcome(Verdict.SUCCESS, "ok")


async def test_a_tcp_probe_succeeds_when_a_process_listens() -> None:
    async with serving(b"") as (port, _):
        assert await tcp_probe(LOCAL, port, 30) == Outcome(Verdict.SUCCESS)


class Runtime:
    """A runtime with configured exit codes of commands."""

    def __init__(self, code: int = 0, stdout: bytes = b"", stderr: bytes = b"", error: CRIError | None = None) -> None:
        self.answer = type("Answer", (), {"exit_code": code, "stdout": stdout, "stderr": stderr})()
        self.error = error
        self.requests: list[Any] = []

    async def exec_sync(self, request: Any) -> Any:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        return self.answer


async def test_the_exit_code_of_a_command_decides() -> None:
    runtime = Runtime(0, b"out", b"err")
    outcome = await exec_probe(runtime, CONTAINER, "id", ["echo", "$(A) $(B) $(C) $$(A)"], 3)
    assert outcome == Outcome(Verdict.SUCCESS, "outerr")
    (request,) = runtime.requests
    assert (request.container_id, list(request.cmd), request.timeout) == ("id", ["echo", "1  $(C) $(A)"], 3)
    outcome = await exec_probe(Runtime(7, b"x" * 20000), CONTAINER, "id", ["false"], 1)
    assert outcome == Outcome(Verdict.FAILURE, "x" * 10240)


async def test_a_command_that_takes_too_long_has_failed_and_one_that_cannot_run_says_nothing() -> None:
    late = Runtime(error=CRIError("DeadlineExceeded", "context deadline exceeded"))
    outcome = await exec_probe(late, CONTAINER, "id", ["sleep", "60"], 1)
    assert outcome == Outcome(Verdict.FAILURE, 'command timed out: "sleep 60" timed out after 1s')
    with pytest.raises(ProbeError, match="rpc error: code = NotFound desc = no container"):
        await exec_probe(Runtime(error=CRIError("NotFound", "no container")), CONTAINER, "id", ["true"], 1)


@contextlib.asynccontextmanager
async def health(statuses: dict[bytes, bytes]) -> AsyncIterator[int]:
    """A gRPC server of the health protocol: request bytes to answer bytes."""
    import grpc

    async def check(request: bytes, context: Any) -> bytes:
        assert "kube-probe/1.36" in dict(context.invocation_metadata())["user-agent"]
        if request not in statuses:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return statuses[request]

    server = grpc.aio.server()
    if statuses:
        handlers = {"Check": grpc.unary_unary_rpc_method_handler(check)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
    port = server.add_insecure_port(f"{LOCAL}:0")
    await server.start()
    yield port
    await server.stop(None)


async def test_grpc_health() -> None:
    async with health({b"": b"\x08\x01", b"\x0a\x01a": b"\x08\x02"}) as port:
        assert await grpc_probe(LOCAL, port, "", 30) == Outcome(Verdict.SUCCESS, "service healthy")
        unhealthy = await grpc_probe(LOCAL, port, "a", 30)
        assert unhealthy == Outcome(Verdict.FAILURE, 'service unhealthy (responded with "NOT_SERVING")')
        unknown = await grpc_probe(LOCAL, port, "b", 30)
        assert unknown.output == ("error: health rpc probe failed: rpc error: code = NotFound desc = unknown service")
    async with health({}) as port:
        words = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
        assert (await grpc_probe(LOCAL, port, "", 30)).output.startswith(words)
    outcome = await grpc_probe(LOCAL, port, "", 0.3)
    assert outcome.output == (
        f'timeout: failed to connect service "{LOCAL}:{port}" within 300ms: context deadline exceeded'
    )


class Recorder:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def event(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.events.append((getattr(obj, "field_path", None), type, reason, message))


POD = msgspec.convert(
    {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}, Pod
)


@pytest.mark.parametrize(
    ("spec", "runtime", "result", "event"),
    [
        ({"exec": {"command": ["true"]}}, Runtime(), Result.SUCCESS, None),
        (
            {"exec": {"command": ["false"]}},
            Runtime(1, b"no"),
            Result.FAILURE,
            ("Unhealthy", "Liveness probe failed: no"),
        ),
        (
            {"exec": {"command": ["x"]}},
            Runtime(error=CRIError("NotFound", "gone")),
            None,
            (
                "Unhealthy",
                "Liveness probe errored and resulted in unknown state: rpc error: code = NotFound desc = gone",
            ),
        ),
        (
            {"tcpSocket": {"port": "nope"}},
            Runtime(),
            None,
            (
                "Unhealthy",
                'Liveness probe errored and resulted in unknown state: strconv.Atoi: parsing "nope": invalid syntax',
            ),
        ),
        (
            {},
            Runtime(),
            None,
            ("Unhealthy", "Liveness probe errored and resulted in unknown state: missing probe handler for p_ns(u):c"),
        ),
    ],
)
async def test_errors_of_probes_are_reported(
    spec: Any, runtime: Runtime, result: Result | None, event: tuple[str, str] | None
) -> None:
    recorder = Recorder()
    prober = Prober(runtime, recorder)  # type: ignore[arg-type]
    found = await prober.probe(ProbeType.LIVENESS, msgspec.convert(spec, Probe), POD, CONTAINER, "id", LOCAL)
    assert found is result
    assert recorder.events == ([("spec.containers{c}", "Warning", *event)] if event else [])
    if runtime.error is not None:
        assert len(runtime.requests) == 3
