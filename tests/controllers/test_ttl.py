"""The larger the cluster, the longer kubelets keep Secrets and ConfigMaps."""

from __future__ import annotations

import pytest
from controllers.cluster_nodes import nodes_of
from controllers.conftest import MakeHarness

from pybernetes.controllers.ttl import ANNOTATION, STEPS, next_step


@pytest.mark.parametrize(
    ("step", "nodes", "seconds"),
    [
        (0, 0, 0),
        (0, 100, 0),
        (0, 101, 15),
        (1, 100, 15),  # a little smaller is not yet small
        (1, 90, 15),
        (1, 89, 0),
        (1, 500, 15),
        (1, 501, 30),
        (0, 5000, 300),
        (4, 1800, 300),
        (4, 1799, 60),
        (4, 3, 0),
    ],
)
def test_the_step_follows_the_size_and_lags_behind_it(step: int, nodes: int, seconds: int) -> None:
    assert STEPS[next_step(step, nodes)].seconds == seconds


async def test_nodes_get_the_annotation_and_wrong_values_are_corrected(harness: MakeHarness) -> None:
    async with harness("ttl-controller", kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add()

        async def told() -> bool:
            found = await nodes.get(name)
            return bool(found.metadata) and (found.metadata.annotations or {}).get(ANNOTATION) == "0"

        await h.until(told)
        await h.client.patch(type(await nodes.get(name)), name, {"metadata": {"annotations": {ANNOTATION: "many"}}})
        await h.until(told)
