"""Each bug is found by a seed, which fails in the same way again, and needs the faults that are its cause."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pybernetes.simulation import Faults, SimulationFailed, simulate

sys.path.insert(0, str(Path(__file__).parent))
import controllers

LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


def deployment(name, replicas=1):
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config_map(name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


@simulate(seeds=1000, nodes=1, faults=Faults(slow=0.1, crashes=0, resets=0))
async def stale_state(sim):
    live = set()

    def no_live_one_is_deleted(before, after):
        kind, content = (before or after).get("kind"), before or after
        if kind == "Deployment" and after:
            live.add(content["metadata"]["name"])
        if kind == "ConfigMap" and after is None:
            owner = (content["metadata"].get("labels") or {}).get(controllers.FOR)
            if owner in live:
                return f"the ConfigMap of Deployment {owner}, which is there, was deleted"
        return None

    sim.always(no_live_one_is_deleted)
    sim.start(controllers.clean_up)
    await sim.sleep(10)
    for number in range(10):
        await sim.create(deployment(f"web-{number}", 0))
        await sim.create(config_map(f"web-{number}", **{controllers.FOR: f"web-{number}"}))
        await sim.sleep(2)


@simulate(seeds=1000, nodes=1, faults=Faults(crashes=3, within=60.0, resets=0, slow=0.0))
async def unobserved_state(sim):
    sim.start(controllers.count)
    await sim.create(deployment("web", 4))

    async def four_are_counted():
        return (await sim.get("configmaps", "count"))["data"]["pods"] == "4"

    await sim.until(four_are_counted, within=300)
    await sim.sleep(120)
    await sim.until(four_are_counted, within=60)


@simulate(seeds=1000, nodes=1, faults=Faults(crashes=3, within=60.0, resets=0, slow=0.0))
async def intermediate_state(sim):
    sim.start(controllers.provision)
    for number in range(5):
        await sim.create(config_map(f"wants-{number}", **{"wants-secret": "yes"}))
        await sim.sleep(10)

    async def all_have_one():
        return len([each for each in await sim.list("secrets") if each["metadata"]["name"].startswith("wants")]) == 5

    await sim.until(all_have_one, within=300)


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (stale_state, "no_live_one_is_deleted: the ConfigMap of Deployment web-"),
        (unobserved_state, "four_are_counted does not hold"),
        (intermediate_state, "all_have_one does not hold"),
    ],
    ids=["stale", "unobserved", "intermediate"],
)
def test_the_bug_is_found_and_its_seed_fails_alike_again(scenario, message, monkeypatch):
    with pytest.raises(SimulationFailed, match=message) as found:
        scenario()
    text = str(found.value)
    assert "enough are: " in text
    monkeypatch.setenv("PYB_SEED", text.split()[1])
    with pytest.raises(SimulationFailed) as again:
        scenario()
    assert str(again.value) == text
