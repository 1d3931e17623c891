"""The steps of the start as `/livez`, `/readyz` and `/healthz` show them: under upstream's names of its hooks.

Those who look after API servers ask for single checks by name. Each name here stands for the step of ours that does
what upstream's hook of that name does, and is not ok before that step is done; for `/livez` it is taken on trust for as
long as --livez-grace-period says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

from .health import Check, Health


class Step(Enum):
    """The steps of the start, in this order."""

    CACHE = "everything is read"
    EXTENSIONS = "definitions are served"
    ADMISSION = "admission plugins have started"
    BOOTSTRAP = "what every cluster has is there"
    ROLES = "the default roles are there"
    AGGREGATION = "APIServices are followed"
    FLOWS = "flow schemas and priority levels are there"
    UPKEEP = "what every cluster has is looked after"


_HOOKS: Final = {
    Step.CACHE: (
        "generic-apiserver-start-informers",
        "storage-object-count-tracker-hook",
        "storage-readiness",
        "start-apiextensions-informers",
    ),
    Step.EXTENSIONS: ("start-apiextensions-controllers", "crd-informer-synced"),
    Step.ADMISSION: ("start-apiserver-admission-initializer",),
    Step.BOOTSTRAP: (
        "bootstrap-controller",
        "start-system-namespaces-controller",
        "scheduling/bootstrap-system-priority-classes",
        "start-cluster-authentication-info-controller",
        "start-kubernetes-service-cidr-controller",
        "start-legacy-token-tracking-controller",
    ),
    Step.ROLES: ("rbac/bootstrap-roles",),
    Step.AGGREGATION: (
        "start-kube-aggregator-informers",
        "apiservice-registration-controller",
        "apiservice-status-local-available-controller",
        "apiservice-status-remote-available-controller",
        "kube-apiserver-autoregistration",
        "apiservice-discovery-controller",
        "apiservice-openapi-controller",
        "apiservice-openapiv3-controller",
    ),
    Step.FLOWS: (
        "priority-and-fairness-config-producer",
        "priority-and-fairness-config-consumer",
        "priority-and-fairness-filter",
    ),
    Step.UPKEEP: (
        "start-service-ip-repair-controllers",
        "start-kube-apiserver-identity-lease-controller",
        "start-kube-apiserver-identity-lease-garbage-collector",
    ),
}


class Hooks:
    """The progress of the start."""

    def __init__(
        self, health: Health, *, flows: bool, grace: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._done: set[Step] = set()
        self._clock = clock
        self._believed_until = clock() + grace
        health.add("log", _log)
        for step, names in _HOOKS.items():
            if step is not Step.FLOWS or flows:
                for name in names:
                    health.add(f"poststarthook/{name}", self._check(step), ("healthz", "readyz"))
                    health.add(f"poststarthook/{name}", self._check(step, believing=True), ("livez",))
        health.add("autoregister-completion", self._check(Step.AGGREGATION))

    def done(self, step: Step) -> None:
        """Say that a step has been taken."""
        self._done.add(step)

    def _check(self, step: Step, *, believing: bool = False) -> Check:
        async def check() -> None:
            if step not in self._done and not (believing and self._clock() < self._believed_until):
                raise RuntimeError(f"not yet: {step.value}")

        return check


async def _log() -> None:
    """Make sure that log records can be written."""
    for handler in logging.getLogger().handlers:
        handler.flush()
