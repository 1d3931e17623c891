"""Whatever the server refuses or answers too late: each pod is counted once, and the Job ends."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from pybernetes.api import errors
from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1 import Pod

NAME = "job-controller"


def make_flaky(client: Any, rate: float, chance: random.Random) -> None:
    """Requests fail before they are sent, or (not creations) their answers are lost."""
    for verb in ("create", "patch", "update_status", "delete"):
        real = getattr(client, verb)

        async def flaky(*args: Any, real: Any = real, verb: str = verb, **options: Any) -> Any:
            if chance.random() < rate:
                raise errors.ServiceUnavailable("the server is out for lunch")
            if verb == "update_status" and chance.random() < rate:
                raise errors.Conflict("batch", "jobs", "work", errors.MODIFIED)
            answer = await real(*args, **options)
            if verb != "create" and chance.random() < rate:
                raise TimeoutError
            return answer

        setattr(client, verb, flaky)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
async def test_each_pod_counts_once_on_a_flaky_server(harness, mode: str, seed: int) -> None:
    chance = random.Random(seed)
    async with harness(NAME) as h:
        make_flaky(h.controller(NAME).client, 0.15, chance)
        template = {
            "metadata": {"annotations": {"fake-kubelet/exit-code": "0"}},
            "spec": {"restartPolicy": "Never", "nodeName": "node", "containers": [{"name": "main", "image": "i"}]},
        }
        spec = {"completions": 15, "parallelism": 5, "completionMode": mode, "template": template}
        await h.client.create(
            msgspec.convert({"metadata": {"name": "work", "namespace": h.namespace}, "spec": spec}, Job)
        )

        async def over() -> Job | None:
            h.clock.advance(1)  # refused requests are repeated after a second or more
            found = await h.get(Job, "work")
            kinds = [each.type for each in found.status.conditions or ()]
            return found if "Complete" in kinds or "Failed" in kinds else None

        done = await h.until(over, "the Job is over", within=30)
        status = done.status
        assert [each.type for each in status.conditions] == ["SuccessCriteriaMet", "Complete"]
        assert (status.succeeded, status.failed, status.active) == (15, None, None)
        pods = await h.list(Pod)
        assert len(pods) == 15

        def free() -> bool:
            return not any(pod.metadata.finalizers for pod in h.cached(Pod))

        await h.until(free, "no pod is held")
