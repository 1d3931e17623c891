"""A deleted Node stays away, with its Lease, until its kubelet is started anew."""

from __future__ import annotations

from node.cluster import Cluster
from node.runtimes import only

import tools


@only("embedded")
def test_a_kubelet_whose_node_is_deleted_registers_it_only_when_started_anew(own_node: Cluster) -> None:
    cluster = own_node
    before = cluster.get("node", "node-1")["metadata"]["uid"]
    pid = cluster.find("kubelet")
    cluster.kubectl("delete", "node", "node-1")
    told = "node node-1 not found: its kubelet registers it only when started anew"
    tools.wait_until(lambda: told in cluster.log("node-1-kubelet"), "the kubelet has seen that its Node is gone")
    lease = ("get", "lease", "node-1", "-n", "kube-node-lease", "--ignore-not-found", "-o", "name")
    tools.wait_until(lambda: not cluster.kubectl(*lease), "the Lease is collected")
    assert cluster.kubectl("get", "nodes", "-o", "name") == ""
    assert cluster.find("kubelet") == pid, "the kubelet was not to be started anew by itself"
    cluster.kill("kubelet")
    cluster.wait_ready()
    assert cluster.get("node", "node-1")["metadata"]["uid"] != before
