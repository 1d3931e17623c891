"""The document about a pod (`report`) as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

MOST_NODES = 20
"""With more nodes than these, those that say the same are one line."""
NAMES = 5
"""So many names of nodes are spelt out in a line."""


def render(report: dict[str, Any]) -> str:
    """The text of a report."""
    pod = report["pod"]
    title = f"{pod['namespace']}/{pod['name']}"
    parts = _scheduled(report, title) if report["state"] == "Scheduled" else _pending(report, title)
    return "\n".join(parts)


def _scheduled(report: dict[str, Any], title: str) -> list[str]:
    lines = [f"Pod {title} is on node {report['nodeName']}."]
    if report.get("message"):
        return [*lines, report["message"].capitalize() + "."]
    last = report["attempts"][-1]
    fit = last.get("feasible")
    of = f"{fit} of {last['nodes']} nodes would do" if fit is not None else f"of {last['nodes']} nodes"
    lines.append(
        f"Chosen at {last['started']} by {last['profile']} in {last['milliseconds']} ms "
        f"(attempt {last['number']}): {of}."
    )
    if last.get("scores"):
        lines += ["", "Why there (points 0-100, times their weight):", *_scores(last)]
    elif fit == 1:
        lines.append("No other node would do, so there was nothing to weigh.")
    if last.get("refused"):
        lines += ["", "Why not elsewhere:", *_refused(last["refused"], last["nodes"])]
    if last.get("nodeName") and last["nodeName"] != report["nodeName"]:
        lines.append(f"(It was to go to {last['nodeName']}: another scheduler has bound it.)")
    return lines


def _pending(report: dict[str, Any], title: str) -> list[str]:
    lines = [f"Pod {title} is pending."]
    if report.get("message"):
        return [*lines, report["message"].capitalize() + "."]
    lines += _queue(report.get("queue") or {})
    if report.get("schedulingGates"):
        lines.append(f"It has scheduling gates: {', '.join(report['schedulingGates'])}.")
    if report.get("nominatedNodeName"):
        lines.append(f"Room is being made for it on {report['nominatedNodeName']}.")
    failed = [each for each in report["attempts"] if each.get("message")]
    if failed:
        lines += ["", f"Last attempt ({failed[-1]['started']}):", f"  {failed[-1]['message']}"]
    nodes = report.get("nodes")
    if nodes is not None:
        feasible = nodes["feasible"]
        if feasible:
            lines += ["", f"It would fit now on {_names(feasible)}."]
        if nodes["refused"]:
            lines += ["", f"Nodes now ({len(feasible)} of {nodes['total']} would do):"]
            lines += _refused(nodes["refused"], nodes["total"])
    if report.get("changes"):
        lines += ["", "Any one of these would do, the smallest first:"]
        for number, change in enumerate(report["changes"], 1):
            where = change["nodes"]
            told = where and not (len(where) == 1 and where[0] in change["change"])
            several = told and "(or another" not in change["change"]
            lines.append(f"  {number}. {change['change']}{f'  -> {_names(where)}' if several else ''}")
    elif report.get("closest"):
        closest = report["closest"]
        lines += ["", f"No single change would do. Closest is {closest['node']}, which needs all of this:"]
        lines += [f"  - {each}" for each in closest["changes"] or map(_said, closest["refusedBy"])]
    return lines


def _queue(queue: dict[str, Any]) -> list[str]:
    where = queue.get("where")
    attempts = queue.get("attempts", 0)
    tried = f"{attempts} attempt{'s' if attempts != 1 else ''} so far"
    if where == "active":
        return [f"It is next in the queue ({tried})."]
    if where == "backoff":
        return [f"It is tried again at {queue['nextAttempt']} ({tried})."]
    if where == "gated":
        return [f"It is not in the queue: {queue.get('gatedBy')} keeps it out."]
    if where == "unschedulable":
        wakes = _names(list(queue.get("wakes") or ())) or "something changes"
        return [
            f"It waits for a change ({tried}); refused by {', '.join(queue.get('refusedBy') or ()) or 'an error'}.",
            f"It is tried again when one of these happens and may help: {wakes}; at the latest {queue['nextAttempt']}.",
        ]
    if where == "waiting":
        return [f"It has got {queue['nodeName']} and waits for the permit of {', '.join(queue['permits'])}."]
    if where == "binding":
        return ["It is being bound."]
    if where == "trying":
        return ["It is being tried right now."]
    return ["It is not in the queue."]


def _scores(attempt: dict[str, Any]) -> list[str]:
    weights: dict[str, int] = attempt["weights"]
    rows: list[Sequence[str]] = [("NODE", "TOTAL", *(f"{name} x{weight}" for name, weight in weights.items()))]
    for each in attempt["scores"]:
        mark = "*" if each["node"] == attempt.get("nodeName") else " "
        rows.append((f"{mark}{each['node']}", str(each["total"]), *(str(each["plugins"][name]) for name in weights)))
    return _table(rows)


def _refused(groups: Iterable[dict[str, Any]], total: int) -> list[str]:
    groups = list(groups)
    by_node: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        for node in group["nodes"]:
            by_node.setdefault(node, []).append(group)
    if total <= MOST_NODES:
        rows = [(node, "; ".join(_said(each) for each in by_node[node])) for node in sorted(by_node)]
        return _table([("NODE", "REFUSED BY"), *rows])
    lines = [(f"{len(group['nodes'])} nodes", _said(group), _names(group["nodes"])) for group in groups]
    return _table([("NODES", "REFUSED BY", "WHICH"), *lines])


def _said(status: dict[str, Any]) -> str:
    reasons = ", ".join(status.get("reasons") or ())
    return f"{status['plugin']}: {reasons}" if reasons else str(status["plugin"])


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES])
    return shown if len(names) <= NAMES else f"{shown} and {len(names) - NAMES} more"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [("  " + "  ".join(map(str.ljust, row, widths))).rstrip() for row in rows]
