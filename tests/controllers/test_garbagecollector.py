"""Objects without owners are deleted; deletion of owners follows the propagation policy."""

from __future__ import annotations

from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import ConfigMap, Namespace, Secret
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.rbac.v1 import ClusterRole

NAME = "garbage-collector-controller"


def owned(*owners: Kind, block: bool | None = None, kind: str = "ConfigMap") -> list[OwnerReference]:
    return [
        OwnerReference(
            api_version="v1",
            kind=kind,
            name=each.metadata.name,  # type: ignore[union-attr]
            uid=each.metadata.uid,  # type: ignore[union-attr]
            block_owner_deletion=block,
        )
        for each in owners
    ]


async def config_map(h: Harness, name: str, *owners: Kind, namespace: str = "", **more: Any) -> ConfigMap:
    block = more.pop("block", None)
    metadata = ObjectMeta(
        name=name, namespace=namespace or h.namespace, owner_references=owned(*owners, block=block) or None, **more
    )
    return await h.client.create(ConfigMap(metadata=metadata))


async def names(h: Harness) -> list[str]:
    return [each.metadata.name or "" for each in await h.list(ConfigMap) if each.metadata]


def collected(h: Harness, *left: str) -> Any:
    async def check() -> bool:
        return await names(h) == sorted(left)

    return h.until(check, f"only {left} are left")


async def test_dependents_go_with_their_owner_in_the_background(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        owner = await config_map(h, "owner")
        middle = await config_map(h, "middle", owner)
        await config_map(h, "leaf", middle)
        await config_map(h, "other")
        await h.client.delete(ConfigMap, "owner", h.namespace)
        await collected(h, "other")


async def test_a_dependent_with_another_owner_stays_and_loses_the_reference(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        one, two = await config_map(h, "one"), await config_map(h, "two")
        await config_map(h, "shared", one, two)
        await h.client.delete(ConfigMap, "one", h.namespace)

        async def only_two() -> bool:
            shared = await h.get(ConfigMap, "shared")
            assert shared is not None
            assert shared.metadata is not None
            return [each.name for each in shared.metadata.owner_references or ()] == ["two"]

        await h.until(only_two)
        assert await names(h) == ["shared", "two"]


async def test_foreground_deletion_waits_for_blocking_dependents(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        owner = await config_map(h, "owner")
        await config_map(h, "held", owner, block=True, finalizers=["example.com/hold"])
        await config_map(h, "loose", owner, block=False, finalizers=["example.com/hold"])
        await h.client.delete(ConfigMap, "owner", h.namespace, propagation_policy="Foreground")

        async def going() -> bool:
            return all(each.metadata and each.metadata.deletion_timestamp for each in await h.list(ConfigMap))

        await h.until(going, "the dependents are being deleted")
        assert await h.get(ConfigMap, "owner") is not None
        await h.client.patch(ConfigMap, "held", {"metadata": {"finalizers": None}}, h.namespace)
        await collected(h, "loose")


async def test_orphaned_dependents_stay_without_their_owner(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        owner = await config_map(h, "owner")
        for number in range(3):
            await config_map(h, f"child-{number}", owner)
        await h.client.delete(ConfigMap, "owner", h.namespace, propagation_policy="Orphan")
        await collected(h, "child-0", "child-1", "child-2")
        assert all(each.metadata and not each.metadata.owner_references for each in await h.list(ConfigMap))


async def test_a_circle_is_deleted(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        a = await config_map(h, "a")
        b = await config_map(h, "b", a, block=True)
        c = await config_map(h, "c", b, block=True)
        patch = {"metadata": {"ownerReferences": owned(c, block=True)}}
        await h.client.patch(ConfigMap, "a", patch, h.namespace)
        await h.client.delete(ConfigMap, "a", h.namespace, propagation_policy="Foreground")
        await collected(h)


async def test_an_owner_that_never_was_is_looked_up_and_its_dependent_goes(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        ghost = ConfigMap(metadata=ObjectMeta(name="ghost", uid="00000000-0000-0000-0000-000000000000"))
        await config_map(h, "child", ghost)
        await collected(h)


async def test_an_owner_of_the_same_name_but_another_uid_is_no_owner(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await config_map(h, "owner")
        imposter = ConfigMap(metadata=ObjectMeta(name="owner", uid="00000000-0000-0000-0000-000000000001"))
        await config_map(h, "child", imposter)
        await collected(h, "owner")


async def test_an_owner_in_another_namespace_is_reported_and_does_not_count(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        elsewhere = f"{h.namespace}-elsewhere"
        await h.client.create(Namespace(metadata=ObjectMeta(name=elsewhere)))
        owner = await config_map(h, "owner", namespace=elsewhere)
        await h.until(lambda: _known(h, owner), "the owner is seen")
        await config_map(h, "child", owner)
        await collected(h)
        (event,) = await h.events("OwnerRefInvalidNamespace")
        assert owner.metadata is not None
        assert event.message == (
            f"ownerRef [v1/ConfigMap, namespace: {h.namespace}, name: owner, uid: {owner.metadata.uid}] "
            f'does not exist in namespace "{h.namespace}"'
        )
        assert await h.client.get(ConfigMap, "owner", elsewhere)


async def test_a_cluster_scoped_owner_takes_namespaced_dependents_along(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        role = await h.client.create(ClusterRole(metadata=ObjectMeta(name=h.namespace)))
        reference = OwnerReference(
            api_version="rbac.authorization.k8s.io/v1",
            kind="ClusterRole",
            name=h.namespace,
            uid=role.metadata.uid if role.metadata else "",
        )
        metadata = ObjectMeta(name="child", namespace=h.namespace, owner_references=[reference])
        await h.client.create(Secret(metadata=metadata))
        await h.client.delete(ClusterRole, h.namespace)

        async def gone() -> bool:
            return await h.get(Secret, "child") is None

        await h.until(gone)


async def test_the_graph_forgets_what_is_gone(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        owner = await config_map(h, "owner")
        child = await config_map(h, "child", owner)
        await h.client.delete(ConfigMap, "owner", h.namespace)
        await collected(h)
        await h.until(lambda: not _known(h, owner) and not _known(h, child))


def _known(h: Harness, obj: Kind) -> bool:
    assert obj.metadata is not None
    return obj.metadata.uid in h.controller(NAME).graph.nodes  # type: ignore[attr-defined]
