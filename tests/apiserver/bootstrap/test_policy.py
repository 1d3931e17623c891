"""The roles that every cluster has are there at every start, without taking anything away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apiserver.client import Client

from pybernetes.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from pybernetes.apiserver.authz.bootstrap_policy import bootstrap_policy
from tools import api_server

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def test_as_many_as_upstream_has() -> None:
    kinds = [type(each) for each in bootstrap_policy()]
    counts = {kind: kinds.count(kind) for kind in (ClusterRole, ClusterRoleBinding, Role, RoleBinding)}
    assert counts == {ClusterRole: 69, ClusterRoleBinding: 50, Role: 7, RoleBinding: 7}


def test_a_start_gives_back_what_is_missing_and_leaves_what_was_added(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/store.db"
    extra = {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}
    friend = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "friend"}
    with api_server(tmp_path / "one", store=store) as server:
        client = Client(server)

        def get(path: str) -> Any:
            return client.get(f"{RBAC}/{path}").json

        before = get("clusterroles/system:kube-scheduler")
        assert before["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
        client.patch(f"{RBAC}/clusterroles/system:kube-scheduler", {"rules": [extra], "metadata": {"labels": None}})
        protected = {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []}
        client.patch(f"{RBAC}/clusterroles/system:node-proxier", protected)
        client.patch(f"{RBAC}/clusterrolebindings/system:discovery", {"subjects": [friend]})
        client.delete(f"{RBAC}/clusterrolebindings/system:basic-user")
        changed = get("clusterrolebindings/system:kube-dns")
        client.delete(f"{RBAC}/clusterrolebindings/system:kube-dns")
        changed["roleRef"]["name"] = "view"
        del changed["metadata"]["resourceVersion"], changed["metadata"]["uid"]
        assert client.post(f"{RBAC}/clusterrolebindings", changed).status == 201
        client.patch(f"{RBAC}/clusterroles/view", {"aggregationRule": None})
        untouched = get("clusterroles/system:discovery")["metadata"]["resourceVersion"]
    with api_server(tmp_path / "two", store=store) as server:
        client = Client(server)
        after = get("clusterroles/system:kube-scheduler")
        assert after["rules"][0] == extra
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        granted = {
            (v, g, r) for x in after["rules"] for v in x["verbs"] for g in x["apiGroups"] for r in x["resources"]
        }
        wanted = {
            (v, g, r) for x in before["rules"] for v in x["verbs"] for g in x["apiGroups"] for r in x["resources"]
        }
        assert granted == wanted | {("get", "x", "y")}
        assert not get("clusterroles/system:node-proxier")["rules"]
        assert [each["name"] for each in get("clusterrolebindings/system:discovery")["subjects"]] == [
            "friend",
            "system:authenticated",
        ]
        assert get("clusterrolebindings/system:basic-user")["roleRef"]["name"] == "system:basic-user"
        assert get("clusterrolebindings/system:kube-dns")["roleRef"]["name"] == "system:kube-dns"
        assert get("clusterroles/view")["aggregationRule"]["clusterRoleSelectors"]
        assert get("clusterroles/system:discovery")["metadata"]["resourceVersion"] == untouched
