"""A scenario that asks much of the controllers: workloads come, change and go while components crash.

At the end everything must be as its spec asks for, and nothing may be left behind.
"""

from __future__ import annotations

import random
from typing import Any

from pybernetes.api import errors
from pybernetes.simulation.world import Simulation

NODES = 2
STEPS = 25
KINDS = ("deployments", "statefulsets", "daemonsets", "jobs", "replicasets")
KIND_OF = {
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "jobs": "Job",
    "replicasets": "ReplicaSet",
}
POLICIES = ("Foreground", "Background")


def workload(plural: str, name: str, chance: random.Random) -> dict[str, Any]:
    """An object of a kind."""
    labels = {"app": name}
    pod: dict[str, Any] = {"containers": [{"name": "main", "image": "example/1"}]}
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}}
    if plural == "jobs":
        pod["restartPolicy"] = "Never"
        spec = {"completions": chance.randint(1, 4), "parallelism": chance.randint(1, 3), "backoffLimit": 50}
        spec["completionMode"] = chance.choice(("Indexed", "NonIndexed"))
    elif plural != "daemonsets":
        spec["replicas"] = chance.randint(0, 4)
    if plural == "statefulsets":
        spec["podManagementPolicy"] = chance.choice(("OrderedReady", "Parallel"))
    template = {"metadata": {"labels": labels}, "spec": pod}
    version = "batch/v1" if plural == "jobs" else "apps/v1"
    content = {"apiVersion": version, "kind": KIND_OF[plural], "metadata": {"name": name, "labels": labels}}
    return {**content, "spec": {**spec, "template": template}}


class Churn:
    """The namespace, and what is done to it."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.chance = random.Random(f"churn {sim.seed}")
        self.made = 0

    async def step(self) -> None:
        """Do one thing."""
        todo = self.chance.choice((self.create, self.create, self.scale, self.scale, self.roll, self.kill, self.delete))
        try:
            await todo()
        except (errors.NotFound, errors.Conflict):
            pass  # it has gone or changed meanwhile

    async def create(self) -> None:
        self.made += 1
        plural = self.chance.choice(KINDS)
        await self.sim.create(workload(plural, f"{plural[0]}{self.made}", self.chance))

    async def pick(self, *plurals: str) -> tuple[str, str] | None:
        plural = self.chance.choice(plurals)
        found = [each for each in await self.sim.list(plural) if not each["metadata"].get("ownerReferences")]
        return (plural, self.chance.choice(found)["metadata"]["name"]) if found else None

    async def scale(self) -> None:
        if picked := await self.pick("deployments", "statefulsets", "replicasets"):
            await self.sim.patch(*picked, {"spec": {"replicas": self.chance.randint(0, 5)}})

    async def roll(self) -> None:
        if picked := await self.pick("deployments", "statefulsets", "daemonsets"):
            containers = [{"name": "main", "image": f"example/{self.chance.randint(2, 9)}"}]
            await self.sim.patch(*picked, {"spec": {"template": {"spec": {"containers": containers}}}})

    async def kill(self) -> None:
        if picked := await self.pick_pod():
            await self.sim.delete("pods", picked)

    async def pick_pod(self) -> str | None:
        found = await self.sim.list("pods")
        return str(self.chance.choice(found)["metadata"]["name"]) if found else None

    async def delete(self) -> None:
        if picked := await self.pick(*KINDS):
            await self.sim.delete(*picked, propagation=self.chance.choice(POLICIES))

    async def problems(self) -> list[str]:
        """What is not as it must be."""
        pods = await self.sim.list("pods")
        found = [f"pod {name(each)} is being deleted" for each in pods if each["metadata"].get("deletionTimestamp")]
        owners = {}
        for plural in KINDS:
            for each in await self.sim.list(plural):
                owners[each["metadata"]["uid"]] = each
                mine = [pod for pod in pods if each["metadata"]["uid"] in controllers(pod)]
                if each["metadata"].get("deletionTimestamp"):
                    found.append(f"{name(each)} is being deleted")
                elif wrong := wrong_with(plural, each, mine):
                    found.append(f"{plural} {name(each)}: {wrong}")
        found += [f"pod {name(pod)} has no owner" for pod in pods if not controllers(pod) & set(owners)]
        return found


def wrong_with(plural: str, content: dict[str, Any], pods: list[Any]) -> str:
    """What is wrong with an object; nothing if it is as its spec asks for."""
    spec, status = content["spec"], content.get("status", {})
    images = {each["spec"]["containers"][0]["image"] for each in pods}
    wanted = spec["template"]["spec"]["containers"][0]["image"]
    if plural == "jobs":
        conditions = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
        done = "Complete" in conditions and status.get("succeeded") == spec["completions"]
        held = [name(pod) for pod in pods if pod["metadata"].get("finalizers")]
        return "" if done and not held else f"{status}, held {held}"
    if status.get("observedGeneration") != content["metadata"]["generation"]:
        return "its last change has not been seen"
    if plural == "daemonsets":
        nodes = sorted(each["spec"].get("nodeName", "") for each in pods)
        right = len(nodes) == len(set(nodes)) == status.get("numberAvailable", 0) == NODES and images == {wanted}
        return "" if right else f"on {nodes}, {images}, {status}"
    replicas = spec["replicas"]
    if status.get("availableReplicas", 0) != replicas or status.get("replicas", 0) != replicas:
        return f"{status}, not {replicas}"
    if plural == "deployments":
        return "" if status.get("updatedReplicas", 0) == replicas else f"{status}, not all of the last template"
    if len(pods) != replicas:
        return f"{len(pods)} pods, not {replicas}"
    if plural == "statefulsets":
        names = sorted(map(name, pods))
        right = names == [f"{name(content)}-{number}" for number in range(replicas)] and images <= {wanted}
        return "" if right else f"{names}, {images}"
    return ""


def controllers(content: dict[str, Any]) -> set[str]:
    """The uids of what controls an object."""
    return {each["uid"] for each in content["metadata"].get("ownerReferences", ()) if each.get("controller")}


def name(content: dict[str, Any]) -> str:
    """Of an object."""
    return str(content["metadata"]["name"])


async def churn(sim: Simulation) -> None:
    """Everything is in the end as its spec asks for, and stays so."""
    doing = Churn(sim)
    for _ in range(STEPS):
        await doing.step()
        await sim.sleep(doing.chance.uniform(0, 12))
    last: list[str] = []

    async def everything_is_as_asked_for() -> bool:
        last[:] = await doing.problems()
        return not last

    for _ in range(2):
        try:
            await sim.until(everything_is_as_asked_for, within=1800)
        except AssertionError as error:
            raise AssertionError(f"{error}: {'; '.join(last[:5])}") from None
        await sim.sleep(120)
