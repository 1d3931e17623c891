"""docs/walk.md tells the truth: a Deployment in a cluster in one process passes by its steps, in their order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import tools

ROW = re.compile(r"^\| [^|]+ \| `([\w/]+\.py)` \| `([\w.]+)` \|$", re.M)
FOLLOW = """
import asyncio, json, sys
from pathlib import Path
from pybernetes.testing import virtual_time
virtual_time.install()
from pybernetes.cluster import certificates
from pybernetes.testing.control_plane import ADMIN, ControlPlane
from pybernetes.testing.loop import ClusterLoop
from pybernetes.testing.options import parse

folder = Path(sys.argv[1])
steps = [tuple(each) for each in json.loads(sys.argv[2])]
(folder / "pki").mkdir()
certificates.ensure(folder / "pki", ["10.96.0.1"])
loop = ClusterLoop()
asyncio.set_event_loop(loop)
control_plane = ControlPlane(parse({"nodes": 1}), folder / "pki", folder)
loop.run_until_complete(control_plane.start())
client = control_plane.client(ADMIN, "walk")
wanted = {name: path for path, name in steps}
called = []

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_qualname in wanted and code.co_filename.endswith("/" + wanted[code.co_qualname]):
        called.append(code.co_qualname)

async def walk():
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    path = "/apis/apps/v1/namespaces/default/deployments"
    sys.setprofile(note)
    await client.call("POST", path, {"metadata": {"name": "web"}, "spec": spec})
    await loop.settle()
    for _ in range(60):
        found = await client.call("GET", path + "/web")
        if found.get("status", {}).get("readyReplicas") == 1:
            break
        await loop.advance(1.0)
    sys.setprofile(None)
    assert found["status"]["readyReplicas"] == 1, found

loop.run_until_complete(walk())
print(json.dumps(called))
"""


def test_a_deployment_passes_by_each_step_in_its_turn(tmp_path: Path) -> None:
    import json

    text = (tools.ROOT / "docs" / "walk.md").read_text().partition("## On a real node")[0]
    steps = ROW.findall(text)
    assert len(steps) >= 20
    argv = [sys.executable, "-P", "-c", FOLLOW, str(tmp_path), json.dumps(steps)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rest = iter(json.loads(done.stdout.splitlines()[-1]))
    for path, name in steps:
        assert any(each == name for each in rest), f"docs/walk.md: {path}: {name} is not called, or not in its turn"
