"""The official Python client: typed, watching, dynamic."""

from __future__ import annotations

import threading

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

from tools import ApiServer


@pytest.fixture(scope="module")
def api(cluster: ApiServer) -> client.ApiClient:
    return config.new_client_from_config(str(cluster.kubeconfig))


@pytest.fixture
def space(api: client.ApiClient) -> str:
    made = client.CoreV1Api(api).create_namespace({"metadata": {"generateName": "client-"}})
    return str(made.metadata.name)


def test_create_read_update_patch_delete(api: client.ApiClient, space: str) -> None:
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(space, client.V1ConfigMap(metadata={"name": "a"}, data={"x": "1"}))
    assert made.metadata.uid
    found = core.read_namespaced_config_map("a", space)
    found.data["y"] = "2"
    assert core.replace_namespaced_config_map("a", space, found).data == {"x": "1", "y": "2"}
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("a", space, found)
    assert conflict.value.status == 409
    assert core.patch_namespaced_config_map("a", space, {"data": {"z": "3"}}).data["z"] == "3"
    listed = core.list_namespaced_config_map(space, field_selector="metadata.name=a")
    assert [item.metadata.name for item in listed.items] == ["a"]
    core.delete_namespaced_config_map("a", space)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("a", space)
    assert missing.value.status == 404


def test_workloads_and_subresources(api: client.ApiClient, space: str) -> None:
    apps = client.AppsV1Api(api)
    container = client.V1Container(name="c", image="nginx", resources={"requests": {"cpu": "0.1"}})
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"a": "b"}), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(replicas=2, selector={"matchLabels": {"a": "b"}}, template=template)
    made = apps.create_namespaced_deployment(space, client.V1Deployment(metadata={"name": "d"}, spec=spec))
    assert made.metadata.generation == 1
    assert made.spec.template.spec.containers[0].resources.requests == {"cpu": "100m"}
    scale = apps.patch_namespaced_deployment_scale("d", space, {"spec": {"replicas": 5}})
    assert scale.spec.replicas == 5
    assert scale.status.selector == "a=b"
    status = apps.patch_namespaced_deployment_status("d", space, {"status": {"replicas": 5, "observedGeneration": 2}})
    assert status.status.replicas == 5


def test_watch(api: client.ApiClient, space: str) -> None:
    core = client.CoreV1Api(api)
    before = core.list_namespaced_config_map(space).metadata.resource_version
    seen = []

    def follow() -> None:
        watcher = watch.Watch()
        for event in watcher.stream(
            core.list_namespaced_config_map, space, resource_version=before, timeout_seconds=30
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                watcher.stop()

    thread = threading.Thread(target=follow)
    thread.start()
    core.create_namespaced_config_map(space, {"metadata": {"name": "w"}})
    core.patch_namespaced_config_map("w", space, {"data": {"a": "b"}})
    core.delete_namespaced_config_map("w", space)
    thread.join(30)
    assert seen[-1] == ("DELETED", "w")
    assert seen[0] == ("ADDED", "w")


def test_dynamic_client(api: client.ApiClient, space: str) -> None:
    resources = dynamic.DynamicClient(api)
    jobs = resources.resources.get(api_version="batch/v1", kind="Job")
    container = {"name": "c", "image": "busybox"}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
    }
    assert jobs.create(body=body, namespace=space).metadata.name == "j"
    assert jobs.get(name="j", namespace=space).spec.completions == 1
    assert [item.metadata.name for item in jobs.get(namespace=space).items] == ["j"]
    jobs.delete(name="j", namespace=space, body={"propagationPolicy": "Background"})
    assert jobs.get(namespace=space).items == []
