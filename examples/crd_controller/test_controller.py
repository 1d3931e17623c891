"""The controller beside a cluster of its own; then as a part of a simulated cluster, with crashes and slow networks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybernetes.api import errors
from pybernetes.simulation import simulate

HERE = Path(__file__).parent
GREETING = {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "hello"}, "spec": {"text": "hi"}}


@pytest.fixture
def controller(pyb_environment, pyb_client):
    """The controller as a program beside the cluster, as in production."""
    pyb_client.apply(HERE / "crd.yaml")
    pyb_client.wait_for("crd", "greetings.example.com", "Established")
    with subprocess.Popen([sys.executable, HERE / "controller.py"], env=pyb_environment) as process:
        yield process
        process.terminate()


def test_a_greeting_gets_its_config_map_and_takes_it_along(controller, pyb_client):
    pyb_client.create(GREETING)
    found = pyb_client.wait_for("configmaps", "hello", lambda each: each["data"] == {"text": "hi"})
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Greeting"
    pyb_client.wait_for("greetings", "hello", lambda each: each.get("status", {}).get("configMap") == "hello")
    pyb_client.delete("greetings", "hello")
    pyb_client.wait_for("configmaps", "hello", "deleted")


def test_a_config_map_that_cannot_be_written_is_written_later(controller, pyb_client, pyb_cluster):
    with pyb_cluster.faults.refuse(500, resources="configmaps", user_agents="greetings*", times=2) as fault:
        pyb_client.create(GREETING)
        pyb_client.wait_for("configmaps", "hello", lambda each: each["data"]["text"] == "hi")
        assert fault.hits == 2


@simulate(seeds=3, nodes=1)
async def test_whatever_happens_the_config_map_has_the_text(sim):
    sys.path.insert(0, str(HERE))
    import controller

    await sim.apply(str(HERE / "crd.yaml"))
    sim.start(controller.run, "greetings")

    async def served():
        try:
            return await sim.list("greetings") is not None
        except (ValueError, errors.APIError):
            return False

    await sim.until(served, within=300)
    await sim.create(GREETING)
    for text in ("hi", "there"):
        await sim.patch("greetings", "hello", {"spec": {"text": text}})

        async def written(text=text):
            return (await sim.get("configmaps", "hello"))["data"]["text"] == text

        await sim.until(written, within=600)
