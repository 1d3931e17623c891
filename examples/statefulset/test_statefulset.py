"""Pods of a StatefulSet have names that stay, come in order, and go in the other one."""

from __future__ import annotations

from pathlib import Path

MANIFEST = Path(__file__).parent / "statefulset.yaml"


def pods(client):
    found = sorted(client.list("pods"), key=lambda each: each["metadata"]["creationTimestamp"])
    return [each["metadata"]["name"] for each in found]


def test_pods_come_in_order_with_names_that_stay(pyb_cluster, pyb_client):
    pyb_client.apply(MANIFEST)
    pyb_client.wait_for("statefulsets", "peers", lambda each: each["status"].get("readyReplicas") == 3)
    assert sorted(pods(pyb_client)) == ["peers-0", "peers-1", "peers-2"]
    uid = pyb_client.get("pods", "peers-1")["metadata"]["uid"]
    pyb_client.delete("pods", "peers-1")
    pyb_client.wait_for("pods", "peers-1", lambda each: each["metadata"]["uid"] != uid)
    pyb_client.patch("statefulsets", "peers", {"spec": {"replicas": 1}})
    pyb_client.wait_for("statefulsets", "peers", lambda each: each["status"]["replicas"] == 1)
    pyb_cluster.clock.advance(60)
    assert pods(pyb_client) == ["peers-0"]
