"""Records what a real kube-scheduler decides, for `test_recorded.py`:

    PYTHONPATH=tests .venv/bin/python tests/scheduler/recorded/record.py /path/to/kube-scheduler

It runs on an API server of ours with random nodes and pods, one pod after the other; at -v=10 it tells the score of
each node by each plugin. Written beside this file: nodes, pods, each pod's node or the reason why not, and the scores.
"""

from __future__ import annotations

import json
import random
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import tools

Body = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SIZES = (200, 700, 1500, 60)  # of images, in MiB
NODES, PODS, SEED = 10, 50, 7
_SCORED = re.compile(r'"Plugin scored node for pod" pod="default/(\w+)" plugin="(\w+)" node="(\w+)" score=(-?\d+)')


def node(rng: random.Random, index: int) -> Body:
    labels = {HOST: f"n{index}", "zone": rng.choice("abc"), "disk": rng.choice(("ssd", "hdd"))}
    amounts = {"cpu": f"{rng.randrange(800, 2600)}m", "memory": f"{rng.randrange(1500, 5000)}Mi", "pods": "7"}
    taints = [{"key": "soft", "value": str(rng.randrange(2)), "effect": "PreferNoSchedule"}]
    if rng.random() < 0.2:
        taints.append({"key": "hard", "value": "yes", "effect": "NoSchedule"})
    images = [
        {"names": [f"img{number}:latest"], "sizeBytes": size << 20}
        for number, size in enumerate(SIZES)
        if rng.random() < 0.4
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{index}", "labels": labels},
        "spec": {"taints": taints if rng.random() < 0.5 else []},
        "status": {"allocatable": amounts, "capacity": amounts, "images": images},
    }


def pod(rng: random.Random, index: int) -> Body:
    def term() -> Body:
        selector = {"matchLabels": {"app": rng.choice("xyz")}}
        return {"labelSelector": selector, "topologyKey": rng.choice(("zone", HOST))}

    def liked(weight: int) -> Body:
        key, values = rng.choice((("disk", ("ssd", "hdd")), ("zone", tuple("abc"))))
        wanted = {"key": key, "operator": rng.choice(("In", "NotIn")), "values": [rng.choice(values)]}
        return {"weight": weight, "preference": {"matchExpressions": [wanted]}}

    preferred, required = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("preferred", "required"))
    affinity: Body = {}
    if rng.random() < 0.4:
        affinity["nodeAffinity"] = {preferred: [liked(rng.randrange(1, 100)) for _ in range(2)]}
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.4:
            affinity[kind] = {preferred: [{"weight": rng.randrange(1, 100), "podAffinityTerm": term()}]}
    if rng.random() < 0.15:
        affinity.setdefault("podAntiAffinity", {})[required] = [{**term(), "topologyKey": HOST}]
    requests = {"cpu": f"{rng.randrange(50, 700)}m", "memory": f"{rng.randrange(50, 900)}Mi"}
    for name in list(requests):
        if rng.random() < 0.2:
            del requests[name]
    spec: Body = {
        "containers": [{"name": "c", "image": f"img{rng.randrange(5)}", "resources": {"requests": requests}}],
        "affinity": affinity,
    }
    if rng.random() < 0.4:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.randrange(1, 4),
                "topologyKey": rng.choice(("zone", HOST)),
                "whenUnsatisfiable": rng.choice(("ScheduleAnyway", "DoNotSchedule")),
                "labelSelector": {"matchLabels": {"app": rng.choice("xyz")}},
            }
        ]
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": rng.choice(("soft", "hard")), "operator": "Exists"}]
    labels = {"app": rng.choice("xyz")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{index}", "labels": labels}, "spec": spec}


def record(scheduler: str, folder: Path) -> Body:
    rng = random.Random(SEED)
    off = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
    log = folder / "scheduler.log"
    with tools.api_server(folder, off) as server:
        nodes = [node(rng, index) for index in range(NODES)]
        for each in nodes:
            _call(server, "POST", "/api/v1/nodes", each)
        flags = [f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--secure-port=0", "-v=10"]
        with log.open("wb") as output:
            process = subprocess.Popen([scheduler, *flags], stdout=output, stderr=output)
        try:
            time.sleep(5)  # not a wait in a test: upstream's scheduler starts, by hand
            pods = [_place(server, pod(rng, index)) for index in range(PODS)]
        finally:
            process.terminate()
            process.wait()
    for name, plugin, where, score in _SCORED.findall(log.read_text()):
        pods[int(name[1:])].setdefault("scores", {}).setdefault(plugin, {})[where] = int(score)
    return {"nodes": nodes, "pods": pods}


def _place(server: tools.ApiServer, body: Body) -> Body:
    path = "/api/v1/namespaces/default/pods"
    _call(server, "POST", path, body)

    def decided() -> Body | None:
        found: Body = _call(server, "GET", f"{path}/{body['metadata']['name']}")
        return found if "conditions" in found["status"] else None

    found = tools.wait_until(decided, "the scheduler has decided")
    condition = next(each for each in found["status"]["conditions"] if each["type"] == "PodScheduled")
    if not found["spec"].get("nodeName"):  # or it would be placed later, out of order
        _call(server, "DELETE", f"{path}/{body['metadata']['name']}")
    return {"pod": body, "node": found["spec"].get("nodeName"), "message": condition.get("message")}


def _call(server: tools.ApiServer, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode() if body else None, method=method)
    request.add_header("Authorization", f"Bearer {server.token}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        return json.load(answer)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        recorded = record(sys.argv[1], Path(name))
    lines = [
        f'"{key}": [\n' + ",\n".join(json.dumps(each) for each in items) + "\n]" for key, items in recorded.items()
    ]
    Path(__file__).with_name("decisions.json").write_text("{" + ",\n".join(lines) + "}\n")
