"""ResourceQuota: exact under load, and in upstream's words."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from apiserver.admission.conftest import Play, server_with
from apiserver.client import Client

from pybernetes.apiserver.admission.quota_limits import read_configuration


def test_answers_as_upstream(play: Play) -> None:
    play("resource_quota")


def quota(client: Client, namespace: str, hard: dict[str, str], used: dict[str, str], name: str = "q") -> str:
    """A quota whose usage is known, as its controller would have it."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    assert client.post(path, {"metadata": {"name": name}, "spec": {"hard": hard}}).status == 201
    assert client.patch(f"{path}/{name}/status", {"status": {"hard": hard, "used": used}}).status == 200
    return f"{path}/{name}"


def at_once(client: Client, path: str, bodies: list[dict[str, Any]], connections: int = 50) -> list[int]:
    """The statuses of many creates that are under way together."""

    def some(part: list[dict[str, Any]]) -> list[int]:
        connection: http.client.HTTPSConnection = client.connect()
        statuses = []
        for body in part:
            connection.request("POST", path, json.dumps(body), client._headers(body, {}))
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
        return statuses

    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        parts = [bodies[start::connections] for start in range(connections)]
        return [status for statuses in pool.map(some, parts) for status in statuses]


def test_a_thousand_creates_against_a_quota_of_ten_give_exactly_ten(admin: Client) -> None:
    namespace = admin.namespace()
    path = quota(admin, namespace, {"count/configmaps": "10"}, {"count/configmaps": "0"})
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    statuses = at_once(admin, maps, [{"metadata": {"name": f"c{number}"}} for number in range(1000)])
    assert (statuses.count(201), statuses.count(403)) == (10, 990)
    assert len(admin.get(maps).json["items"]) == 10
    assert admin.get(path).json["status"]["used"] == {"count/configmaps": "10"}


def test_two_quotas_and_a_writer_that_races_stay_exact(admin: Client) -> None:
    """The controller recounts while requests are charged: neither overwrites the other."""
    namespace = admin.namespace()
    first = quota(admin, namespace, {"count/configmaps": "40"}, {"count/configmaps": "0"})
    second = quota(admin, namespace, {"configmaps": "30"}, {"configmaps": "0"}, "r")
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        bodies = [{"metadata": {"name": f"c{number}"}} for number in range(200)]
        creating = pool.submit(at_once, admin, maps, bodies, 20)
        rounds = 0
        while not creating.done():  # unrelated writes of the same object
            assert admin.patch(first, {"metadata": {"labels": {"round": str(rounds)}}}).status == 200
            rounds += 1
        statuses = creating.result()
    assert statuses.count(201) == 30
    assert admin.get(second).json["status"]["used"] == {"configmaps": "30"}
    # What one quota let in and the other refused is never charged.
    assert admin.get(first).json["status"]["used"] == {"count/configmaps": "30"}


def test_a_dry_run_is_judged_and_not_charged(admin: Client) -> None:
    namespace = admin.namespace()
    path = quota(admin, namespace, {"configmaps": "1"}, {"configmaps": "0"})
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for _ in range(3):
        assert admin.post(f"{maps}?dryRun=All", {"metadata": {"name": "c"}}).status == 201
    assert admin.get(path).json["status"]["used"] == {"configmaps": "0"}
    assert admin.post(maps, {"metadata": {"name": "c"}}).status == 201
    assert admin.post(f"{maps}?dryRun=All", {"metadata": {"name": "d"}}).status == 403


def test_the_server_owns_the_usage_it_has_charged(admin: Client) -> None:
    namespace = admin.namespace()
    path = quota(admin, namespace, {"configmaps": "5", "pods": "1"}, {"configmaps": "0", "pods": "0"})
    assert admin.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "c"}}).status == 201
    owners = {each["manager"]: each for each in admin.get(path).json["metadata"]["managedFields"]}
    entry = owners["kube-apiserver"]
    assert (entry["operation"], entry["subresource"]) == ("Update", "status")
    assert entry["fieldsV1"] == {"f:status": {"f:used": {"f:configmaps": {}}}}


def test_a_name_that_is_taken_costs_nothing(admin: Client) -> None:
    namespace = admin.namespace()
    path = quota(admin, namespace, {"configmaps": "5", "pods": "1"}, {"configmaps": "0", "pods": "0"})
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    assert admin.post(maps, {"metadata": {"name": "c"}}).status == 201
    statuses = at_once(admin, maps, [{"metadata": {"name": "c"}}] * 100, 10)
    assert set(statuses) <= {409, 403}  # 403 while others have been charged and not yet paid back
    assert 409 in statuses
    assert admin.get(path).json["status"]["used"] == {"configmaps": "1", "pods": "0"}


LIMITED = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: persistentvolumeclaims
      matchContains: [".storageclass.storage.k8s.io/requests.storage"]
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}
"""


def test_limited_resources_need_a_quota_that_covers_them(tmp_path: Path) -> None:
    (tmp_path / "admission.yaml").write_text(LIMITED)
    flags = (
        f"--admission-control-config-file={tmp_path}/admission.yaml",
        "--disable-admission-plugins=ServiceAccount",
    )
    with server_with(tmp_path, *flags) as client:
        namespace = client.namespace()
        path = f"/api/v1/namespaces/{namespace}"
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        gold = {"metadata": {"name": "c"}, "spec": {**spec, "storageClassName": "gold"}}
        refused = client.post(f"{path}/persistentvolumeclaims", gold)
        assert refused.status == 403
        assert "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage" in refused.message
        assert client.post(f"{path}/persistentvolumeclaims", {"metadata": {"name": "d"}, "spec": spec}).status == 201
        pod = {"containers": [{"name": "a", "image": "b"}], "priorityClassName": "system-cluster-critical"}
        refused = client.post(f"{path}/pods", {"metadata": {"name": "p"}, "spec": pod})
        expected = "insufficient quota to match these scopes: [{PriorityClass In [system-cluster-critical]}]"
        assert expected in refused.message
        hard = {"gold.storageclass.storage.k8s.io/requests.storage": "2Gi"}
        quota(client, namespace, hard, dict.fromkeys(hard, "0"))
        assert client.post(f"{path}/persistentvolumeclaims", gold).status == 201


def test_a_limited_resource_has_a_name() -> None:
    document = {"kind": "ResourceQuotaConfiguration", "apiVersion": "apiserver.config.k8s.io/v1"}
    with pytest.raises(ValueError, match=r"limitedResources\[0\].resource: Required value"):
        read_configuration({**document, "limitedResources": [{}]})
