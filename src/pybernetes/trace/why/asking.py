"""Asks an API server for an object and what explains it: a pod, what makes pods, a claim, node or namespace.

Both `pyb why` and `kubectl why` ask, each over a client of its own. What the user may not read counts as unknown, not
as absent, and the answer says so.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from . import claims, makers, others, pods
from .facts import LOG_LINES, Answer, Facts, Object, recent, statuses, utc

LOG_WITHIN = 5.0
"""Seconds to wait for a log, which comes from a node that may be away."""
ASSUMED: Object = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
"""A node that the user may not read: nothing is said about it."""
UNREAD: Object = {}
"""Stands for what the user may not read."""
APPS, BATCH, CORE = "/apis/apps/v1", "/apis/batch/v1", "/api/v1"
MAKERS = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), ("Deployment", APPS, "deployments")),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), ("ReplicaSet", APPS, "replicasets")),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), ("StatefulSet", APPS, "statefulsets")),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), ("DaemonSet", APPS, "daemonsets")),
    **dict.fromkeys(("job", "jobs"), ("Job", BATCH, "jobs")),
    **dict.fromkeys(
        ("replicationcontroller", "replicationcontrollers", "rc"),
        ("ReplicationController", CORE, "replicationcontrollers"),
    ),
}
PODS, CLAIMS = ("", "pod", "pods", "po"), ("persistentvolumeclaim", "persistentvolumeclaims", "pvc")
NODES, NAMESPACES = ("node", "nodes", "no"), ("namespace", "namespaces", "ns")
KINDS = (*PODS, *CLAIMS, *NODES, *NAMESPACES, *MAKERS)
"""The kinds that can be explained, as words of a command line."""


class Forbidden(Exception):
    """The user may not read this."""


class Reader(Protocol):
    """A client of the API server."""

    async def get(self, path: str) -> Any:
        """An object, None if it is not there. Raises Forbidden."""

    async def log(self, path: str) -> str | None:
        """The text of a log, None if it cannot be had."""


class Asked:
    """Asks about one object in a namespace."""

    def __init__(self, reader: Reader, namespace: str) -> None:
        self._reader = reader
        self._namespace = namespace
        self._unread: list[str] = []
        self._base = f"{CORE}/namespaces/{quote(namespace)}"

    async def explain(self, kind: str, name: str) -> tuple[str, Answer]:
        """The object's title, and why it is as it is. Raises LookupError if it is not there, Forbidden."""
        ways: tuple[tuple[tuple[str, ...], str, Callable[[str], Awaitable[Answer]]], ...] = (
            (PODS, f"Pod {self._namespace}/{name}", self._pod),
            (CLAIMS, f"PersistentVolumeClaim {self._namespace}/{name}", self._claim),
            (NODES, f"Node {name}", self._node),
            (NAMESPACES, f"Namespace {name}", self._of_namespace),
        )
        for words, title, explain in ways:
            if kind in words:
                return title, self._told(await explain(name))
        return f"{MAKERS[kind][0]} {self._namespace}/{name}", self._told(await self._maker(kind, name))

    def _told(self, answer: Answer) -> Answer:
        if not self._unread:
            return answer
        note = f"You may not read {', '.join(sorted(set(self._unread)))}: there may be more to say."
        return dataclasses.replace(answer, details=(*answer.details, note))

    async def _pod(self, name: str) -> Answer:
        query = urlencode({"includeUninitialized": "true"})
        pod = await self._needed(f"{self._base}/pods/{quote(name)}?{query}", "pods", name)
        return pods.explain(await self._facts(pod))

    async def _claim(self, name: str) -> Answer:
        path = f"{self._base}/persistentvolumeclaims/{quote(name)}"
        await self._needed(path, "persistentvolumeclaims", name)
        facts = Facts({}, now=utc(datetime.datetime.now(datetime.UTC)))
        await self._add_claim(facts, name)
        facts = await self._add_classes(facts)
        listed = await self._list(f"{self._base}/pods", "pods")
        users = [
            each["metadata"]["name"]
            for each in listed
            if any(claims.claim_name(each, volume) == name for volume in each["spec"].get("volumes") or ())
        ]
        return claims.explain_claim(facts, name, users)

    async def _node(self, name: str) -> Answer:
        node = await self._needed(f"{CORE}/nodes/{quote(name)}", "nodes", name)
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{quote(name)}"
        lease = await self._get(path, None, "leases")
        query = urlencode({"fieldSelector": f"involvedObject.kind=Node,involvedObject.name={name}", "limit": 500})
        return others.explain_node(node, lease, _in_order(await self._list(f"{CORE}/events?{query}", "events")))

    async def _of_namespace(self, name: str) -> Answer:
        return others.explain_namespace(await self._needed(f"{CORE}/namespaces/{quote(name)}", "namespaces", name))

    async def _maker(self, kind: str, name: str) -> Answer:
        title, group, plural = MAKERS[kind]
        folder = f"{group}/namespaces/{quote(self._namespace)}"
        maker = await self._needed(f"{folder}/{plural}/{quote(name)}", plural, name)
        events, owned = await self._events(title, name), []
        if title == "Deployment":
            owned = [
                each for each in await self._list(f"{folder}/replicasets", "replicasets") if _is_of(each, {_uid(maker)})
            ]
            for each in owned:
                events += await self._events("ReplicaSet", each["metadata"]["name"])
        answer = makers.explain_maker(title, maker, _in_order(events), owned)
        if answer is not None and not answer.sentence.startswith(makers.PODS_FAULTS):
            return answer
        owners = {_uid(maker), *map(_uid, owned)}
        its = [each for each in await self._list(f"{self._base}/pods", "pods") if _is_of(each, owners)]
        text, worst = makers.summary(title, maker, its), makers.worst(its)
        if answer is not None:
            if worst is None:
                return answer
            text = answer.sentence.rstrip(". ")
        if worst is None:
            all_there = len(its) >= makers.wanted_pods(title, maker)
            return Answer(text, recent(events) if not its else (), healthy=all_there)
        answer = pods.explain(await self._facts(worst))
        pod = worst["metadata"]["name"]
        return Answer(f"{text}; of pod {pod}: {answer.sentence}", (*answer.details, f"More: why pod/{pod}"))

    # What is asked for

    async def _needed(self, path: str, plural: str, name: str) -> Object:
        found: Object | None = await self._reader.get(path)
        if found is None:
            where = "" if plural in ("nodes", "namespaces") else f" in namespace {self._namespace}"
            raise LookupError(f'{plural} "{name}" not found{where}')
        return found

    async def _get(self, path: str, otherwise: Any, what: str) -> Any:
        """An object, None if it is not there, `otherwise` if it may not be read."""
        try:
            return await self._reader.get(path)
        except Forbidden:
            self._unread.append(what)
            return otherwise

    async def _list(self, path: str, what: str) -> list[Object]:
        found = await self._get(path, None, what) or {}
        return list(found.get("items") or ())

    async def _events(self, kind: str, name: str) -> list[Object]:
        chosen = urlencode({"fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}", "limit": 500})
        return _in_order(await self._list(f"{self._base}/events?{chosen}", "events"))

    async def _facts(self, pod: Object) -> Facts:
        name, spec = pod["metadata"]["name"], pod["spec"]
        events = [
            each
            for each in await self._events("Pod", name)
            if (each.get("involvedObject") or {}).get("uid")
            in (None, "", _uid(pod))  # not of an earlier pod of its name
        ]
        facts = Facts(pod, events, now=utc(datetime.datetime.now(datetime.UTC)))
        if not spec.get("nodeName"):
            for volume in spec.get("volumes") or ():
                if claim := claims.claim_name(pod, volume):
                    await self._add_claim(facts, claim)
            if facts.claims:
                facts = await self._add_classes(facts)
            for claim in claims.resource_claim_names(pod).values():
                folder = f"/apis/resource.k8s.io/v1/namespaces/{quote(self._namespace)}/resourceclaims"
                if claim:
                    facts.resource_claims[claim] = await self._get(f"{folder}/{quote(claim)}", {}, "resourceclaims")
            return facts
        await self._add_logs(facts)
        node = await self._get(f"{CORE}/nodes/{quote(spec['nodeName'])}", ASSUMED, "nodes")
        return dataclasses.replace(facts, node=node)

    async def _add_claim(self, facts: Facts, name: str) -> None:
        path = f"{self._base}/persistentvolumeclaims/{quote(name)}"
        claim = await self._get(path, UNREAD, "persistentvolumeclaims")
        if claim is UNREAD:
            return
        facts.claims[name] = claim
        facts.claim_events[name] = await self._events("PersistentVolumeClaim", name)
        volume = (claim or {"spec": {}})["spec"].get("volumeName")
        if volume:
            found = await self._get(f"{CORE}/persistentvolumes/{quote(volume)}", UNREAD, "persistentvolumes")
            if found is not UNREAD:
                facts.volumes[volume] = found

    async def _add_classes(self, facts: Facts) -> Facts:
        listed = await self._get("/apis/storage.k8s.io/v1/storageclasses", UNREAD, "storageclasses")
        if listed is UNREAD:
            return dataclasses.replace(facts, classes=None)
        return dataclasses.replace(facts, classes={each["metadata"]["name"]: each for each in listed["items"]})

    async def _add_logs(self, facts: Facts) -> None:
        pod = facts.pod["metadata"]["name"]
        for status in statuses(facts.pod):
            ended = "terminated" in (status.get("state") or {})
            if not ended and "terminated" not in (status.get("lastState") or {}):
                continue
            query = {"container": status["name"], "tailLines": LOG_LINES, "previous": str(not ended).lower()}
            try:
                async with asyncio.timeout(LOG_WITHIN):
                    log = await self._reader.log(f"{self._base}/pods/{quote(pod)}/log?{urlencode(query)}")
            except TimeoutError:
                continue
            if log is not None:
                facts.logs[status["name"]] = log


def _uid(thing: Object) -> str:
    return str(thing["metadata"].get("uid"))


def _is_of(thing: Object, owners: set[str]) -> bool:
    return any(each.get("uid") in owners for each in thing["metadata"].get("ownerReferences") or ())


def _in_order(events: list[Object]) -> list[Object]:
    """The oldest first, by the time of their last occurrence."""
    return sorted(events, key=lambda each: str(_last_seen(each)).rstrip("Z"))


def _last_seen(event: Object) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")
