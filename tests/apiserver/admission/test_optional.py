"""The plugins that are not on by default: on, they answer as upstream's do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apiserver.admission.conftest import played, server_with
from apiserver.client import Client

CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Server, qps: 100, burst: 1000}
    - {type: Namespace, qps: 1, burst: 3}
    - {type: SourceAndObject, qps: 1, burst: 2, cacheSize: 100}
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig:
      clusterDefaultNodeSelector: env=prod
      listed: env=prod,disk=ssd
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    default: [{key: d, operator: Exists}]
"""
NAMES = (
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "NodeRestriction",
    "AlwaysPullImages",
    "PodNodeSelector",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "OwnerReferencesPermissionEnforcement",
    "DenyServiceExternalIPs",
)


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("optional")
    (folder / "admission.yaml").write_text(CONFIGURATION)
    flags = (
        f"--enable-admission-plugins={','.join(NAMES)}",
        f"--admission-control-config-file={folder}/admission.yaml",
    )
    with server_with(folder, *flags) as client:
        yield client


@pytest.mark.parametrize("name", ["optional", "node_restriction"])
def test_answers_as_upstream(optional: Client, name: str) -> None:
    played(optional, name)


def pod(client: Client, namespace: str, **spec: object) -> tuple[int, str]:
    body = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "a", "image": "b"}], **spec}}
    answer = client.post(f"/api/v1/namespaces/{namespace}/pods", body)
    return answer.status, answer.message


def test_a_listed_namespace_selects_by_its_labels_only(optional: Client) -> None:
    assert optional.post("/api/v1/namespaces", {"metadata": {"name": "listed"}}).status == 201
    optional.post("/api/v1/namespaces/listed/serviceaccounts", {"metadata": {"name": "default"}})
    assert pod(optional, "listed", nodeSelector={"disk": "ssd"})[0] == 201
    status, message = pod(optional, "listed", nodeSelector={"gpu": "yes"})
    assert status == 403
    assert "pod node label selector labels conflict with its namespace whitelist" in message


def test_tolerations_beyond_a_namespaces_whitelist_are_refused(optional: Client) -> None:
    """Upstream refuses them too, with 500."""
    whitelist = (
        '[{"key":"node.kubernetes.io/not-ready","operator":"Exists"},'
        '{"key":"node.kubernetes.io/unreachable","operator":"Exists"},{"key":"d","operator":"Exists"}]'
    )
    notes = {"scheduler.alpha.kubernetes.io/tolerationsWhitelist": whitelist}
    made = optional.post("/api/v1/namespaces", {"metadata": {"generateName": "w-", "annotations": notes}})
    namespace = made.json["metadata"]["name"]
    optional.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    assert pod(optional, namespace)[0] == 201
    status, message = pod(optional, namespace, tolerations=[{"key": "other", "operator": "Exists"}])
    assert status == 403
    assert "conflict with its namespace whitelist" in message


def test_an_annotation_that_cannot_be_read_is_reported(optional: Client) -> None:
    for key, value in (("node-selector", "a=b=c"), ("defaultTolerations", "nonsense")):
        notes = {f"scheduler.alpha.kubernetes.io/{key}": value}
        made = optional.post("/api/v1/namespaces", {"metadata": {"generateName": "w-", "annotations": notes}})
        namespace = made.json["metadata"]["name"]
        optional.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
        status, message = pod(optional, namespace)
        assert status == 403
        assert f"scheduler.alpha.kubernetes.io/{key}" in message


def test_a_mirror_pod_of_ones_own_is_admitted_and_may_refer_to_nothing(optional: Client) -> None:
    node = optional.post("/api/v1/nodes", {"metadata": {"name": "mirrored"}}).json["metadata"]
    user = {"Impersonate_User": "system:node:mirrored", "Impersonate_Group": "system:nodes"}
    owner = {"apiVersion": "v1", "kind": "Node", "name": "mirrored", "uid": node["uid"], "controller": True}
    meta = {
        "name": "static-mirrored",
        "annotations": {"kubernetes.io/config.mirror": "h"},
        "ownerReferences": [owner],
    }
    spec = {"nodeName": "mirrored", "nodeSelector": {"env": "prod"}, "containers": [{"name": "a", "image": "b"}]}
    path = f"/api/v1/namespaces/{optional.namespace()}/pods"
    for volume, what in (
        ({"configMap": {"name": "c"}}, "configmaps"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "persistentvolumeclaims"),
        ({"projected": {"sources": [{"clusterTrustBundle": {"name": "t", "path": "p"}}]}}, "clustertrustbundles"),
    ):
        refused = optional.post(
            path, {"metadata": meta, "spec": {**spec, "volumes": [{"name": "v", **volume}]}}, **user
        )
        assert refused.status == 403
        assert f'node "mirrored" can not create pods that reference {what}' in refused.message
    assert optional.post(path, {"metadata": meta, "spec": spec}, **user).status == 201
    assert optional.delete("/api/v1/nodes/mirrored").status == 200
