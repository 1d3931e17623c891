"""Runs postStart and preStop hooks: a command in the container, an HTTP request to it, or a pause.

A failed hook is a `HookFailed` with upstream's words for the event (FailedPostStartHook, FailedPreStopHook); what
becomes of the container is the caller's matter. Hooks have no time limit of their own: for preStop it is the pod's
grace period, which the caller keeps by cancelling.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from pybernetes.api.core.v1 import HTTPGetAction, LifecycleHandler, Pod
from pybernetes.api.gocompat.quote import quote
from pybernetes.client.clock import Clock
from pybernetes.client.events import WARNING, EventRecorder
from pybernetes.cri.errors import CRIError

from ..events import LIFECYCLE_HTTP_FALLBACK
from ..runtime.exec_command import CommandFailed, CommandRunner, CommandTimedOut, run_in_container
from ..runtime.types import AnyContainer, full_name

MAX_BODY: Final = 10 * 1024  # upstream's


class HookFailed(Exception):
    """A hook did not succeed; the text is that of the event."""


class Hooks:
    """Runs the hooks of a node's containers."""

    def __init__(self, runtime: CommandRunner, recorder: EventRecorder, clock: Clock) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._clock = clock
        self.broken_sleeps = self.fallbacks = 0
        """Sleeps that were broken off, and hooks that were asked by HTTP after HTTPS."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler, pod_ip: str
    ) -> None:
        """Run a hook to its end. Raises HookFailed."""
        if handler.exec is not None:
            await self._exec(pod, container, container_id, handler.exec.command or [])
        elif handler.http_get is not None:
            await self._http(pod, container, handler.http_get, pod_ip)
        elif handler.sleep is not None:
            try:
                await self._clock.sleep(float(handler.sleep.seconds or 0))
            except asyncio.CancelledError:
                self.broken_sleeps += 1
                raise
        else:
            # tcpSocket has never been a hook: upstream keeps the field only so that old objects stay valid.
            raise HookFailed("Cannot run handler: invalid handler: no exec, httpGet or sleep")

    async def _exec(self, pod: Pod, container: AnyContainer, container_id: str, command: list[str]) -> None:
        output = b""
        try:
            await run_in_container(self._runtime, container_id, command)
            return
        except CommandFailed as error:
            output, failure = error.output, str(error)
        except (CommandTimedOut, CRIError) as error:
            failure = str(error)
        raise HookFailed(
            f"Exec lifecycle hook ([{' '.join(command)}]) for Container {quote(container.name or '')} in Pod "
            f"{quote(full_name(pod))} failed - error: {failure}, message: {quote(output.decode(errors='replace'))}"
        )

    async def _http(self, pod: Pod, container: AnyContainer, action: HTTPGetAction, pod_ip: str) -> None:
        from ..probes.exchange import NOT_TLS, BodyFailed, ExchangeFailed, exchange
        from ..probes.outcome import ProbeError
        from ..probes.request import request_for

        try:
            if not action.host and not pod_ip:
                raise ExchangeFailed("failed to find networking container")
            request = request_for(action, container, pod_ip, "lifecycle")
            try:
                await exchange(request, None, MAX_BODY)
            except BodyFailed:
                pass  # any response counts as success
            except ExchangeFailed as error:
                if NOT_TLS not in str(error):
                    raise
                plain = replace(request, scheme="http", headers=_without_authorization(request.headers))
                await exchange(plain, None, MAX_BODY)
                self.fallbacks += 1
                self._recorder.event(
                    pod,
                    WARNING,
                    LIFECYCLE_HTTP_FALLBACK,
                    f"request to HTTPS lifecycle hook {request.authority} got HTTP response, retry with HTTP succeeded",
                )
        except (ExchangeFailed, ProbeError) as error:
            raise HookFailed(
                f"HTTP lifecycle hook ({action.path or ''}) for Container {quote(container.name or '')} in Pod "
                f"{quote(full_name(pod))} failed - error: {error}"
            ) from None


def _without_authorization(headers: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: values for name, values in headers.items() if name != "Authorization"}
