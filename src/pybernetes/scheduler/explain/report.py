"""One document about one pod: where it is, what was tried, what every node says now, and what would help.

Names are the wire's (camelCase), for it is served as JSON. Nodes with the same reasons are grouped: five thousand equal
lines would be unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pybernetes.api.core.v1 import Pod
from pybernetes.api.times import rfc3339_micro
from pybernetes.client.keys import Key

from ..framework.events import Action, ClusterEvent
from ..framework.podinfo import PodInfo
from ..framework.runtime import Framework
from ..framework.status import Code, Status
from ..scheduler import Scheduler
from .changes import Change, closest, smallest
from .memory import BEST, NOT_REFUSED, Memory, Remembered, best
from .verdicts import Verdicts, judge

NOTHING_KEPT = "nothing is kept of how it got there: it was placed long ago, or by another scheduler"


def why(scheduler: Scheduler, memory: Memory, namespace: str, name: str) -> dict[str, Any] | None:
    """All there is to tell about a pod; None if there is no such pod (or it has ended)."""
    key = Key(namespace, name)
    pod = scheduler.handlers.pod(key)
    if pod is None or pod.metadata is None or pod.spec is None:
        return None
    attempts = memory.of(pod.metadata.uid or "")
    report: dict[str, Any] = {
        "pod": {"namespace": namespace, "name": name, "uid": pod.metadata.uid},
        "schedulerName": pod.spec.scheduler_name,
        "attempts": [_attempt(each) for each in attempts],
    }
    framework = scheduler.frameworks.get(pod.spec.scheduler_name or "")
    if pod.spec.node_name:
        report["state"] = "Scheduled"
        report["nodeName"] = pod.spec.node_name
        if not attempts:
            report["message"] = NOTHING_KEPT
        return report
    report["state"] = "Pending"
    if framework is None:
        report["message"] = f"no profile of this scheduler is named {pod.spec.scheduler_name!r}"
        return report
    report["queue"] = _queue(scheduler, framework, key, pod)
    if pod.status and pod.status.nominated_node_name:
        report["nominatedNodeName"] = pod.status.nominated_node_name
    gates = [each.name for each in pod.spec.scheduling_gates or ()]
    info = PodInfo(pod)
    verdicts = judge(framework, info)
    report["nodes"] = _now(framework, verdicts)
    if gates:
        report["schedulingGates"] = gates
        names = ", ".join(str(each) for each in gates)
        report["changes"] = [
            {"change": f"remove the scheduling gate{'s' if len(gates) > 1 else ''} {names}", "nodes": []}
        ]
    elif not verdicts.feasible.any():
        report.update(_help(framework, info, verdicts))
    return report


def _help(framework: Framework, info: PodInfo, verdicts: Verdicts) -> dict[str, Any]:
    if not len(verdicts.rows):
        return {"changes": [{"change": "add a node: there is none", "nodes": []}]}
    changes = smallest(framework, info, verdicts)
    found: dict[str, Any] = {"changes": [_change(each) for each in changes]}
    if not changes:
        nearest = closest(framework, info, verdicts)
        if nearest is not None:
            found["closest"] = {
                "node": nearest.node,
                "refusedBy": [_status(each) for each in nearest.refusals],
                "changes": nearest.changes,
            }
    return found


def _change(change: Change) -> dict[str, Any]:
    return {"change": change.text, "nodes": list(change.nodes)}


def _queue(scheduler: Scheduler, framework: Framework, key: Key, pod: Pod) -> dict[str, Any]:
    where, again = scheduler.queue.whereabouts(key)
    queued = scheduler.queue.get(key)
    found: dict[str, Any] = {"where": where}
    if queued is None:
        uid = (pod.metadata.uid if pod.metadata else None) or ""
        waiting = scheduler.waiting_pod(uid)
        if waiting is not None:
            found = {"where": "waiting", "permits": waiting.pending_plugins, "nodeName": waiting.node_name}
        elif scheduler.cache.is_assumed(uid):
            found["where"] = "binding"
        elif uid in scheduler.queue.in_flight:
            found["where"] = "trying"
        return found
    found["attempts"] = queued.attempts
    found["since"] = rfc3339_micro(queued.timestamp)
    if queued.gating_plugin:
        found["gatedBy"] = queued.gating_plugin
    if again is not None:
        found["nextAttempt"] = rfc3339_micro(max(again, scheduler.clock.now()))
    if where in ("unschedulable", "gated"):
        refused = queued.unschedulable_plugins | queued.pending_plugins
        if queued.gating_plugin:
            refused = {queued.gating_plugin}
        found["refusedBy"] = sorted(refused)
        found["wakes"] = sorted(_wakes(framework, refused))
    return found


def _wakes(framework: Framework, plugins: Iterable[str]) -> set[str]:
    """The events after which the queue tries the pod again at once."""
    registered = framework.events_to_register()
    return {
        event.label if event.is_wildcard else ClusterEvent(event.resource, bit).label
        for plugin in plugins
        for registration in registered.get(plugin, ())
        for event in (registration.event,)
        for bit in _bits(event.action)
    }


def _bits(action: int) -> Iterable[int]:
    """The single things that an action stands for; all or any update as one."""
    if action in (Action.ALL, Action.UPDATE):
        return (action,)
    return (1 << number for number in range(action.bit_length()) if action >> number & 1)


def _now(framework: Framework, verdicts: Verdicts) -> dict[str, Any]:
    names = framework.snapshot.names
    return {
        "total": len(verdicts.rows),
        "feasible": [names[row] for row in verdicts.rows[verdicts.feasible].tolist()],
        "refused": [
            {**_status(status), "nodes": [names[row] for row in rows.tolist()]} for status, rows in verdicts.groups
        ],
    }


def _attempt(kept: Remembered) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": kept.number,
        "started": rfc3339_micro(kept.started),
        "milliseconds": round(kept.seconds * 1e3, 3),
        "result": kept.result,
        "profile": kept.profile,
        "nodes": kept.num_nodes,
    }
    for name, text in (
        ("message", kept.message),
        ("nodeName", kept.node_name),
        ("nominatedNodeName", kept.nominated_node_name),
        ("bindingFailed", kept.bound),
    ):
        if text:
            found[name] = text
    if kept.refused_by is not None:
        found["refused"] = [
            {
                **_status(status),
                "nodes": [kept.names[row] for row in np.flatnonzero(kept.refused_by == index).tolist()],
            }
            for index, status in enumerate(kept.refusals)
        ]
    if kept.feasible is not None and kept.total is not None and kept.scores is not None:
        positions = best(kept.total, BEST).tolist()
        chosen = [position for position, row in enumerate(kept.feasible) if kept.names[row] == kept.node_name]
        order = [*chosen, *(position for position in positions if position not in chosen)]
        found["feasible"] = kept.num_feasible
        found["weights"] = dict(zip(kept.score_plugins, kept.weights, strict=True))
        found["scores"] = [
            {
                "node": kept.names[kept.feasible[position]],
                "total": int(kept.total[position]),
                "plugins": dict(zip(kept.score_plugins, kept.scores[:, position].tolist(), strict=True)),
            }
            for position in order
        ]
    elif kept.node_name:
        found["feasible"] = 1 if kept.refused_by is None else int(np.sum(kept.refused_by == NOT_REFUSED))
    return found


def _status(status: Status) -> dict[str, Any]:
    found: dict[str, Any] = {"plugin": status.plugin}
    if status.reasons:
        found["reasons"] = list(status.reasons)
        found["code"] = _CODES.get(status.code, status.code.name)
    return found


_CODES = {
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.PENDING: "Pending",
}
