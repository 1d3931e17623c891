"""The graph of owners and dependents: what an observation asks the collector to look at."""

from __future__ import annotations

from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.controllers.garbagecollector.graph import AbsentOwners, Graph, Identity, alternate_identity

NOW = "2026-01-01T00:00:00Z"


def owner(uid: str, *, name: str = "", kind: str = "ReplicaSet", block: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version="apps/v1", kind=kind, name=name or uid, uid=uid, controller=True, block_owner_deletion=block
    )


def object_meta(uid: str, *owners: OwnerReference, namespace: str = "ns", finalizers: list[str] | None = None,
                deleted: bool = False) -> ObjectMeta:  # fmt: skip
    return ObjectMeta(
        name=uid,
        namespace=namespace or None,
        uid=uid,
        owner_references=list(owners) or None,
        finalizers=finalizers,
        deletion_timestamp=NOW if deleted else None,
    )


def seen(graph: Graph, metadata: ObjectMeta, kind: str = "Pod", old: ObjectMeta | None = None):  # type: ignore[no-untyped-def]
    return graph.observed("apps/v1" if kind == "ReplicaSet" else "v1", kind, metadata, old)


def uids(nodes) -> list[str]:  # type: ignore[no-untyped-def]
    return [each.identity.uid for each in nodes]


def test_an_owner_that_was_never_seen_is_virtual_and_looked_up() -> None:
    graph = Graph()
    actions = seen(graph, object_meta("pod", owner("rs")))
    assert uids(actions.delete) == ["rs"]
    assert graph.nodes["rs"].virtual
    assert graph.nodes["rs"].identity == Identity("ReplicaSet", "apps/v1", "ns", "rs", "rs")


def test_dependents_of_an_absent_owner_are_tried_and_the_owner_is_remembered_as_absent() -> None:
    graph = Graph()
    seen(graph, object_meta("pod", owner("rs")))
    identity = graph.nodes["rs"].identity
    actions = graph.absent(identity)
    assert uids(actions.delete) == ["pod"]
    assert "rs" not in graph.nodes
    assert identity in graph.absent_owners


def test_a_virtual_owner_that_is_seen_becomes_real_and_nothing_is_deleted() -> None:
    graph = Graph()
    seen(graph, object_meta("pod", owner("rs")))
    actions = seen(graph, object_meta("rs"), "ReplicaSet")
    assert not actions.delete
    assert not graph.nodes["rs"].virtual
    assert uids(graph.nodes["rs"].dependents) == ["pod"]


def test_dependents_of_a_deleted_owner_are_tried() -> None:
    graph = Graph()
    seen(graph, object_meta("rs"), "ReplicaSet")
    seen(graph, object_meta("pod", owner("rs")))
    actions = graph.gone("apps/v1", "ReplicaSet", object_meta("rs"))
    assert uids(actions.delete) == ["pod"]


def test_foreground_deletion_tries_the_dependents_and_then_the_owner() -> None:
    graph = Graph()
    before = object_meta("rs")
    seen(graph, before, "ReplicaSet")
    seen(graph, object_meta("pod", owner("rs", block=True)))
    actions = seen(graph, object_meta("rs", finalizers=["foregroundDeletion"], deleted=True), "ReplicaSet", before)
    assert uids(actions.delete) == ["pod", "rs"]
    assert graph.nodes["rs"].deleting_dependents
    assert uids(graph.nodes["rs"].blocking_dependents()) == ["pod"]
    assert uids(graph.gone("v1", "Pod", object_meta("pod")).delete) == ["rs"]
    assert graph.nodes["rs"].blocking_dependents() == []


def test_orphaning_is_asked_for_once() -> None:
    graph = Graph()
    deleted = object_meta("rs", finalizers=["orphan"], deleted=True)
    assert uids(seen(graph, deleted, "ReplicaSet").orphan) == ["rs"]
    assert seen(graph, deleted, "ReplicaSet", deleted).orphan == []


def test_an_owner_is_tried_again_when_a_dependent_no_longer_blocks_it() -> None:
    for changed in (object_meta("pod"), object_meta("pod", owner("rs", block=False))):
        graph = Graph()
        seen(graph, object_meta("rs"), "ReplicaSet")
        seen(graph, object_meta("pod", owner("rs", block=True)))
        assert uids(seen(graph, changed).delete) == ["rs"]


def test_an_owner_in_another_namespace_is_reported_in_whichever_order_they_come() -> None:
    graph = Graph()
    seen(graph, object_meta("rs", namespace="other"), "ReplicaSet")
    actions = seen(graph, object_meta("pod", owner("rs")))
    assert [(node.identity.uid, ref.uid) for node, ref in actions.invalid] == [("pod", "rs")]
    assert uids(actions.delete) == ["pod"]

    graph = Graph()
    seen(graph, object_meta("pod", owner("rs")))
    actions = seen(graph, object_meta("rs", namespace="other"), "ReplicaSet")
    assert [(node.identity.uid, ref.uid) for node, ref in actions.invalid] == [("pod", "rs")]
    assert uids(actions.delete) == ["pod"]
    assert graph.nodes["rs"].identity.namespace == "other"


def test_a_refuted_claim_does_not_remove_an_owner_that_was_seen() -> None:
    graph = Graph()
    seen(graph, object_meta("rs", namespace="other"), "ReplicaSet")
    seen(graph, object_meta("pod", owner("rs")))
    actions = graph.absent(Identity("ReplicaSet", "apps/v1", "ns", "rs", "rs"))
    assert "rs" in graph.nodes
    assert uids(actions.delete) == ["pod"]


def test_dependents_that_disagree_about_an_owner_are_judged_by_their_own_claim() -> None:
    graph = Graph()
    seen(graph, object_meta("bad", owner("rs", name="wrong")))
    seen(graph, object_meta("good", owner("rs")))
    first = graph.nodes["rs"].identity
    assert first.name == "wrong"
    actions = graph.absent(first)
    assert uids(actions.delete) == ["bad"]
    assert [each.identity.name for each in actions.delete_later] == ["rs"]
    assert graph.nodes["rs"] is actions.delete_later[0]
    assert seen(graph, object_meta("rs"), "ReplicaSet").invalid == []
    assert "rs" in graph.nodes
    assert not graph.nodes["rs"].virtual


def test_the_next_claim_follows_the_refuted_one_and_wraps_around() -> None:
    graph = Graph()
    for name in ("a", "b", "c"):
        seen(graph, object_meta(name, owner("rs", name=name)))
    dependents = list(graph.nodes["rs"].dependents)
    absent = Identity("ReplicaSet", "apps/v1", "ns", "b", "rs")
    assert alternate_identity(dependents, absent) == absent._replace(name="c")
    assert alternate_identity(dependents, absent._replace(name="c")) == absent._replace(name="a")
    assert alternate_identity([], absent) is None


def test_absent_owners_are_forgotten_oldest_first() -> None:
    absent = AbsentOwners(2)
    one, two, three = (Identity("K", "v1", "", name, name) for name in "123")
    absent.add(one)
    absent.add(two)
    assert one in absent
    absent.add(three)
    assert one in absent
    assert two not in absent
    assert three in absent
