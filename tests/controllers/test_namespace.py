"""Namespaces are emptied and let go."""

from __future__ import annotations

from controllers.conftest import Harness, MakeHarness

from pybernetes.api import errors
from pybernetes.api.apps.v1 import Deployment
from pybernetes.api.core.v1 import ConfigMap, Namespace, Pod, Secret
from pybernetes.api.meta.v1 import ObjectMeta

NAME = "namespace-controller"


async def deleted(h: Harness) -> None:
    await h.client.delete(Namespace, h.namespace)
    h.clock.advance(6)


async def is_gone(h: Harness) -> bool:
    try:
        await h.client.get(Namespace, h.namespace)
    except errors.NotFound:
        return True
    h.clock.advance(1)
    return False


async def conditions(h: Harness) -> dict[str, tuple[str, str]]:
    namespace = await h.client.get(Namespace, h.namespace)
    found = (namespace.status.conditions if namespace.status else None) or ()
    return {each.type or "": (each.status or "", each.message or "") for each in found}


def deployment(h: Harness, **metadata: object) -> dict[str, object]:
    return {
        "metadata": {"name": "web", "namespace": h.namespace, **metadata},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }


async def test_everything_in_a_deleted_namespace_goes_and_then_the_namespace(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        for number in range(3):
            await h.client.create(ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace=h.namespace)))
        await h.client.create(Secret(metadata=ObjectMeta(name="s", namespace=h.namespace)))
        await h.client.call("POST", f"/apis/apps/v1/namespaces/{h.namespace}/deployments", deployment(h))
        await deleted(h)
        await h.until(lambda: is_gone(h), "the namespace is gone")
        assert await h.list(ConfigMap) == []
        assert await h.list(Deployment) == []


async def test_finalizers_hold_a_namespace_and_the_conditions_name_them(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await h.client.call(
            "POST",
            f"/apis/apps/v1/namespaces/{h.namespace}/deployments",
            deployment(h, finalizers=["custom.io/finalizer"]),
        )
        await deleted(h)
        await h.until(
            lambda: _says(
                h,
                "NamespaceContentRemaining",
                "Some resources are remaining: deployments.apps has 1 resource instances",
            ),
            "the condition",
        )
        assert (await conditions(h))["NamespaceFinalizersRemaining"] == (
            "True",
            "Some content in the namespace has finalizers remaining: custom.io/finalizer in 1 resource instances",
        )
        assert (await conditions(h))["NamespaceDeletionContentFailure"][0] == "False"
        await h.client.patch(Deployment, "web", {"metadata": {"finalizers": None}}, h.namespace)
        h.clock.advance(20)
        await h.until(lambda: is_gone(h), "the namespace is gone")


async def test_pods_go_before_everything_else(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await h.client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=h.namespace)))
        await h.client.call(
            "POST",
            f"/api/v1/namespaces/{h.namespace}/pods",
            {
                "metadata": {"name": "p", "finalizers": ["example.com/hold"]},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        )
        await deleted(h)
        await h.until(lambda: _says(h, "NamespaceContentRemaining", "Some resources are remaining: pods. has 1"))
        assert await h.get(ConfigMap, "c") is not None
        await h.client.patch(Pod, "p", {"metadata": {"finalizers": None}}, h.namespace)
        h.clock.advance(60)
        await h.until(lambda: is_gone(h), "the namespace is gone")


async def test_a_namespace_finalizer_of_another_controller_stays(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        namespace = await h.client.get(Namespace, h.namespace)
        assert namespace.spec is not None
        namespace.spec.finalizers = ["kubernetes", "example.com/mine"]
        await h.client.update(namespace, subresource="finalize")
        await deleted(h)

        async def only_mine() -> bool:
            live = await h.client.get(Namespace, h.namespace)
            return live.spec is not None and live.spec.finalizers == ["example.com/mine"]

        await h.until(only_mine)
        live = await h.client.get(Namespace, h.namespace)
        assert live.spec is not None
        live.spec.finalizers = []
        await h.client.update(live, subresource="finalize")
        await h.until(lambda: is_gone(h))


async def _says(h: Harness, condition: str, text: str) -> bool:
    h.clock.advance(1)
    return (await conditions(h)).get(condition, ("", ""))[1].startswith(text)
