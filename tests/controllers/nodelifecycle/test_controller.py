"""Nodes that are not well are noticed, and pods leave them."""

from __future__ import annotations

import asyncio

from controllers.cluster_nodes import Nodes, nodes_of, pod_on, taint
from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Event, Node, NodeCondition, Pod, Taint
from pybernetes.controllers.common.nodes import node_condition
from pybernetes.controllers.common.pods import is_ready
from pybernetes.controllers.options import Options

NAME = "node-lifecycle-controller"
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"


def known(h: Harness, *names: str) -> bool:
    return set(names) <= set(h.controller(NAME).health)  # type: ignore[attr-defined]


async def pass_time(h: Harness, seconds: float) -> None:
    """Let time pass, and wait until the controller has looked at all nodes afterwards."""
    controller = h.controller(NAME)
    looks = 0
    look = controller.look  # type: ignore[attr-defined]

    async def counted() -> None:
        nonlocal looks
        await look()
        looks += 1

    await h.caught_up()
    controller.look = counted  # type: ignore[attr-defined]
    h.clock.advance(seconds)
    await h.until(lambda: looks, "the nodes are looked at")
    controller.look = look  # type: ignore[attr-defined]


async def ready(nodes: Nodes, name: str) -> NodeCondition:
    found = node_condition(await nodes.get(name), "Ready")
    assert found
    return found


async def events(h: Harness, name: str) -> list[tuple[str | None, str | None]]:
    await h.manager.context.events.flush()
    found = await h.client.list(Event, "default", field_selector=f"involvedObject.name={name}")
    return [(each.reason, each.message) for each in found.items or ()]


async def test_a_node_that_is_silent_becomes_unknown_and_its_pods_not_ready(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        lost, well = await nodes.add(), await nodes.add()
        await h.client.create(pod_on(h, "on-lost", lost))
        await h.client.create(pod_on(h, "on-well", well))
        await h.until(lambda: len(h.live(Pod)) == 2 and all(map(is_ready, h.live(Pod))))
        await pass_time(h, 5)
        assert known(h, lost, well)
        assert h.kubelet
        h.kubelet.pause()
        for _ in range(10):
            await nodes.renew(well)
            await asyncio.sleep(0)
            await pass_time(h, 5.1)
        await h.until(lambda: [is_ready(each) for each in h.live(Pod)] == [False, True])
        condition = await ready(nodes, lost)
        assert (condition.status, condition.reason) == ("Unknown", "NodeStatusUnknown")
        assert (await ready(nodes, well)).status == "True"
        assert await events(h, lost) == [
            ("RegisteredNode", f"Node {lost} event: Registered Node {lost} in Controller"),
            ("NodeNotReady", f"Node {lost} status is now: NodeNotReady"),
        ]
        assert [each.message for each in await h.events("NodeNotReady")] == ["Node is not ready"]

        async def tainted() -> bool:
            return await nodes.taints(lost) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}

        await h.until(tainted)
        assert await nodes.taints(well) == set()


async def test_nodes_are_not_silent_when_the_clock_is_set_by_an_hour(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.report(name)
        await pass_time(h, 5)
        usual = h.clock.now
        for hours in (1, -1):
            h.clock.now = lambda hours=hours: usual() + 3600 * hours  # type: ignore[method-assign, misc]
            await pass_time(h, 5)
            assert (await ready(nodes, name)).status == "True"
            assert await nodes.taints(name) == set()
        for _ in range(11):  # a node that falls silent now is noticed in the usual time
            await pass_time(h, 5.1)
        assert (await ready(nodes, name)).status == "Unknown"


async def test_a_node_that_is_back_has_no_taints(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        name, other = await nodes.add(), await nodes.add()
        await pass_time(h, 5)
        await nodes.report(name, "False")

        async def has(*expected: tuple[str, str]) -> bool:
            return await nodes.taints(name) == set(expected)

        await h.until(lambda: has((NOT_READY, "NoSchedule")))
        await pass_time(h, 5)
        await h.until(lambda: has((NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")))
        await nodes.report(name, "Unknown")  # the reason changes at once, without waiting for a turn
        await h.until(lambda: has((UNREACHABLE, "NoSchedule"), (NOT_READY, "NoExecute")))
        await pass_time(h, 5)
        await h.until(lambda: has((UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")))
        await nodes.report(name, "True")
        await nodes.report(other, "True")
        await h.until(lambda: has((UNREACHABLE, "NoExecute")))
        await pass_time(h, 5)
        await h.until(has)


async def test_a_node_that_never_tells_its_state_is_lost_after_the_startup_period(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add(ready=None)
        await pass_time(h, 55)
        assert not (await nodes.get(name)).status.conditions  # type: ignore[union-attr]
        await pass_time(h, 10)
        assert (await ready(nodes, name)).reason == "NodeStatusNeverUpdated"


async def test_nothing_is_evicted_while_no_node_is_heard_of(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        names = [await nodes.add(), await nodes.add()]
        await pass_time(h, 5)
        await pass_time(h, 60)
        assert {(await ready(nodes, name)).status for name in names} == {"Unknown"}
        await pass_time(h, 20)
        await pass_time(h, 20)
        for name in names:
            assert (UNREACHABLE, "NoExecute") not in await nodes.taints(name)
        await nodes.report(names[0])
        await h.until(lambda: _seen_ready(h, names[0]))
        await pass_time(h, 5)
        await pass_time(h, 15)

        async def evicted() -> bool:
            return (UNREACHABLE, "NoExecute") in await nodes.taints(names[1])

        await h.until(evicted)


def _seen_ready(h: Harness, name: str) -> bool:
    found = [each for each in h.live(Node, namespace="") if each.metadata and each.metadata.name == name]
    condition = node_condition(found[0], "Ready") if found else None
    return condition is not None and condition.status == "True"


async def test_nodes_are_evicted_one_after_another(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        names = [await nodes.add() for _ in range(5)]
        await pass_time(h, 5)
        for name in names[:2]:
            await nodes.report(name, "False")

        async def evicted(count: int) -> bool:
            return sum([(NOT_READY, "NoExecute") in await nodes.taints(name) for name in names]) == count

        await pass_time(h, 5)
        await h.until(lambda: evicted(1))
        await pass_time(h, 5)
        assert await evicted(1)
        await pass_time(h, 6)
        await h.until(lambda: evicted(2))


async def test_taints_of_others_stay_and_old_taints_of_ours_go_when_we_start(harness: MakeHarness) -> None:
    async with harness(kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.set_taints(name, Taint(key="mine", effect="NoExecute", value="x"), taint(UNREACHABLE))
        async with harness(NAME, kubelet=False):

            async def cleaned() -> bool:
                return await nodes.taints(name) == {("mine", "NoExecute")}

            await h.until(cleaned)


async def test_pressure_cordons_and_labels_show_at_once(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add(labels={"kubernetes.io/os": "linux"}, MemoryPressure="True")
        await h.client.patch(Node, name, {"spec": {"unschedulable": True}})

        async def shown() -> bool:
            found = await nodes.get(name)
            return await nodes.taints(name) == {
                ("node.kubernetes.io/memory-pressure", "NoSchedule"),
                ("node.kubernetes.io/unschedulable", "NoSchedule"),
            } and (found.metadata and found.metadata.labels) == {
                "kubernetes.io/os": "linux",
                "beta.kubernetes.io/os": "linux",
            }

        await h.until(shown)
        await nodes.report(name, MemoryPressure="False")
        await h.client.patch(Node, name, {"spec": {"unschedulable": None}})

        async def clean() -> bool:
            return await nodes.taints(name) == set()

        await h.until(clean)


async def test_a_pod_that_comes_to_a_lost_node_is_not_ready(harness: MakeHarness) -> None:
    options = Options(node_monitor_period=1.0)
    async with harness(NAME, options=options, bound_only=True) as h, nodes_of(h) as nodes:
        name = await nodes.add(ready="False")
        await pass_time(h, 5)
        made = pod_on(h, "p", "")
        await h.client.create(made)
        waiting = await h.client.get(Pod, "p", h.namespace)
        assert h.kubelet
        h.kubelet.pause()
        await h.client.patch(
            Pod,
            "p",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            h.namespace,
            subresource="status",
        )
        assert waiting.metadata
        await h.client.bind("p", h.namespace, name)
        await h.until(lambda: h.live(Pod) and not is_ready(h.live(Pod)[0]))


async def test_a_node_that_is_deleted_is_forgotten(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await pass_time(h, 5)
        await h.client.delete(Node, name)
        await h.until(lambda: not [each for each in h.live(Node, namespace="") if each.metadata.name == name])
        await pass_time(h, 5)
        assert not known(h, name)
        assert ("RemovingNode", f"Node {name} event: Removing Node {name} from Controller") in await events(h, name)


async def test_who_is_being_evicted_may_stay_when_the_last_node_is_lost(harness: MakeHarness) -> None:
    options = Options(node_monitor_period=1.0)
    async with harness(NAME, options=options, kubelet=False) as h, nodes_of(h) as nodes:
        first, last = await nodes.add(), await nodes.add()
        await pass_time(h, 5)
        await nodes.report(first, "False")

        async def evicted() -> bool:
            await pass_time(h, 1)
            return any(effect == "NoExecute" for _, effect in await nodes.taints(first))

        async def saved() -> bool:
            return not await evicted()

        await h.until(evicted)
        await nodes.report(last, "False")
        await h.until(saved)
