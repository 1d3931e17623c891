"""lightkube: typed objects made from upstream's OpenAPI document, all kinds of patches, server-side apply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.core.async_client import AsyncClient
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec, ServicePort, ServiceSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Service
from lightkube.types import CascadeType, PatchType

from tools import ApiServer


@pytest.fixture
def client(cluster: ApiServer) -> Iterator[Client]:
    client = Client(
        config=KubeConfig.from_file(str(cluster.kubeconfig)), field_manager="lightkube-test", trust_env=False
    )
    yield client
    client.close()


@pytest.fixture
def space(client: Client) -> str:
    made = client.create(Namespace(metadata=ObjectMeta(generateName="lightkube-")))
    return str(made.metadata.name)


def _config(name: str, space: str, **data: str) -> ConfigMap:
    # The type is in the object because server-side apply wants it there.
    return ConfigMap(
        apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name=name, namespace=space), data=data or None
    )


def _deployment(space: str, replicas: int = 1, image: str = "nginx:1") -> Deployment:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"a": "b"}), spec=PodSpec(containers=[Container(name="c", image=image)])
    )
    spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(matchLabels={"a": "b"}), template=template)
    return Deployment(
        apiVersion="apps/v1", kind="Deployment", metadata=ObjectMeta(name="web", namespace=space), spec=spec
    )


def test_create_get_list_replace_delete(client: Client, space: str) -> None:
    made = client.create(_config("a", space, k="v"), namespace=space)
    assert made.metadata.uid
    made.data = {"k": "w"}
    assert client.replace(made).data == {"k": "w"}
    with pytest.raises(ApiError) as conflict:
        client.replace(made)
    assert (conflict.value.status.code, conflict.value.status.reason) == (409, "Conflict")
    client.set(ConfigMap, "a", namespace=space, labels={"x": "1"})
    for count in range(5):
        client.create(_config(f"b{count}", space), namespace=space)
    everything = client.list(ConfigMap, namespace=space, chunk_size=2)
    assert sorted(each.metadata.name for each in everything) == ["a", "b0", "b1", "b2", "b3", "b4"]
    selected = client.list(ConfigMap, namespace=space, labels={"x": ["1", "2"]}, fields={"metadata.name": "a"})
    assert [each.metadata.name for each in selected] == ["a"]
    client.deletecollection(ConfigMap, namespace=space)
    with pytest.raises(ApiError) as missing:
        client.get(ConfigMap, "a", namespace=space)
    assert missing.value.status.message == 'configmaps "a" not found'


def test_patches(client: Client, space: str) -> None:
    client.create(_deployment(space), namespace=space)
    more = {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "busybox"}]}}}}
    merged = client.patch(Deployment, "web", more, namespace=space)
    assert sorted(each.name for each in merged.spec.template.spec.containers) == ["c", "d"]
    replaced = client.patch(Deployment, "web", more, namespace=space, patch_type=PatchType.MERGE)
    assert [each.name for each in replaced.spec.template.spec.containers] == ["d"]
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    assert client.patch(Deployment, "web", operations, namespace=space, patch_type=PatchType.JSON).spec.replicas == 4
    with pytest.raises(ApiError) as refused:
        client.patch(Deployment, "web", {"spec": {"replicas": -1}}, namespace=space)
    assert refused.value.status.details.causes[0].field == "spec.replicas"
    rehearsed = client.patch(Deployment, "web", {"spec": {"replicas": 9}}, namespace=space, dry_run=True)
    assert rehearsed.spec.replicas == 9
    assert client.get(Deployment, "web", namespace=space).spec.replicas == 4


def test_subresources(client: Client, space: str) -> None:
    client.create(_deployment(space), namespace=space)
    scale = client.get(Deployment.Scale, "web", namespace=space)
    scale.spec = ScaleSpec(replicas=7)
    assert client.replace(scale, "web", namespace=space).spec.replicas == 7
    status = client.patch(Deployment.Status, "web", {"status": {"replicas": 7}}, namespace=space)
    assert (status.status.replicas, status.spec.replicas) == (7, 7)


def test_services_get_addresses_and_keep_them(client: Client, space: str) -> None:
    spec = ServiceSpec(ports=[ServicePort(port=80)])
    made = client.create(Service(metadata=ObjectMeta(name="s", namespace=space), spec=spec), namespace=space)
    patched = client.patch(Service, "s", {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, namespace=space)
    assert patched.spec.clusterIP == made.spec.clusterIP
    assert [(each.port, each.targetPort) for each in patched.spec.ports] == [(80, 8080)]


def test_apply(client: Client, space: str) -> None:
    made = client.apply(_deployment(space, image="nginx:1"), namespace=space)
    assert made.metadata.generation == 1
    again = client.apply(_deployment(space, image="nginx:1"), namespace=space)
    assert again.metadata.resourceVersion == made.metadata.resourceVersion
    newer = client.apply(_deployment(space, image="nginx:2"), namespace=space)
    assert (newer.spec.template.spec.containers[0].image, newer.metadata.generation) == ("nginx:2", 2)
    with pytest.raises(ApiError) as conflict:
        client.apply(_deployment(space, replicas=5, image="nginx:2"), namespace=space, field_manager="other")
    assert conflict.value.status.reason == "Conflict"
    assert conflict.value.status.message == (
        'Apply failed with 1 conflict: conflict with "lightkube-test": .spec.replicas'
    )
    cause = conflict.value.status.details.causes[0]
    assert (cause.field, cause.reason) == (".spec.replicas", "FieldManagerConflict")
    forced = client.apply(
        _deployment(space, replicas=5, image="nginx:2"), namespace=space, field_manager="other", force=True
    )
    assert forced.spec.replicas == 5
    managers = {(entry.manager, entry.operation) for entry in forced.metadata.managedFields}
    assert managers == {("lightkube-test", "Apply"), ("other", "Apply")}


def test_apply_removes_what_is_no_longer_said(client: Client, space: str) -> None:
    client.apply(_config("a", space, k="1", l="2"), namespace=space)
    client.patch(ConfigMap, "a", {"data": {"m": "3"}}, namespace=space, field_manager="somebody")
    assert client.apply(_config("a", space, k="1"), namespace=space).data == {"k": "1", "m": "3"}


def test_watch(client: Client, space: str) -> None:
    client.create(_config("w", space), namespace=space)
    seen = []
    for kind, each in client.watch(ConfigMap, namespace=space, server_timeout=20):
        seen.append((kind, each.metadata.name))
        if kind == "ADDED":
            client.patch(ConfigMap, "w", {"data": {"k": "v"}}, namespace=space)
        elif kind == "MODIFIED":
            client.delete(ConfigMap, "w", namespace=space, cascade=CascadeType.BACKGROUND)
        else:
            break
    assert seen == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_kinds_it_has_no_class_for(client: Client, space: str) -> None:
    leases = create_namespaced_resource("coordination.k8s.io", "v1", "Lease", "leases")
    made = client.create(leases({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}), namespace=space)
    assert made["spec"]["holderIdentity"] == "me"
    assert [each.metadata.name for each in client.list(leases, namespace=space)] == ["l"]


def test_asynchronously(cluster: ApiServer, space: str) -> None:
    async def run() -> list[str | None]:
        client = AsyncClient(config=KubeConfig.from_file(str(cluster.kubeconfig)), trust_env=False)
        await asyncio.gather(*(client.create(_config(f"a{n}", space), namespace=space) for n in range(10)))
        names = [each.metadata.name async for each in client.list(ConfigMap, namespace=space)]
        await client.close()
        return sorted(names)

    assert asyncio.run(run()) == sorted(f"a{n}" for n in range(10))
