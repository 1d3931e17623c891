"""Preemption with a real API server: the victims, the events, and the result."""

from __future__ import annotations

from typing import Any

from scheduler.fake_extender import FakeExtender

from pybernetes.api.core.v1 import Pod
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from pybernetes.client.keys import key_of


async def test_a_less_important_pod_makes_room(live: Any) -> None:
    async with live() as h:
        await h.priority_class("high", 1000)
        node = await h.node("n1", cpu="2")
        await h.pod("low", cpu="1500m", grace=30)
        await h.bound("low")
        high = await h.pod("high", cpu="1", priority_class_name="high")

        async def nominated() -> Any:
            return ((await h.get("high")).status or None).nominated_node_name

        assert await h.until(nominated, "the pod is nominated") == "n1"
        low = await h.until(lambda: _deleting(h, "low"), "the victim is being deleted")
        condition = low.status.conditions[-1]
        assert condition.type == "DisruptionTarget"
        assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
        assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
        assert await h.refused("high") == "0/1 nodes are available: 1 Insufficient cpu."
        (event,) = await h.until(lambda: h.events("Preempted"), "the victim's event")
        assert event.message == f"Preempted by pod {high.metadata.uid} on node n1"
        assert (event.type, event.involved_object.name) == ("Normal", "low")
        known = h.scheduler.handlers.pod
        await h.until(lambda: known(key_of(low)).metadata.deletion_timestamp, "the scheduler has heard of it")
        # Tried again while the victim ends, the pod does not preempt again.
        node.status.allocatable["cpu"] = "2100m"
        await h.client.update_status(node)
        waiting = "preemption: not eligible due to a terminating pod on the nominated node."

        async def waits() -> bool:
            return (await h.refused("high")).endswith(waiting)

        await h.until(waits, "the pod waits for its victim")
        await h.client.delete(Pod, "low", h.namespace, grace_period_seconds=0)
        assert await h.bound("high") == "n1"


async def _deleting(h: Any, name: str) -> Pod | None:
    pod = await h.get(name)
    return pod if pod and pod.metadata.deletion_timestamp else None


async def test_as_few_as_possible_go_and_the_least_important(live: Any) -> None:
    async with live() as h:
        for name, value in (("p1", 1), ("p2", 2), ("p9", 9)):
            await h.priority_class(name, value)
        await h.node("n1", cpu="4")
        for name, cpu, priority in (("one", "1", "p1"), ("two", "1", "p2"), ("zero", "1", None), ("big", "1", "p9")):
            await h.pod(name, cpu=cpu, priority_class_name=priority)
            await h.bound(name)
        await h.pod("wanted", cpu="2", priority_class_name="p9")
        await h.bound("wanted")
        left = sorted(each.metadata.name for each in (await h.client.list(Pod, h.namespace)).items)
        assert left == ["big", "two", "wanted"]
        await h.until(lambda: _preempted(h, "one", "zero"), "the victims' events")
        # Tried again before it has heard of the victims' end, the pod preempts once more.
        counted = h.scheduler.metrics.registry.render().decode()
        assert _value(counted, "scheduler_preemption_attempts_total") >= 1
        assert _value(counted, "scheduler_preemption_victims_sum") >= 2
        assert _value(counted, 'scheduler_preemption_goroutines_execution_total{result="success"}') >= 1


async def _preempted(h: Any, *names: str) -> bool:
    return {each.involved_object.name for each in await h.events("Preempted")} == set(names)


def _value(metrics: str, name: str) -> float:
    """The value of a sample."""
    return next(float(line.rpartition(" ")[2]) for line in metrics.splitlines() if line.startswith(f"{name} "))


async def test_a_node_where_no_budget_is_broken_is_preferred(live: Any) -> None:
    async with live() as h:
        await h.priority_class("high", 1000)
        await h.node("n1", cpu="2", labels={"n": "1"})
        await h.node("n2", cpu="2", labels={"n": "2"})
        await h.pod("a", cpu="2", labels={"app": "a"}, node_selector={"n": "1"})
        await h.bound("a")
        await h.pod("b", cpu="2", labels={"app": "b"}, node_selector={"n": "2"})
        await h.bound("b")
        budget = await h.client.create(
            PodDisruptionBudget(
                metadata=ObjectMeta(name="a", namespace=h.namespace),
                spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "a"}), min_available=1),
            )
        )
        budget.status = PodDisruptionBudgetStatus(disruptions_allowed=0, observed_generation=1)
        await h.client.update_status(budget)
        plugin = h.scheduler.frameworks["default-scheduler"].plugins["DefaultPreemption"]
        await h.until(lambda: bool(plugin._current_budgets()), "the scheduler knows the budget")
        await h.pod("high", cpu="2", priority_class_name="high")
        assert await h.bound("high") == "n2"
        assert await h.get("a") is not None


async def test_events_of_pods_that_may_not_or_cannot_preempt(live: Any) -> None:
    async with live() as h:
        await h.priority_class("polite", 1000, "Never")
        await h.priority_class("high", 1000)
        await h.node("n1", cpu="2")
        await h.node("n2", cpu="2", unschedulable=True)
        await h.pod("low", cpu="1500m")
        await h.bound("low")
        await h.pod("polite", cpu="1", priority_class_name="polite")
        await h.pod("peer", cpu="1")
        await h.pod("huge", cpu="3", priority_class_name="high")
        head = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
        head += "no new claims to deallocate, preemption: "
        assert await h.refused("polite") == head + "not eligible due to preemptionPolicy=Never."
        assert await h.refused("peer") == (
            head + "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling."
        )
        assert await h.refused("huge") == (
            head + "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )
        assert await h.get("low") is not None


async def test_a_nomination_of_lower_priority_is_cleared(live: Any) -> None:
    async with live() as h:
        for name, value in (("p1", 10), ("p2", 20)):
            await h.priority_class(name, value)
        await h.node("n1", cpu="2")
        await h.pod("low", cpu="2", grace=30)
        await h.bound("low")
        await h.pod("middle", cpu="2", priority_class_name="p1")

        async def nominated(name: str) -> str | None:
            return (await h.get(name)).status.nominated_node_name

        assert await h.until(lambda: nominated("middle")) == "n1"
        await h.until(lambda: _deleting(h, "low"))
        await h.pod("other", cpu="1m")
        # `low` is being deleted already, so the more important pod has no victim of its own, but takes the place.
        await h.pod("high", cpu="2", priority_class_name="p2")
        assert await h.until(lambda: nominated("high")) == "n1"
        await h.client.delete(Pod, "low", h.namespace, grace_period_seconds=0)
        assert await h.bound("high") == "n1"
        assert not (await h.get("middle")).spec.node_name


async def test_pods_with_affinity_are_looked_at_one_by_one(live: Any) -> None:
    async with live() as h:
        await h.priority_class("high", 1000)
        await h.node("n1", cpu="2", labels={"kubernetes.io/hostname": "n1"})
        shy: dict[str, Any] = {
            "pod_anti_affinity": {
                "required_during_scheduling_ignored_during_execution": [
                    {
                        "topology_key": "kubernetes.io/hostname",
                        "label_selector": {"match_labels": {"app": "web"}},
                    }
                ]
            }
        }
        await h.pod("low", labels={"app": "web"}, cpu="100m")
        await h.pod("bystander", labels={"app": "db"}, cpu="100m")
        await h.bound("low")
        await h.bound("bystander")
        await h.pod("high", labels={"app": "web"}, affinity=_affinity(shy), priority_class_name="high", cpu="100m")
        assert await h.bound("high") == "n1"
        assert await h.get("low") is None
        assert await h.get("bystander") is not None


def _affinity(fields: dict[str, Any]) -> Any:
    from pybernetes.api.core.v1.affinity import Affinity, PodAffinityTerm, PodAntiAffinity

    (term,) = fields["pod_anti_affinity"]["required_during_scheduling_ignored_during_execution"]
    selector = LabelSelector(match_labels=term["label_selector"]["match_labels"])
    return Affinity(
        pod_anti_affinity=PodAntiAffinity(
            required_during_scheduling_ignored_during_execution=[
                PodAffinityTerm(topology_key=term["topology_key"], label_selector=selector)
            ]
        )
    )


async def test_an_extender_takes_part_in_choosing_victims(live: Any) -> None:
    def preempt(args: dict[str, Any]) -> Any:
        return {
            "NodeNameToMetaVictims": {
                name: each for name, each in args["NodeNameToMetaVictims"].items() if name == "n2"
            }
        }

    with FakeExtender({"preempt": preempt}) as extender:
        text = f"extenders: [{{urlPrefix: '{extender.url}', preemptVerb: preempt, nodeCacheCapable: true}}]\n"
        async with live(text) as h:
            await h.priority_class("high", 1000)
            for node in ("n1", "n2"):
                await h.node(node, cpu="2", labels={"n": node})
                await h.pod(f"low-{node}", cpu="2", node_selector={"n": node})
                await h.bound(f"low-{node}")
            await h.pod("high", cpu="2", priority_class_name="high")
            assert await h.bound("high") == "n2"
            assert await h.get("low-n1") is not None
        sent = extender.asked[0][1]["NodeNameToMetaVictims"]
        assert sorted(sent) == ["n1", "n2"]
