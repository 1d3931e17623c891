"""The plugin in a cluster: installed beside Pybernetes (`pip install .`), enabled by a profile."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

CONFIG = Path(__file__).parent / "scheduler.yaml"
if not entry_points(group="pybernetes.scheduler.plugins", name="Maintenance"):
    pytest.skip("the plugin is not installed: pip install examples/scheduler_plugin", allow_module_level=True)


@pytest.mark.pyb_cluster(nodes=2, scheduler_config=str(CONFIG))
def test_a_node_in_maintenance_gets_no_pods(pyb_client):
    pyb_client.patch("nodes", "node-0001", {"metadata": {"labels": {"example.com/maintenance": "true"}}})
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    for number in range(4):
        pyb_client.create({**pod, "metadata": {"name": f"pod-{number}"}})
        pyb_client.wait_for("pods", f"pod-{number}", "Ready")
    assert {each["spec"]["nodeName"] for each in pyb_client.list("pods")} == {"node-0002"}
    pyb_client.patch("nodes", "node-0002", {"metadata": {"labels": {"example.com/maintenance": "true"}}})
    pyb_client.create({**pod, "metadata": {"name": "late"}})
    waiting = pyb_client.wait_for("pods", "late", "PodScheduled=False")
    assert "2 node(s) were in maintenance" in waiting["status"]["conditions"][0]["message"]
