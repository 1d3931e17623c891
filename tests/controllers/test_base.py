"""What all controllers rely on: being woken, being retried, expecting, adopting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar

import pytest

import tools
from pybernetes.api import errors, labels
from pybernetes.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from pybernetes.api.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.keys import Key, controller_reference, uid_of
from pybernetes.controllers import manager
from pybernetes.controllers.base import Controller, adopts, maps, owns
from pybernetes.controllers.common import ownership

_ended: set[str] = {"kube-system"}
"""Namespaces of earlier tests, whose objects are still there, and the server's own ConfigMaps."""


def configured(controller: Controller[ReplicaSet], obj: ConfigMap) -> list[Key]:
    """A ConfigMap concerns the ReplicaSets its data names."""
    assert obj.metadata is not None
    return [Key(obj.metadata.namespace or "", name) for name in obj.data or ()]


class Recorder(Controller[ReplicaSet]):
    """Writes down who it was called for; fails as often as told."""

    name = "recorder-controller"
    kind = ReplicaSet
    watches = (owns(Pod), adopts(Pod), maps(ConfigMap, configured))
    workers = 3
    failures: ClassVar[dict[str, list[Exception]]] = {}

    def setup(self) -> None:
        self.calls: list[str] = []
        self.after: dict[str, float] = {}

    async def reconcile(self, key: Key) -> float | None:
        if key.namespace in _ended:
            return None
        self.calls.append(key.name)
        left = self.failures.get(key.name)
        if left:
            raise left.pop(0)
        return self.after.pop(key.name, None)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, server: tools.ApiServer) -> Iterator[None]:
    monkeypatch.setattr(manager, "load", lambda name: Recorder)
    Recorder.failures = {}
    yield

    async def remember() -> None:
        async with Client(config.load(server.kubeconfig)) as client:
            _ended.update(each.metadata.name for each in (await client.list(Namespace)).items)

    asyncio.run(remember())


def replicaset(name: str, namespace: str) -> ReplicaSet:
    app = {"app": name}
    template = PodTemplateSpec(metadata=ObjectMeta(labels=app), spec=pod_spec())
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ReplicaSetSpec(replicas=1, selector=LabelSelector(match_labels=app), template=template),
    )


def pod_spec() -> PodSpec:
    return PodSpec(containers=[Container(name="main", image="busybox")])


def pod(name: str, namespace: str, app: str, owner: ReplicaSet | None = None) -> Pod:
    references = [controller_reference(owner)] if owner else None
    metadata = ObjectMeta(name=name, namespace=namespace, labels={"app": app}, owner_references=references)
    return Pod(metadata=metadata, spec=pod_spec())


async def test_own_owned_orphaned_and_mapped_objects_wake_it(harness) -> None:
    async with harness("recorder", kubelet=False) as h:
        recorder = h.controller("recorder")

        async def woken(by: str) -> None:
            await h.until(lambda: recorder.calls, f"woken by {by}")
            await h.settled()
            assert set(recorder.calls) == {"one"}, by
            recorder.calls.clear()

        one = await h.client.create(replicaset("one", h.namespace))
        await woken("its creation")
        other = await h.client.create(replicaset("other", h.namespace))
        await h.until(lambda: recorder.calls == ["other"])
        recorder.calls.clear()
        await h.client.patch(ReplicaSet, "one", {"spec": {"replicas": 2}}, h.namespace)
        await woken("its change")
        await h.client.create(pod("owned", h.namespace, "different", one))
        await woken("an owned pod")
        await h.client.patch(Pod, "owned", {"metadata": {"labels": {"x": "y"}}}, h.namespace)
        await woken("a change of an owned pod")
        await h.client.create(pod("orphan", h.namespace, "one"))
        await woken("an orphan that matches")
        await h.client.create(pod("stranger", h.namespace, "nobody"))
        await h.client.patch(Pod, "stranger", {"metadata": {"labels": {"app": "one"}}}, h.namespace)
        await woken("an orphan that begins to match")
        await h.client.create(ConfigMap(metadata=ObjectMeta(name="m", namespace=h.namespace), data={"one": ""}))
        await woken("a ConfigMap")
        await h.client.delete(Pod, "owned", h.namespace, grace_period_seconds=0)
        await woken("the end of an owned pod")
        await h.client.delete(ReplicaSet, "one", h.namespace)
        await woken("its end")
        # The uid must be that of the owner that is there: this one's is gone.
        late = pod("late", h.namespace, "different", one)
        late.metadata.owner_references[0].name = "other"
        await h.client.create(late)
        await h.until(lambda: h.manager.context.informers.informer(Pod).named("late", h.namespace))
        assert recorder.calls == []
        assert uid_of(other)


async def test_a_selector_is_read_once_and_again_when_it_changes(harness, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[LabelSelector] = []
    whole = labels.from_label_selector

    def reading(selector: LabelSelector) -> labels.Selector:
        read.append(selector)
        return whole(selector)

    async with harness("recorder", kubelet=False) as h:
        recorder = h.controller("recorder")
        one = await h.client.create(replicaset("one", h.namespace))
        await h.until(lambda: recorder.own.get(Key(h.namespace, "one")), "its informer has it")
        monkeypatch.setattr(labels, "from_label_selector", reading)
        fits, stranger = pod("a", h.namespace, "one"), pod("b", h.namespace, "two")
        for _ in range(3):
            assert [each.metadata.name for each in recorder.selecting(fits)] == ["one"]
            assert recorder.selecting(stranger) == []
        assert len(read) == 1
        await h.client.patch(ReplicaSet, "one", {"spec": {"replicas": 2}}, h.namespace)
        await h.until(lambda: recorder.own.get(Key(h.namespace, "one")).spec.replicas == 2)
        assert len(recorder.selecting(fits)) == 1
        assert len(read) == 1
        other = replicaset("one", h.namespace)
        other.spec.selector = LabelSelector(match_labels={"app": "two"})
        assert recorder.selects(other, stranger)
        assert recorder.selecting(fits) == [recorder.own.get(Key(h.namespace, "one"))]
        await h.client.delete(ReplicaSet, "one", h.namespace)
        await h.until(lambda: recorder.own.get(Key(h.namespace, "one")) is None)
        assert recorder.selects(one, fits)
        assert Key(h.namespace, "one") not in recorder._read_selectors, "nothing is kept of what is gone"


async def test_an_owner_whose_selector_cannot_be_read_concerns_no_other(
    harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = labels.from_label_selector

    def reading(selector: LabelSelector) -> labels.Selector:
        if selector.match_labels == {"app": "bad"}:
            raise labels.SelectorError("odd")
        return whole(selector)

    monkeypatch.setattr(labels, "from_label_selector", reading)
    async with harness("recorder", kubelet=False) as h:
        recorder = h.controller("recorder")
        for name in ("bad", "one"):
            await h.client.create(replicaset(name, h.namespace))
            await h.until(lambda name=name: recorder.own.get(Key(h.namespace, name)), "its informer has it")
        assert [each.metadata.name for each in recorder.selecting(pod("a", h.namespace, "one"))] == ["one"]
        assert f"the selector of {h.namespace}/bad cannot be read: odd" in caplog.text


async def test_failures_are_tried_again_and_success_ends_it(harness) -> None:
    Recorder.failures = {"one": [errors.Conflict("", "pods", "x"), errors.InternalError("oops"), OSError("gone")]}
    async with harness("recorder", kubelet=False) as h:
        await h.client.create(replicaset("one", h.namespace))
        recorder = h.controller("recorder")
        await h.until(lambda: len(recorder.calls) == 4, "four attempts")
        await h.until(lambda: recorder.queue.failures(Key(h.namespace, "one")) == 0, "forgotten")
        text = h.manager.context.metrics.render().decode()
        assert 'pybernetes_controller_reconciles_total{controller="recorder-controller",result="conflict"} 1' in text
        assert 'pybernetes_controller_reconciles_total{controller="recorder-controller",result="error"} 2' in text


async def test_a_mistake_of_ours_is_logged_with_its_trace(harness, caplog: pytest.LogCaptureFixture) -> None:
    Recorder.failures = {"one": [KeyError("a mistake")]}
    async with harness("recorder", kubelet=False, tolerate=(KeyError,)) as h:
        await h.client.create(replicaset("one", h.namespace))
        await h.until(lambda: len(h.controller("recorder").calls) == 2, "two attempts")
    assert any(record.exc_info and "one" in record.getMessage() for record in caplog.records)


async def test_it_is_called_again_after_the_time_it_asked_for(harness) -> None:
    async with harness("recorder", kubelet=False) as h:
        recorder = h.controller("recorder")
        recorder.after["one"] = 3600
        await h.client.create(replicaset("one", h.namespace))
        await h.until(lambda: recorder.queue.delayed == 1, "it waits")
        assert recorder.calls == ["one"]
        h.clock.advance(3600)
        await h.until(lambda: recorder.calls == ["one", "one"], "called again")


async def test_events_of_owned_objects_settle_expectations(harness) -> None:
    async with harness("recorder") as h:
        expectations = h.controller("recorder").expectations
        one = await h.client.create(replicaset("one", h.namespace))
        key = Key(h.namespace, "one")
        await h.until(lambda: h.controller("recorder").own.get(key))
        expectations.expect_creations(key, 2)
        await h.client.create(pod("a", h.namespace, "one", one))
        await h.until(lambda: expectations.pending(key)[0] == 1, "one is seen")
        assert not expectations.satisfied(key)
        second = await h.client.create(pod("b", h.namespace, "one", one))
        await h.until(lambda: expectations.satisfied(key), "both are seen")
        # A pod that is going (it has not gone yet) counts as deleted.
        h.kubelet.pause()
        await h.client.bind("b", h.namespace, "node-1")
        expectations.expect_deletions(key, [uid_of(second)])
        await h.client.delete(Pod, "b", h.namespace)
        await h.until(lambda: expectations.satisfied(key), "the deletion is seen")
        assert await h.get(Pod, "b")
        h.kubelet.resume()
        await h.until(lambda: not h.cached(Pod) or [p.metadata.name for p in h.cached(Pod)] == ["a"], "b is gone")


async def test_claiming_adopts_orphans_and_releases_what_no_longer_matches(harness) -> None:
    async with harness("recorder", kubelet=False) as h:
        owner = await h.client.create(replicaset("one", h.namespace))
        other = await h.client.create(replicaset("two", h.namespace))

        def matches(obj: Pod) -> bool:
            return (obj.metadata.labels or {}).get("app") == "one"

        async def claim() -> list[str]:
            claimed = await ownership.claim(h.client, owner, await h.list(Pod), matches, finalizers=["example.com/x"])
            assert all(each.metadata.owner_references[0].uid == uid_of(owner) for each in claimed)
            return [each.metadata.name for each in claimed]

        await h.client.create(pod("mine", h.namespace, "one", owner))
        await h.client.create(pod("theirs", h.namespace, "one", other))
        await h.client.create(pod("orphan", h.namespace, "one"))
        await h.client.create(pod("stranger", h.namespace, "else"))
        assert await claim() == ["mine", "orphan"]
        adopted = await h.get(Pod, "orphan")
        assert adopted.metadata.finalizers == ["example.com/x"]
        await h.client.patch(Pod, "orphan", {"metadata": {"labels": {"app": "else"}}}, h.namespace)
        assert await claim() == ["mine"]
        released = await h.get(Pod, "orphan")
        assert released.metadata.owner_references is None
        assert released.metadata.finalizers is None
        await h.client.delete(ReplicaSet, "one", h.namespace)
        await h.client.create(pod("late", h.namespace, "one"))
        with pytest.raises(ownership.OwnerChanged):
            await claim()


async def test_the_fake_kubelet_plays_the_life_of_pods(harness) -> None:
    async with harness("recorder") as h:
        for name, told in {
            "runs": {},
            "waits": {"pending": "true"},
            "sick": {"ready": "false"},
            "done": {"exit-code": "0"},
            "failed": {"exit-code": "3"},
        }.items():
            one = pod(name, h.namespace, "x")
            one.metadata.annotations = {f"fake-kubelet/{key}": value for key, value in told.items()}
            await h.client.create(one)

        def state(one: Pod) -> tuple[str, str]:
            ready = next((each.status for each in (one.status.conditions or ()) if each.type == "Ready"), "")
            return one.status.phase, ready

        expected = {
            "runs": ("Running", "True"),
            "waits": ("Pending", "False"),
            "sick": ("Running", "False"),
            "done": ("Succeeded", "False"),
            "failed": ("Failed", "False"),
        }
        await h.until(
            lambda: {one.metadata.name: state(one) for one in h.cached(Pod)} == expected, "all play their part"
        )
        failed = next(one for one in h.cached(Pod) if one.metadata.name == "failed")
        assert failed.status.container_statuses[0].state.terminated.exit_code == 3
        await h.client.patch(Pod, "sick", {"metadata": {"annotations": {"fake-kubelet/ready": None}}}, h.namespace)
        await h.until(
            lambda: [state(one) for one in h.cached(Pod) if one.metadata.name == "sick"] == [("Running", "True")]
        )
        await h.client.bind("runs", h.namespace, "node-1")
        await h.client.delete(Pod, "runs", h.namespace)
        await h.until(lambda: "runs" not in [one.metadata.name for one in h.cached(Pod)], "it is gone")


async def test_the_harness_finds_who_changes_the_cache(harness) -> None:
    async def change() -> None:
        async with harness("recorder", kubelet=False) as h:
            await h.client.create(replicaset("one", h.namespace))
            found = await h.until(lambda: h.cached(ReplicaSet))
            found[0].metadata.labels = {"changed": "by mistake"}

    with pytest.raises(AssertionError, match="objects of the shared cache were changed"):
        await change()


async def test_the_harness_injects_faults_for_controllers_only(harness) -> None:
    async with harness("recorder") as h:
        theirs = h.controller("recorder").client
        h.faults.conflict = 1.0
        with pytest.raises(errors.Conflict):
            await theirs.create(pod("refused", h.namespace, "x"))
        assert await theirs.list(Pod, h.namespace)
        h.faults.stop()
        h.faults.lost = 1.0
        with pytest.raises(ConnectionError):
            await theirs.create(pod("lost", h.namespace, "x"))
        assert await h.get(Pod, "lost"), "done without an event"
        h.faults.stop()
        for number in range(9):
            await h.client.create(pod(f"p{number}", h.namespace, "x"))
            if number % 3 == 0:
                h.faults.cut()
        await h.until(lambda: [one.status.phase for one in h.cached(Pod)] == ["Running"] * 10, "all run", within=30)
