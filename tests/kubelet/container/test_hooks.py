"""Hooks: what they run, and what their failures say."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from kubelet.probes.test_attempts import CONTAINER, LOCAL, POD, Recorder, Runtime, http, serving

import tools
from pybernetes.api.core.v1 import LifecycleHandler
from pybernetes.client.clock import FakeClock
from pybernetes.cri.errors import CRIError
from pybernetes.kubelet.container.hooks import HookFailed, Hooks


async def run(handler: dict[str, Any], runtime: Runtime | None = None, ip: str = LOCAL) -> list[tuple[Any, ...]]:
    recorder = Recorder()
    hooks = Hooks(runtime or Runtime(), recorder, FakeClock())  # type: ignore[arg-type]
    await hooks.run(POD, CONTAINER, "id", msgspec.convert(handler, LifecycleHandler), ip)
    return recorder.events


async def test_exec_runs_the_command_as_it_is_and_without_a_limit() -> None:
    runtime = Runtime()
    await run({"exec": {"command": ["echo", "$(A)"]}}, runtime)
    assert (list(runtime.requests[0].cmd), runtime.requests[0].timeout) == (["echo", "$(A)"], 0)


async def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(HookFailed) as failed:
        await run({"exec": {"command": ["sh", "-c", "x"]}}, Runtime(2, b"a\n", b"b"))
    assert str(failed.value) == (
        'Exec lifecycle hook ([sh -c x]) for Container "c" in Pod "p_ns(u)" failed - error: '
        "command 'sh -c x' exited with 2: b, message: \"a\\nb\""
    )
    with pytest.raises(HookFailed, match="rpc error: code = NotFound desc = gone, message: "):
        await run({"exec": {"command": ["x"]}}, Runtime(error=CRIError("NotFound", "gone")))


async def test_http_takes_any_answer_for_an_answer() -> None:
    async with serving(http("500 no")) as (port, requests):
        await run({"httpGet": {"path": "/echo?msg=1", "port": port}})
    assert requests[0].startswith(b"GET /echo?msg=1 HTTP/1.1\r\n")
    assert b"User-Agent: kube-lifecycle/1.36\r\n" in requests[0]


async def test_https_falls_back_to_http_without_the_secret() -> None:
    async with serving(http("200 OK")) as (port, requests):
        header = {"name": "Authorization", "value": "Bearer x"}
        events = await run({"httpGet": {"port": port, "scheme": "HTTPS", "httpHeaders": [header]}})
    assert b"Authorization" not in requests[-1]
    assert events[0][1:] == (
        "Warning",
        "LifecycleHTTPFallback",
        f"request to HTTPS lifecycle hook {LOCAL}:{port} got HTTP response, retry with HTTP succeeded",
    )


async def test_a_refused_connection_is_a_failure() -> None:
    port = tools.free_port(LOCAL)
    with pytest.raises(HookFailed) as failed:
        await run({"httpGet": {"path": "/p", "port": port}})
    assert str(failed.value) == (
        'HTTP lifecycle hook (/p) for Container "c" in Pod "p_ns(u)" failed - error: '
        f'Get "http://{LOCAL}:{port}/p": dial tcp {LOCAL}:{port}: connect: connection refused'
    )
    with pytest.raises(HookFailed, match="failed to find networking container"):
        await run({"httpGet": {"port": port}}, ip="")


async def test_sleep_sleeps() -> None:
    clock = FakeClock()
    hooks = Hooks(Runtime(), Recorder(), clock)  # type: ignore[arg-type]
    handler = msgspec.convert({"sleep": {"seconds": 5}}, LifecycleHandler)
    task = asyncio.create_task(hooks.run(POD, CONTAINER, "id", handler, ""))
    await asyncio.sleep(0)
    clock.advance(4.9)
    await asyncio.sleep(0)
    assert not task.done()
    clock.advance(0.2)
    await task


async def test_a_handler_that_is_none_is_refused() -> None:
    with pytest.raises(HookFailed, match="Cannot run handler: invalid handler"):
        await run({"tcpSocket": {"port": 1}})
