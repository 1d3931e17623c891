"""A scheduler by the policy file of old."""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.v1.affinity import Taint


async def test_predicates_and_priorities_decide(live: Any) -> None:
    presence = {"labelsPresence": {"labels": ["retiring"], "presence": False}}
    policy = {
        "predicates": [{"name": "PodFitsResources"}, {"name": "NotRetiring", "argument": presence}],
        "priorities": [{"name": "MostRequestedPriority", "weight": 1}],
    }
    async with live(policy=policy) as h:
        await h.node("retiring", cpu="4", labels={"retiring": "soon"})
        await h.node("roomy", cpu="8")
        await h.node("tight", cpu="2")
        await h.node("tainted", cpu="1", taints=[Taint(key="x", effect="NoSchedule")])
        await h.pod("p", cpu="1", memory="1Gi")
        assert await h.bound("p") == "tight"


async def test_without_the_predicate_the_extender_is_not_asked(live: Any) -> None:
    async with live(policy={"predicates": [{"name": "HostName"}], "priorities": []}) as h:
        await h.node("n1", cpu="1")
        await h.pod("greedy", cpu="9")
        assert await h.bound("greedy") == "n1"


async def test_all_reasons_are_reported_when_the_policy_says_so(live: Any) -> None:
    policy = {"alwaysCheckAllPredicates": True}
    async with live(policy=policy) as h:
        await h.node("n1", cpu="1", taints=[Taint(key="x", effect="NoSchedule")])
        await h.pod("p", cpu="2", node_selector={"a": "b"})
        message = await h.refused("p")
    assert message.startswith(
        "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s)."
    )
