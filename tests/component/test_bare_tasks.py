"""Long-lived work is started through `component/tasks.py`, which logs, counts and restarts what fails.

A bare `create_task` or `ensure_future` is right only for work that is short, or that its owner awaits: then its
exception arrives somewhere. Each such place is listed here by file with its number and reason, so that a new one is
a decision. `TaskGroup.create_task` needs no entry: the group raises what its tasks raise.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

import tools

REQUEST = "lives as long as one request, connection or session"
AWAITED = "its owner awaits it, or cancels it and goes on"
WORK = "one piece of work, which handles its own errors"
LONG = "long-lived, and not yet started through component/tasks.py"

ALLOWED: dict[str, tuple[int, str]] = {
    "apiserver/admission/quota_charging.py": (1, WORK),
    "apiserver/aggregation/proxy.py": (1, REQUEST),
    "apiserver/aggregation/service.py": (1, AWAITED),
    "apiserver/aggregation/start.py": (1, LONG),
    "apiserver/audit/batching.py": (1, WORK),
    "apiserver/connect/log.py": (2, REQUEST),
    "apiserver/extensions/definitions.py": (1, WORK),
    "apiserver/openapi/handler.py": (1, AWAITED),
    "apiserver/pipeline/watch_websocket.py": (1, REQUEST),
    "client/component.py": (1, AWAITED),
    "client/exec_credentials.py": (1, AWAITED),
    "client/leaderelection.py": (3, AWAITED),
    "cluster/commands/record.py": (2, AWAITED),
    "controllers/garbagecollector/controller.py": (2, AWAITED),
    "controllers/legacytokencleaner.py": (1, AWAITED),
    "cri/containerd_events.py": (3, LONG),
    "cri/embedded/containers.py": (1, WORK),
    "cri/embedded/forwarding.py": (1, REQUEST),
    "cri/embedded/joining.py": (1, AWAITED),
    "cri/embedded/server.py": (3, AWAITED),
    "cri/embedded/streaming.py": (1, REQUEST),
    "cri/events.py": (2, AWAITED),
    "cri/remote.py": (1, AWAITED),
    "csi/command.py": (1, AWAITED),
    "csi/drivers/local/command.py": (1, AWAITED),
    "dns/forward.py": (1, AWAITED),
    "dns/server.py": (2, REQUEST),
    "ingress/forwarding.py": (2, REQUEST),
    "ingress/frontend.py": (1, REQUEST),
    "kubelet/command.py": (2, AWAITED),
    "kubelet/csi/drivers.py": (1, WORK),
    "kubelet/devices/manager.py": (1, LONG),
    "kubelet/pod/killing.py": (1, AWAITED),
    "kubelet/dra/plugin.py": (1, WORK),
    "kubelet/kubelet.py": (1, WORK),
    "kubelet/logind/watch.py": (1, AWAITED),
    "kubelet/watched_objects.py": (1, LONG),
    "kubelet/plugins/registry.py": (1, AWAITED),
    "kubelet/pod/workers.py": (3, WORK),
    "kubelet/probes/worker.py": (1, LONG),
    "kubelet/node/shutdown.py": (3, AWAITED),
    "kubelet/simulated/identities.py": (1, LONG),
    "kubelet/simulated/nodes.py": (1, AWAITED),
    "kubelet/simulated/pressure.py": (1, LONG),
    "kubelet/stats/provider.py": (1, AWAITED),
    "kubelet/status/manager.py": (1, WORK),
    "net/streams/duplex.py": (2, REQUEST),
    "net/http.py": (1, REQUEST),
    "net/streams/port_forward_server.py": (5, REQUEST),
    "net/streams/remotecommand.py": (5, REQUEST),
    "net/streams/exec_server.py": (2, REQUEST),
    "network/node_network.py": (1, AWAITED),
    "network/overlay/command.py": (1, AWAITED),
    "network/policy/command.py": (1, AWAITED),
    "objectfs/csi/command.py": (3, AWAITED),
    "proxy/command.py": (2, AWAITED),
    "proxy/health_checks.py": (1, LONG),
    "scheduler/events.py": (1, WORK),
    "scheduler/failures.py": (1, WORK),
    "scheduler/plugins/dynamic_resources/background.py": (1, WORK),
    "scheduler/plugins/dynamic_resources/writer.py": (1, WORK),
    "scheduler/podstatus.py": (1, WORK),
    "scheduler/preemption/executor.py": (1, WORK),
    "scheduler/scheduler.py": (1, WORK),
    "store/cache.py": (1, AWAITED),
    "store/etcd.py": (1, AWAITED),
    "store/sqlite.py": (3, WORK),
    "testing/process.py": (3, WORK),
    "simulation/world.py": (3, AWAITED),
}


def bare_tasks(source: str) -> list[int]:
    """The lines on which a task is started that no group and no supervisor owns."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            if name in ("create_task", "ensure_future") and not owner.endswith("group"):
                found.append(node.lineno)
    return sorted(found)


def test_no_task_is_started_bare_without_a_reason() -> None:
    folder = tools.ROOT / "src" / "pybernetes"
    found = {path.relative_to(folder).as_posix(): bare_tasks(path.read_text()) for path in folder.rglob("*.py")}
    del found["component/tasks.py"]
    wrong = [
        f"{name}: {len(lines)} bare tasks (lines {lines}), {allowed} allowed"
        for name, lines in sorted(found.items())
        if len(lines) > (allowed := ALLOWED.get(name, (0, ""))[0])
    ]
    assert not wrong, "start long-lived work with component.tasks.Tasks, or say here why not:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("asyncio.create_task(run())", [1]),
        ("x = 1\nasyncio.get_running_loop().create_task(run())", [2]),
        ("from asyncio import ensure_future\nensure_future(run())", [2]),
        ("async with asyncio.TaskGroup() as group:\n    group.create_task(run())".replace("async ", "", 1), []),
        ("tasks.start('name', run)", []),
    ],
)
def test_bare_tasks_are_found(source: str, lines: list[int]) -> None:
    assert bare_tasks(source) == lines


def test_the_reasons_are_counted() -> None:
    counts = Counter(reason for _, reason in ALLOWED.values())
    assert counts[LONG] <= 9, "no new long-lived task without a supervisor"
