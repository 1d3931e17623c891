"""Odd objects beside all controllers: none fails by a mistake of ours, retries for ever, or stops the others."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness, harness, server  # noqa: F401
from poison import objects as random_objects
from poison.controllers import odd

from pybernetes.api import errors
from pybernetes.api.apps.v1 import Deployment
from pybernetes.api.core.v1 import Pod
from pybernetes.controllers.manager import REGISTRY
from pybernetes.controllers.options import Options

OFF = {"serviceaccount-token-controller"}
"""Needs a key."""
SHORT = 160
"""Objects in the ordinary run, of the curated ones; random ones are sent in the soak."""
SOAK = 3600.0
CANARY = 120.0
"""Seconds that a canary may take."""
RATE = 20
"""Additions to a queue in a second, when nothing changes any more."""
Sent = tuple[str, dict[str, Any], dict[str, Any] | None]
"""The path of a collection, an object, and the status to give it."""


async def send(h: Harness, path: str, body: dict[str, Any], status: dict[str, Any] | None) -> bool:
    """Create an object, then write its status; whether the server took both."""
    try:
        made = await h.client.call("POST", path, body)
        if status is not None:
            await h.client.call("PUT", f"{path}/{body['metadata']['name']}/status", {**made, "status": status})
    except errors.APIError as error:
        if error.code >= 500:
            raise
        return False
    return True


async def canary(h: Harness, name: str) -> None:
    """A Deployment and a Job that must become what they should, and garbage that must go."""
    spec = {**odd.WORKLOAD, "replicas": 2}
    await h.client.call(
        "POST", f"/apis/apps/v1/namespaces/{h.namespace}/deployments", {"metadata": {"name": name}, "spec": spec}
    )

    async def available() -> bool:
        found = await h.get(Deployment, name)
        return bool(found and found.status and found.status.available_replicas == 2)

    await h.until(available, "the canary is available", CANARY)
    await h.client.delete(Deployment, name, h.namespace)
    await h.until(lambda: not h.live(Pod), "its pods are gone", CANARY)


async def storm(h: Harness, cases: Iterable[Sent], every: int) -> None:
    """Send the objects, with a canary now and then."""
    accepted = 0
    for number, case in enumerate(cases, start=1):
        accepted += await send(h, *case)
        if number % every == 0:
            await canary(h, f"canary-{number}")
    assert accepted > 10, "the server takes hardly any of them"
    await canary(h, "canary-last")
    assert not h.manager.tasks.failed, h.manager.tasks.check()
    await at_rest(h)


async def at_rest(h: Harness) -> None:
    """Failing keys are retried with a growing delay."""
    count = h.manager.context.metrics.counter("workqueue_adds_total", "", ("name",))
    for _ in range(60):
        before = dict(count.values)
        began = h.clock.monotonic()
        await h.until(lambda: h.clock.monotonic() - began > 1, "a second has passed")  # noqa: B023
        busy = {name: now - before.get(name, 0.0) for name, now in count.values.items()}
        busy = {name: number for name, number in busy.items() if number > RATE}
        if not busy:
            return
    raise AssertionError(f"added to queues within a second, at rest: {busy}")


def random_ones(seed: int) -> Iterator[Sent]:
    """Odd objects of every kind in the namespace of the curated ones."""
    for each in random_objects.sequence(seed):
        yield each.collection, each.body, each.status


async def prepare(h: Harness) -> None:
    """The namespace, with room for so many pods: an odd number of replicas is a great many."""
    path = "/api/v1/namespaces"
    await h.client.call("POST", path, {"metadata": {"name": random_objects.NAMESPACE}})
    with contextlib.suppress(errors.AlreadyExists):
        await h.client.call(
            "POST", f"{path}/{random_objects.NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}}
        )
    quota = {"metadata": {"name": "room"}, "spec": {"hard": {"count/pods": "200", "count/jobs.batch": "200"}}}
    await h.client.call("POST", f"{path}/{random_objects.NAMESPACE}/resourcequotas", quota)


NAMES = [name for name in REGISTRY if name not in OFF]
OPTIONS = Options(allocate_node_cidrs=True, cluster_cidr="10.10.0.0/16")


async def test_odd_objects_stop_no_controller(harness: MakeHarness) -> None:  # noqa: F811
    cases = list(odd.objects(random_objects.NAMESPACE))
    chosen = random.Random(1).sample(cases, SHORT)
    async with harness(*NAMES, options=OPTIONS) as h:
        await prepare(h)
        await storm(h, chosen, every=SHORT)


@pytest.mark.soak
async def test_odd_objects_stop_no_controller_for_an_hour(harness: MakeHarness) -> None:  # noqa: F811
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    async with harness(*NAMES, options=OPTIONS) as h:
        await prepare(h)
        end = h.clock.monotonic() + SOAK
        while_time = itertools.takewhile(lambda _: h.clock.monotonic() < end, random_ones(seed))
        await storm(h, itertools.chain(odd.objects(random_objects.NAMESPACE), while_time), every=200)
