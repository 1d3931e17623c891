"""The typed client against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from pybernetes.api import errors
from pybernetes.api.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from pybernetes.api.authentication.v1 import SelfSubjectReview
from pybernetes.api.core.v1 import (
    ConfigMap,
    Container,
    Namespace,
    Node,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
)
from pybernetes.api.events.v1 import Event as NewEvent
from pybernetes.api.meta.v1 import LabelSelector, ObjectMeta, PartialObjectMetadata
from pybernetes.client import codec
from pybernetes.client.client import Client
from pybernetes.client.discovery import discover
from pybernetes.client.keys import controller_reference, copy, is_controlled_by, key_of, resource_of
from pybernetes.client.metadata import MetadataClient
from pybernetes.client.retry import retry_on_conflict
from pybernetes.client.transport import error_of

Connect = Callable[[], Client]


async def in_namespace(client: Client, name: str) -> str:
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
    return name


def config_map(name: str, namespace: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": name}), data=data or None)


def pod(name: str, namespace: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodSpec(containers=[Container(name="main", image="busybox")]),
    )


async def test_an_object_is_created_read_changed_and_deleted(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        sent = config_map("a", namespace, x="1")
        made = await client.create(sent)
        assert sent.kind is None, "what is sent is not changed"
        assert made.metadata.uid
        assert made.kind == "ConfigMap"
        made.data = {"x": "2"}
        changed = await client.update(made)
        assert changed.metadata.resource_version != made.metadata.resource_version
        with pytest.raises(errors.Conflict):
            await client.update(made)
        assert (await client.get(ConfigMap, "a", namespace)).data == {"x": "2"}
        with pytest.raises(errors.Conflict):
            await client.delete(ConfigMap, "a", namespace, uid="another")
        await client.delete(ConfigMap, "a", namespace, uid=made.metadata.uid)
        with pytest.raises(errors.NotFound) as caught:
            await client.get(ConfigMap, "a", namespace)
        assert str(caught.value) == 'configmaps "a" not found'


async def test_the_program_is_the_field_manager(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        made = await client.for_component("part").create(config_map("a", namespace, x="1"))
        assert [entry.manager for entry in made.metadata.managed_fields] == ["test-client"]


async def test_impersonation_applies_to_all_requests_of_a_client(connect: Connect) -> None:
    async with connect() as client:
        somebody = client.acting_as("somebody", ["a-group"], "program")
        for each in (somebody, somebody.for_component("part")):
            review = await each.create(SelfSubjectReview())
            assert review.status.user_info.username == "somebody"
            assert "a-group" in review.status.user_info.groups


async def test_all_kinds_of_patches(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        await client.create(config_map("a", namespace, x="1", y="1"))
        patched = await client.patch(ConfigMap, "a", {"data": {"x": None, "z": "3"}}, namespace)
        assert patched.data == {"y": "1", "z": "3"}
        operations = [{"op": "replace", "path": "/data/y", "value": "2"}]
        assert (await client.patch(ConfigMap, "a", operations, namespace, type="json")).data["y"] == "2"
        change = {"metadata": {"finalizers": ["example.com/x"]}}
        patched = await client.patch(ConfigMap, "a", change, namespace, type="strategic", dry_run=True)
        assert patched.metadata.finalizers == ["example.com/x"]
        assert (await client.get(ConfigMap, "a", namespace)).metadata.finalizers is None
        applied = config_map("a", namespace, z="4")
        with pytest.raises(errors.Conflict) as caught:
            await client.apply(applied, field_manager="other")
        assert caught.value.causes
        assert (await client.apply(applied, field_manager="other", force=True)).data["z"] == "4"


async def test_lists_select_and_come_in_pages(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        for name in "abcde":
            await client.create(config_map(name, namespace))
        found = await client.list(ConfigMap, namespace, label_selector="app in (a,b)")
        assert [each.metadata.name for each in found.items] == ["a", "b"]
        assert found.resource_version
        pages = [page async for page in client.pages(ConfigMap, namespace, limit=2)]
        assert [[each.metadata.name for each in page.items] for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
        found = await client.list(ConfigMap, namespace, field_selector="metadata.name=c")
        assert [each.metadata.name for each in found.items] == ["c"]
        await client.delete_collection(ConfigMap, namespace, label_selector="app notin (e)")
        assert [each.metadata.name for each in (await client.list(ConfigMap, namespace)).items] == ["e"]
        assert (await client.list(ConfigMap, namespace, label_selector="app=none")).items == []


async def test_a_watch_tells_changes_since_a_revision_and_ends(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        since = (await client.list(ConfigMap, namespace)).resource_version
        await client.create(config_map("a", namespace))
        await client.patch(ConfigMap, "a", {"data": {"x": "1"}}, namespace)
        await client.delete(ConfigMap, "a", namespace)
        async with client.watch(ConfigMap, namespace, resource_version=since, timeout_seconds=1) as events:
            seen = [(event.type, event.object.data) async for event in events if event.type != "BOOKMARK"]
        assert seen == [("ADDED", None), ("MODIFIED", {"x": "1"}), ("DELETED", {"x": "1"})]


async def test_a_watch_of_a_revision_from_the_past_or_of_nothing_is_refused(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(errors.BadRequest):
            async with client.watch(ConfigMap, resource_version="nonsense"):
                pass


async def test_subresources(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        made = await client.create(pod("a", namespace))
        made.status = PodStatus(phase="Running")
        assert (await client.update_status(made)).status.phase == "Running"
        await client.bind("a", namespace, "node-1", uid=made.metadata.uid)
        assert (await client.get(Pod, "a", namespace)).spec.node_name == "node-1"
        await client.evict("a", namespace, grace_period_seconds=0)
        with pytest.raises(errors.NotFound):
            await client.get(Pod, "a", namespace)

        labels = {"app": "web"}
        template = PodTemplateSpec(
            metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="main", image="busybox")])
        )
        spec = DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=labels), template=template)
        await client.create(Deployment(metadata=ObjectMeta(name="web", namespace=namespace), spec=spec))
        scale = await client.get_scale(Deployment, "web", namespace)
        scale.spec.replicas = 3
        assert (await client.update_scale(resource_of(Deployment), scale)).spec.replicas == 3
        assert (await client.get(Deployment, "web", namespace)).spec.replicas == 3

        found = await client.get(Namespace, namespace)
        found.spec.finalizers = ["example.com/x", "kubernetes"]
        answer = await client.subresource("PUT", Namespace, namespace, "", "finalize", found)
        assert answer.spec.finalizers == ["example.com/x", "kubernetes"]


async def test_retry_on_conflict_reads_and_writes_again(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        await client.create(config_map("a", namespace, n="0"))

        async def increase() -> None:
            found = await client.get(ConfigMap, "a", namespace)
            found.data["n"] = str(int(found.data["n"]) + 1)
            await client.update(found)

        await asyncio.gather(*(retry_on_conflict(increase, steps=50) for _ in range(5)))
        assert (await client.get(ConfigMap, "a", namespace)).data == {"n": "5"}
        attempts = 0

        async def never() -> None:
            nonlocal attempts
            attempts += 1
            raise errors.Conflict("", "configmaps", "a")

        with pytest.raises(errors.Conflict):
            await retry_on_conflict(never)
        assert attempts == 5


async def test_any_resource_by_its_metadata_also_custom_ones(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await in_namespace(client, namespace)
        await client.create(config_map("a", namespace, x="1"))
        resource = resource_of(ConfigMap)
        metadata = MetadataClient(client)
        one = await metadata.get(resource, "a", namespace)
        assert isinstance(one, PartialObjectMetadata)
        assert one.metadata.labels == {"app": "a"}
        assert [each.metadata.name for each in (await metadata.list(resource, namespace)).items] == ["a"]
        patched = await metadata.patch(resource, "a", {"metadata": {"finalizers": ["example.com/x"]}}, namespace)
        assert patched.metadata.finalizers == ["example.com/x"]
        await metadata.delete(resource, "a", namespace, uid=one.metadata.uid, propagation_policy="Background")
        assert (await metadata.get(resource, "a", namespace)).metadata.deletion_timestamp
        await metadata.patch(resource, "a", {"metadata": {"finalizers": None}}, namespace)
        with pytest.raises(errors.NotFound):
            await metadata.get(resource, "a", namespace)
        await client.create(config_map("b", namespace))
        await metadata.delete_collection(resource, namespace)
        assert (await metadata.list(resource, namespace)).items == []


async def test_discovery_finds_our_resources_as_ours(connect: Connect) -> None:
    async with connect() as client:
        found = await discover(client)
        assert resource_of(Deployment) in found.resources
        assert found.for_kind("apps/v1", "Deployment") is resource_of(Deployment)
        assert found.for_kind("apps/v1", "Nothing") is None
        deletable = found.with_verbs("delete", "list", "watch", namespaced=True)
        assert resource_of(Pod) in deletable
        assert resource_of(Node) not in deletable
        assert [each.version for each in found.preferred if each.plural == "horizontalpodautoscalers"] == ["v2"]
        assert found.stale == []


async def test_a_request_without_a_name_is_refused_before_it_means_the_whole_collection(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(ValueError, match="a name is needed"):
            await client.delete(ConfigMap, "", "default")
        with pytest.raises(errors.NotFound):  # as for any other name that no object has
            await client.get(ConfigMap, "", "default")


def test_classes_find_their_resources() -> None:
    assert resource_of(Pod).plural == "pods"
    assert resource_of(NewEvent).group == "events.k8s.io"
    with pytest.raises(LookupError):
        resource_of(PartialObjectMetadata)


def test_a_copy_shares_nothing() -> None:
    one = pod("a", "b")
    other = copy(one)
    other.spec.containers[0].image = "other"
    other.metadata.labels = {"x": "y"}
    assert one == pod("a", "b")
    assert copy(one.spec) == one.spec


def test_owner_references() -> None:
    owner = ReplicaSet(metadata=ObjectMeta(name="web", namespace="b", uid="u1"))
    one = pod("a", "b")
    assert not is_controlled_by(one, owner)
    one.metadata.owner_references = [controller_reference(owner)]
    assert is_controlled_by(one, owner)
    reference = one.metadata.owner_references[0]
    assert (reference.api_version, reference.kind, reference.name, reference.controller) == (
        "apps/v1",
        "ReplicaSet",
        "web",
        True,
    )
    assert str(key_of(one)) == "b/a"


def test_fields_of_a_newer_server_are_left_out() -> None:
    body = b'{"kind":"Pod","metadata":{"name":"a","newer":1},"spec":{"containers":[{"name":"x","brandNew":{}}]}}'
    found = codec.decode(Pod, body)
    assert (found.metadata.name, found.spec.containers[0].name) == ("a", "x")
    many = codec.decode_list(Pod, b'{"metadata":{"resourceVersion":"7","later":1},"items":[' + body + b"]}")
    assert (many.resource_version, many.items[0].metadata.name) == ("7", "a")
    assert codec.decode_list(Pod, b'{"metadata":{},"items":null}').items == []


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "text"),
    [
        (404, {}, b"404 page not found\n", errors.NotFound, "the server could not find the requested resource"),
        (502, {}, b"", errors.InternalError, "the server answered 502"),
        (429, {"retry-after": "3"}, b"busy", errors.TooManyRequests, "busy"),
        (
            409,
            {},
            msgspec.json.encode({"kind": "Status", "message": "no", "reason": "AlreadyExists", "code": 409}),
            errors.AlreadyExists,
            "no",
        ),
    ],
)
def test_errors_become_exceptions_with_any_server(
    status: int, headers: dict[str, str], body: bytes, kind: type[errors.APIError], text: str
) -> None:
    error = error_of(status, headers, body)
    assert isinstance(error, kind)
    assert (str(error), error.code) == (text, status)
    assert error.retry_after == int(headers.get("retry-after", 0))
