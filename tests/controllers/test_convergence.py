"""Whatever is done to a namespace, and whatever goes wrong meanwhile, the end is what the specs ask for.

Random edits of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs, pods that are deleted or taken away from
their owners, deletions in all three ways, a controller-manager that is started anew, watches that are cut, refused and
lost writes. When all that is over: every owner has exactly its pods, no pod is made twice, none is left behind.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness

from pybernetes.api import errors
from pybernetes.client.http import ConnectionFailed

CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "garbage-collector-controller",
    "endpointslice-controller",
    "disruption-controller",
    "pod-garbage-collector-controller",
)
NODES = 3
STEPS = 60
FINALIZER = "batch.kubernetes.io/job-tracking"
APPS = {"deployments", "replicasets", "statefulsets", "daemonsets"}


class Chaos:
    """Does something at random to one namespace, and knows what must come of it."""

    def __init__(self, h: Harness, seed: int) -> None:
        self.h = h
        self.random = random.Random(seed)
        self.numbers = iter(range(1, 1000))
        self.orphaned: set[str] = set()  # uids of owners whose dependents were to stay

    def path(self, plural: str, name: str = "") -> str:
        group = "/apis/apps/v1" if plural in APPS else "/apis/batch/v1" if plural == "jobs" else "/api/v1"
        return f"{group}/namespaces/{self.h.namespace}/{plural}" + (f"/{name}" if name else "")

    async def items(self, plural: str) -> list[dict[str, Any]]:
        found: dict[str, Any] = await self.h.client.call("GET", self.path(plural))
        return found["items"]

    async def step(self) -> None:
        """One thing; that the object is gone or has changed meanwhile is part of the game."""
        often = (self.create, self.scale, self.kill_pods)
        rare = (self.roll, self.pause, self.delete, self.steal_pod, self.disturb, self.restart)
        what = self.random.choice((*often, *often, *rare))
        try:
            await what()
        except (errors.NotFound, errors.Conflict):
            pass

    async def create(self) -> None:
        plural = self.random.choice(("deployments", "replicasets", "statefulsets", "daemonsets", "jobs"))
        name = f"{plural[0]}{next(self.numbers)}"
        labels = {"app": name}
        template: dict[str, Any] = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "example/1"}]},
        }
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
        if plural == "jobs":
            spec = {"completions": self.random.randint(1, 5), "parallelism": self.random.randint(1, 3)}
            spec |= {"completionMode": self.random.choice(("Indexed", "NonIndexed")), "backoffLimit": 50}
            template["spec"]["restartPolicy"] = "Never"
            template["metadata"]["annotations"] = {"fake-kubelet/exit-code": "0"}
            spec["template"] = template
        elif plural != "daemonsets":
            spec["replicas"] = self.random.randint(0, 4)
        if plural == "statefulsets":
            spec["podManagementPolicy"] = self.random.choice(("OrderedReady", "Parallel"))
        await self.h.client.call(
            "POST", self.path(plural), {"metadata": {"name": name, "labels": labels}, "spec": spec}
        )

    async def _pick(self, *plurals: str) -> tuple[str, dict[str, Any]] | None:
        plural = self.random.choice(plurals)
        items = [item for item in await self.items(plural) if not item["metadata"].get("ownerReferences")]
        return (plural, self.random.choice(items)) if items else None

    async def _patch(self, plural: str, name: str, patch: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        await self.h.client.call("PATCH", self.path(plural, name), patch, headers=headers)

    async def scale(self) -> None:
        if picked := await self._pick("deployments", "replicasets", "statefulsets"):
            plural, item = picked
            await self._patch(plural, item["metadata"]["name"], {"spec": {"replicas": self.random.randint(0, 5)}})

    async def roll(self) -> None:
        if picked := await self._pick("deployments", "statefulsets", "daemonsets"):
            plural, item = picked
            containers = [{"name": "c", "image": f"example/{next(self.numbers)}"}]
            await self._patch(
                plural, item["metadata"]["name"], {"spec": {"template": {"spec": {"containers": containers}}}}
            )

    async def pause(self) -> None:
        if picked := await self._pick("deployments"):
            plural, item = picked
            paused = not item["spec"].get("paused", False)
            await self._patch(plural, item["metadata"]["name"], {"spec": {"paused": paused}})

    async def delete(self) -> None:
        if picked := await self._pick(*APPS, "jobs"):
            plural, item = picked
            policy = self.random.choice(("Foreground", "Background", "Orphan"))
            await self.h.client.call(
                "DELETE", self.path(plural, item["metadata"]["name"]), {"propagationPolicy": policy}
            )
            if policy == "Orphan":
                self.orphaned.add(item["metadata"]["uid"])

    async def kill_pods(self) -> None:
        pods = await self.items("pods")
        for pod in self.random.sample(pods, min(len(pods), self.random.randint(1, 3))):
            await self.h.client.call("DELETE", self.path("pods", pod["metadata"]["name"]))

    async def steal_pod(self) -> None:
        pods = [pod for pod in await self.items("pods") if _owner(pod, "ReplicaSet")]
        if pods:
            await self._patch(
                "pods", self.random.choice(pods)["metadata"]["name"], {"metadata": {"labels": {"app": "x"}}}
            )

    async def disturb(self) -> None:
        faults = self.h.faults
        faults.conflict, faults.unavailable, faults.lost = (self.random.choice((0.0, 0.05, 0.15)) for _ in range(3))
        if self.random.random() < 0.5:
            faults.cut()

    async def restart(self) -> None:
        await self.h.restart()

    async def problems(self) -> list[str]:
        """What is not yet, or not, as it must be."""
        pods = await self.items("pods")
        found = [f"pod {_name(pod)} is being deleted" for pod in pods if pod["metadata"].get("deletionTimestamp")]
        owners: dict[str, dict[str, Any]] = {}
        for plural in (*APPS, "jobs"):
            for item in await self.items(plural):
                if item["metadata"].get("deletionTimestamp"):
                    found.append(f"{plural} {_name(item)} is being deleted")
                owners[item["metadata"]["uid"]] = item | {"plural": plural}
        by_owner: dict[str, list[dict[str, Any]]] = {uid: [] for uid in owners}
        for pod in pods:
            for reference in pod["metadata"].get("ownerReferences", ()):
                if reference["uid"] not in owners:
                    found.append(f"pod {_name(pod)} belongs to {reference['kind']} {reference['name']}, which is gone")
                else:
                    by_owner[reference["uid"]].append(pod)
        for uid, owner in owners.items():
            found += getattr(self, f"_{owner['plural']}")(owner, by_owner[uid], owners)
        return found

    def _deployments(self, owner: dict[str, Any], pods: list[Any], owners: dict[str, dict[str, Any]]) -> list[str]:
        sets = [each for each in owners.values() if _owner(each, "Deployment") == owner["metadata"]["uid"]]
        wanted, status = owner["spec"]["replicas"], owner.get("status", {})
        if sum(each["spec"]["replicas"] for each in sets) != wanted:
            return [f"{_name(owner)}: its ReplicaSets want {[each['spec']['replicas'] for each in sets]}, not {wanted}"]
        image = _image(owner["spec"]["template"]["spec"])
        old = [each for each in sets if each["spec"]["replicas"] and _image(each["spec"]["template"]["spec"]) != image]
        if old:
            return [f"{_name(owner)}: {_name(old[0])} is of an old template"]
        if (
            status.get("availableReplicas", 0) != wanted
            or status.get("observedGeneration") != owner["metadata"]["generation"]  # absent before the first sync
        ):
            return [f"{_name(owner)}: {status}"]
        return []

    def _replicasets(self, owner: dict[str, Any], pods: list[Any], owners: object) -> list[str]:
        wanted, status = owner["spec"]["replicas"], owner.get("status", {})
        if len(pods) != wanted or status.get("availableReplicas", 0) != wanted:
            return [f"{_name(owner)}: {len(pods)} pods of {wanted}, {status}"]
        return []

    def _statefulsets(self, owner: dict[str, Any], pods: list[Any], owners: object) -> list[str]:
        wanted, status = owner["spec"]["replicas"], owner.get("status", {})
        names = sorted(_name(pod) for pod in pods)
        image = _image(owner["spec"]["template"]["spec"])
        if names != [f"{_name(owner)}-{ordinal}" for ordinal in range(wanted)]:
            return [f"{_name(owner)}: {names}, wanted {wanted}"]
        if any(_image(pod["spec"]) != image for pod in pods) or status.get("availableReplicas", 0) != wanted:
            return [f"{_name(owner)}: {[_image(pod['spec']) for pod in pods]}, {status}"]
        return []

    def _daemonsets(self, owner: dict[str, Any], pods: list[Any], owners: object) -> list[str]:
        image, status = _image(owner["spec"]["template"]["spec"]), owner.get("status", {})
        nodes = sorted(_node(pod) for pod in pods)
        if len(nodes) != NODES or len(set(nodes)) != NODES or any(_image(pod["spec"]) != image for pod in pods):
            return [f"{_name(owner)}: on {nodes}, {[_image(pod['spec']) for pod in pods]}"]
        return [] if status.get("numberAvailable", 0) == NODES else [f"{_name(owner)}: {status}"]

    def _jobs(self, owner: dict[str, Any], pods: list[Any], owners: object) -> list[str]:
        status = owner.get("status", {})
        held = [_name(pod) for pod in pods if FINALIZER in pod["metadata"].get("finalizers", ())]
        complete = any(each["type"] == "Complete" and each["status"] == "True" for each in status.get("conditions", ()))
        if not complete or status["succeeded"] != owner["spec"]["completions"] or held:
            return [f"{_name(owner)}: {status}, held {held}"]
        # A creation whose answer was lost is repeated if the pod is not seen first, upstream too: both may finish.
        if owner["spec"]["completionMode"] == "Indexed" and not self.h.faults.lost_creations:
            indexes = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods]
            if len(set(indexes)) != len(indexes):
                return [f"{_name(owner)}: an index was done twice: {indexes}"]
        return []


def _name(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def _owner(obj: dict[str, Any], kind: str) -> str:
    return next((each["uid"] for each in obj["metadata"].get("ownerReferences", ()) if each["kind"] == kind), "")


def _image(spec: dict[str, Any]) -> str:
    return str(spec["containers"][0]["image"])


def _node(pod: dict[str, Any]) -> str:
    term = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(term["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


async def _converges(harness: MakeHarness, seed: int, steps: int) -> None:
    async with harness(*CONTROLLERS, tolerate=(errors.APIError, ConnectionFailed)) as h:
        for number in range(NODES):
            try:
                await h.client.call("POST", "/api/v1/nodes", {"metadata": {"name": f"node-{number}"}})
            except errors.AlreadyExists:
                pass
        chaos = Chaos(h, seed)
        for _ in range(steps):
            await chaos.step()
            if chaos.random.random() < 0.4:
                h.clock.advance(chaos.random.choice((0.5, 5, 60)))
        h.faults.stop()
        for item in await chaos.items("deployments"):  # one that is paused stays in the middle of whatever it did
            await chaos._patch("deployments", _name(item), {"spec": {"paused": False}})
        last: list[str] = []

        async def right() -> bool:
            h.clock.advance(1)  # back-off need not be waited for
            last[:] = await chaos.problems()
            return not last

        async def right_and_at_rest() -> bool:
            # It may be right for a moment before the last edit is acted on, and a delayed retry is no work yet.
            if not await right():
                return False
            await h.settled()
            h.clock.advance(60)
            await h.settled()
            return await right()

        try:
            await h.until(right_and_at_rest, "everything is as its spec asks for, and stays so", within=180)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(last)) from None


async def test_a_deployment_without_a_status_is_a_problem_and_no_crash_of_the_check(harness: MakeHarness) -> None:
    async with harness("garbage-collector-controller") as h:
        chaos = Chaos(h, 0)
        labels = {"matchLabels": {"app": "new"}}
        template = {
            "metadata": {"labels": {"app": "new"}},
            "spec": {"containers": [{"name": "c", "image": "example/1"}]},
        }
        spec = {"replicas": 0, "selector": labels, "template": template}
        await h.client.call("POST", chaos.path("deployments"), {"metadata": {"name": "new"}, "spec": spec})
        assert [each for each in await chaos.problems() if each.startswith("new: ")]


@pytest.mark.parametrize("seed", range(3))
async def test_the_end_is_what_the_specs_ask_for(harness: MakeHarness, seed: int) -> None:
    await _converges(harness, seed, STEPS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
async def test_the_end_is_what_the_specs_ask_for_many_times(harness: MakeHarness, seed: int) -> None:
    await _converges(harness, seed, 3 * STEPS)
