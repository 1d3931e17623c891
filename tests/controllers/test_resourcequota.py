"""Quotas say what is used."""

from __future__ import annotations

from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import ConfigMap, Pod, ResourceQuota
from pybernetes.api.meta.v1 import ObjectMeta

NAME = "resourcequota-controller"


async def quota(h: Harness, name: str = "q", **spec: Any) -> None:
    body = {"metadata": {"name": name}, "spec": spec}
    await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/resourcequotas", body)


async def pod(h: Harness, name: str, **spec: Any) -> None:
    requests = spec.pop("requests", {})
    body = {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}], **spec},
    }
    await h.client.call("POST", f"/api/v1/namespaces/{h.namespace}/pods", body)


def used(h: Harness, name: str = "q", **expected: str) -> Any:
    async def check() -> bool:
        found = await h.get(ResourceQuota, name)
        have = {key: str(value) for key, value in ((found.status and found.status.used) or {}).items()} if found else {}
        return all(have.get(key.replace("__", "/").replace("_", ".")) == value for key, value in expected.items())

    return h.until(check, f"used is {expected}")


async def test_a_new_quota_counts_what_is_there(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await pod(h, "a", requests={"cpu": "100m", "memory": "1Gi"})
        await h.client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=h.namespace)))
        await quota(
            h, hard={"pods": "5", "requests.cpu": "1", "configmaps": "3", "count/secrets": "3", "services": "1"}
        )
        await used(h, pods="1", requests_cpu="100m", configmaps="1", count__secrets="0", services="0")
        found = await h.get(ResourceQuota, "q")
        assert found is not None
        assert found.status is not None
        assert found.status.hard == found.spec.hard  # type: ignore[union-attr]


async def test_objects_that_come_and_go_change_what_is_used(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await quota(h, hard={"pods": "5", "cpu": "1", "count/configmaps": "9"})
        await used(h, pods="0", cpu="0")
        await pod(h, "a", requests={"cpu": "100m"})
        await pod(h, "b", requests={"cpu": "200m"})
        await used(h, pods="2", cpu="300m")
        await h.client.delete(Pod, "b", h.namespace, grace_period_seconds=0)
        await used(h, pods="1", cpu="100m")
        await h.client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=h.namespace)))
        await used(h, count__configmaps="1")
        await h.client.delete(ConfigMap, "c", h.namespace)
        await used(h, count__configmaps="0")


async def test_usage_charged_by_admission_survives_a_controller_with_an_old_cache(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await quota(h, hard={"pods": "5"})
        await used(h, pods="0")
        with h.behind(Pod) as events:
            await pod(h, "a")
            await pod(h, "b")
            await used(h, pods="2")
            await h.until(lambda: len(events) >= 2, "both events are there")
            informer = h.manager.context.informers.informer(Pod)
            type(informer)._apply(informer, events.pop(0))
            await h.settled()
            assert (await h.get(ResourceQuota, "q")).status.used == {"pods": "2"}  # type: ignore[union-attr]
        await h.settled()
        await used(h, pods="2")


async def test_a_pod_that_ends_sets_free_what_it_used(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await quota(h, hard={"pods": "5", "cpu": "1", "count/pods": "9"})
        await pod(h, "a", requests={"cpu": "100m"}, restartPolicy="Never")
        await used(h, pods="1", cpu="100m")
        await h.client.patch(Pod, "a", {"metadata": {"annotations": {"fake-kubelet/exit-code": "0"}}}, h.namespace)
        await used(h, pods="0", cpu="0", count__pods="1")


async def test_scopes_choose_which_pods_count(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await quota(h, "effort", hard={"pods": "5"}, scopes=["BestEffort"])
        await quota(h, "rest", hard={"pods": "5"}, scopes=["NotBestEffort"])
        await quota(h, "ending", hard={"pods": "5"}, scopes=["Terminating"])
        await pod(h, "a")
        await pod(h, "b", requests={"cpu": "1"})
        await pod(h, "c", activeDeadlineSeconds=3600)
        await used(h, "effort", pods="2")
        await used(h, "rest", pods="1")
        await used(h, "ending", pods="1")


async def test_a_changed_quota_is_counted_anew(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await quota(h, hard={"pods": "5"})
        await used(h, pods="0")
        await h.client.patch(ResourceQuota, "q", {"spec": {"hard": {"pods": None, "secrets": "3"}}}, h.namespace)
        await used(h, secrets="0")
        found = await h.get(ResourceQuota, "q")
        assert found is not None
        assert found.status is not None
        assert found.status.used == {"secrets": "0"}


async def test_a_pod_that_does_not_end_in_time_is_counted_no_more_at_the_next_count(harness: MakeHarness) -> None:
    async with harness(NAME) as h:
        await quota(h, hard={"pods": "5"})
        await pod(h, "a", nodeName="somewhere")
        await used(h, pods="1")
        await h.client.patch(Pod, "a", {"metadata": {"annotations": {"fake-kubelet/stuck": "true"}}}, h.namespace)
        await h.client.delete(Pod, "a", h.namespace)
        await h.until(lambda: h.cached(Pod) and not h.live(Pod), "the pod is being deleted")
        h.clock.advance(1000)
        await used(h, pods="0")
        await h.client.delete(Pod, "a", h.namespace, grace_period_seconds=0)
