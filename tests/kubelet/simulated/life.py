"""A simulated pod in simulated time."""

from __future__ import annotations

import json
from typing import Any

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.clock import FakeClock
from pybernetes.client.codec import decode
from pybernetes.kubelet.backoff import BackOff
from pybernetes.kubelet.simulated.behaviour import PREFIX
from pybernetes.kubelet.simulated.pod import Outcome, SimulatedPod

NOW = 1_700_000_000.0


class Life:
    """A pod that is synced when it asks for it."""

    def __init__(self, spec: dict[str, Any] | None = None, **settings: str) -> None:
        self.clock = FakeClock(NOW)
        settings = {PREFIX + key.replace("_", "-"): value for key, value in settings.items()}
        metadata = {"name": "p", "namespace": "default", "uid": "u", "annotations": settings}
        container = {"name": "c", "image": "i"}
        self.body: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [container], **(spec or {})}}
        self.backoff = BackOff(self.clock, 10, 300)
        self.simulated = self.new()
        self.status = PodStatus()
        self.events: list[tuple[str, str]] = []
        self.outcome: Outcome

    def pod(self) -> Pod:
        return decode(Pod, json.dumps(self.body).encode())

    def new(self) -> SimulatedPod:
        pod = self.pod()
        pod.status = getattr(self, "status", None)
        return SimulatedPod(pod, [], self.backoff, ["10.0.0.5"], ["192.0.2.1"])

    def sync(self) -> Outcome:
        pod = self.pod()
        pod.status = self.status
        self.outcome = self.simulated.sync(pod, self.status, self.clock.now())
        self.status = self.outcome.status
        self.status.start_time = self.status.start_time or rfc3339(self.clock.now())
        self.events += [(each.reason, each.message) for each in self.outcome.events]
        return self.outcome

    def after(self, seconds: float) -> Outcome:
        """Let time pass, and sync whenever the pod asks for it."""
        end = self.clock.now() + seconds
        while self.outcome.again_at is not None and self.outcome.again_at <= end:
            self.clock.advance(max(0.0, self.outcome.again_at - self.clock.now()))
            self.sync()
        self.clock.advance(end - self.clock.now())
        return self.outcome

    def delete(self, grace: int = 30) -> Outcome:
        self.body["metadata"]["deletionTimestamp"] = rfc3339(self.clock.now())
        self.body["metadata"]["deletionGracePeriodSeconds"] = grace
        return self.sync()

    def annotate(self, **settings: str) -> bool:
        """Change settings from now on; whether that changes anything."""
        told = {PREFIX + key.replace("_", "-"): value for key, value in settings.items()}
        self.body["metadata"]["annotations"].update(told)
        changed = self.simulated.reconsider(self.pod(), [], self.clock.now())
        self.sync()
        return changed

    @property
    def container(self) -> Any:
        return (self.status.container_statuses or [])[0]

    def condition(self, type: str) -> str | None:
        return next(each.status for each in self.status.conditions or () if each.type == type)
