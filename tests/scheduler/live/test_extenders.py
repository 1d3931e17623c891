"""Extenders in a running scheduler: they refuse, rank and bind, and may fail."""

from __future__ import annotations

from typing import Any

from scheduler.fake_extender import FakeExtender


def text(extender: FakeExtender, **more: Any) -> str:
    fields = ", ".join(f"{key}: {value}" for key, value in more.items())
    return f"extenders: [{{urlPrefix: '{extender.url}', nodeCacheCapable: true, {fields}}}]\n"


def bind_with(h: Any) -> Any:
    """What a binding extender does: it posts the binding itself."""
    import asyncio

    loop = asyncio.get_running_loop()

    def bind(args: dict[str, Any]) -> Any:
        call = h.client.bind(args["PodName"], args["PodNamespace"], args["Node"], uid=args["PodUID"])
        asyncio.run_coroutine_threadsafe(call, loop).result(5)
        return {}

    return bind


async def test_an_extender_refuses_nodes_with_reasons(live: Any) -> None:
    def refuse(args: dict[str, Any]) -> Any:
        return {"NodeNames": [], "FailedNodes": {"n1": "too hot"}, "FailedAndUnresolvableNodes": {"n2": "too old"}}

    with FakeExtender({"filter": refuse}) as extender:
        async with live(text(extender, filterVerb="filter")) as h:
            await h.node("n1")
            await h.node("n2")
            await h.pod("p")
            message = await h.refused("p")
    assert message.startswith("0/2 nodes are available: 1 too hot, 1 too old.")


async def test_an_extender_ranks_nodes(live: Any) -> None:
    def rank(args: dict[str, Any]) -> Any:
        return [{"Host": name, "Score": 10 if name == "n2" else 0} for name in args["NodeNames"]]

    with FakeExtender({"prioritize": rank}) as extender:
        async with live(text(extender, prioritizeVerb="prioritize", weight=100)) as h:
            for name in ("n1", "n2", "n3"):
                await h.node(name)
            for number in range(3):
                await h.pod(f"p{number}")
                assert await h.bound(f"p{number}") == "n2"


async def test_an_extender_binds_the_pods_that_it_manages(live: Any) -> None:
    verbs: dict[str, Any] = {}
    with FakeExtender(verbs) as extender:
        resources = "[{name: example.com/chip, ignoredByScheduler: true}]"
        async with live(text(extender, bindVerb="bind", managedResources=resources)) as h:
            verbs["bind"] = bind_with(h)
            await h.node("n1")
            await h.pod("plain")
            await h.bound("plain")
            assert extender.asked == []
            # No node has any; the scheduler does not look, for the extender does.
            await h.pod("special", **{"example.com/chip": "1"})
            assert await h.bound("special") == "n1"
            assert [verb for verb, _ in extender.asked] == ["bind"]


async def test_without_an_extender_that_matters_a_pod_waits_and_without_one_that_does_not_it_goes_on(live: Any) -> None:
    with FakeExtender({"filter": lambda args: 500}) as extender:
        async with live(text(extender, filterVerb="filter", ignorable="true")) as h:
            await h.node("n1")
            await h.pod("p")
            assert await h.bound("p") == "n1"
        async with live(text(extender, filterVerb="filter")) as h:
            await h.node("n1")
            await h.pod("p")
            (event,) = await h.until(lambda: h.events("FailedScheduling"))
            assert event.message == f"failed filter with extender at URL {extender.url}/filter, code 500"
            assert not (await h.get("p")).spec.node_name
