"""Asks a container once, in the way that its probe says, and tells the user what went wrong."""

from __future__ import annotations

import logging
from typing import Final

from pybernetes.api.core.v1 import Container, Pod, Probe
from pybernetes.client.events import WARNING, EventRecorder
from pybernetes.client.keys import key_of, uid_of
from pybernetes.component import klog

from ..events import PROBE_WARNING, UNHEALTHY, container_reference
from ..runtime.exec_command import CommandRunner
from ..runtime.types import full_name
from .outcome import Outcome, ProbeError, Verdict
from .ports import resolve_port
from .results import ProbeType, Result

TRIES: Final = 3
"""How often a probe is tried that could not even be asked. Upstream's number."""
log = logging.getLogger(__name__)


class Prober:
    """Runs probes, with events for failures."""

    def __init__(self, runtime: CommandRunner, recorder: EventRecorder) -> None:
        self._runtime = runtime
        self._recorder = recorder

    async def probe(
        self, type: ProbeType, spec: Probe, pod: Pod, container: Container, container_id: str, pod_ip: str
    ) -> Result | None:
        """The answer, or None if the container could not be asked."""
        about = {"probeType": str(type), "pod": key_of(pod), "podUID": uid_of(pod), "containerName": container.name}
        for left in reversed(range(TRIES)):
            try:
                outcome = await self._ask(spec, pod, container, container_id, pod_ip)
                break
            except ProbeError as error:
                if not left:
                    klog.info(log, 1, "Probe errored", **about, probeResult=str(error.state), err=error)
                    self._event(
                        pod, container, UNHEALTHY, f"{type} probe errored and resulted in {error.state} state: {error}"
                    )
                    return None
        if outcome.verdict is Verdict.WARNING:
            klog.info(log, 3, "Probe succeeded with a warning", **about, output=outcome.output)
            self._event(pod, container, PROBE_WARNING, f"{type} probe warning: {outcome.output}")
        elif outcome.verdict is Verdict.FAILURE:
            klog.info(log, 1, "Probe failed", **about, probeResult="failure", output=outcome.output)
            self._event(pod, container, UNHEALTHY, f"{type} probe failed: {outcome.output}")
            return Result.FAILURE
        else:
            klog.info(log, 3, "Probe succeeded", **about)
        return Result.SUCCESS

    async def _ask(self, spec: Probe, pod: Pod, container: Container, container_id: str, pod_ip: str) -> Outcome:
        timeout = spec.timeout_seconds or 1
        if spec.exec is not None:
            from .exec import exec_probe

            return await exec_probe(self._runtime, container, container_id, spec.exec.command or [], timeout)
        if spec.http_get is not None:
            from .http import http_probe

            return await http_probe(spec.http_get, container, pod_ip, timeout)
        if spec.tcp_socket is not None:
            from .tcp import tcp_probe

            port = resolve_port(spec.tcp_socket.port, container)
            return await tcp_probe(spec.tcp_socket.host or pod_ip, port, timeout)
        if spec.grpc is not None:
            from .grpc import grpc_probe

            return await grpc_probe(pod_ip, spec.grpc.port or 0, spec.grpc.service or "", timeout)
        raise ProbeError(f"missing probe handler for {full_name(pod)}:{container.name}")

    def _event(self, pod: Pod, container: Container, reason: str, message: str) -> None:
        self._recorder.event(container_reference(pod, container.name or ""), WARNING, reason, message)
