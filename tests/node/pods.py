"""Short ways to write pods for tests on a node, and to wait for them."""

from __future__ import annotations

import json
import time
from typing import Any

from node.cluster import Cluster
from node.machine import BUSYBOX

TIMEOUT = 120.0


def container(script: str, name: str = "main", **more: Any) -> dict[str, Any]:
    """A container that runs a script."""
    return {"name": name, "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script], **more}


def pod(name: str, script: str | list[dict[str, Any]], *, main: dict[str, Any] | None = None, **spec: Any) -> Any:
    """A pod that runs a script (or containers) to its end; `main` adds to the container, `metadata` to the pod."""
    metadata = {"name": name, **spec.pop("metadata", {})}
    containers = script if isinstance(script, list) else [container(script, **(main or {}))]
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def config_map(name: str, data: dict[str, str], **more: Any) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data, **more}


def secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    """A Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


class Namespace:
    """A namespace of a cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        cluster.kubectl("create", "namespace", name)

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        """kubectl in this namespace."""
        return self.cluster.kubectl("-n", self.name, *words, stdin=stdin, check=check)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Make objects in this namespace."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("create", "-f", "-", stdin=json.dumps(listed))

    def get(self, name: str) -> Any:
        """A pod."""
        return json.loads(self.kubectl("get", "pod", name, "-o", "json"))

    def wait(self, name: str, condition: Any, what: str, timeout: float = TIMEOUT) -> Any:
        """The pod, as soon as the condition is true for it."""
        deadline = time.monotonic() + timeout
        while True:
            found = self.get(name)
            if condition(found):
                return found
            assert time.monotonic() < deadline, f"{name}: not {what}: {self.explain(name)}"
            time.sleep(0.1)

    def running(self, name: str) -> Any:
        """The pod, once all of its containers are ready."""

        def ready(found: Any) -> bool:
            statuses = found["status"].get("containerStatuses") or []
            return bool(statuses) and all(each["ready"] for each in statuses)

        return self.wait(name, ready, "running")

    def logs(self, name: str, container: str = "main") -> str:
        """What a pod has written, after it has ended well."""
        found = self.wait(name, lambda found: found["status"]["phase"] in ("Succeeded", "Failed"), "ended")
        written = self.kubectl("logs", name, "-c", container)
        assert found["status"]["phase"] == "Succeeded", f"{written}\n{self.explain(name)}"
        return written

    def waiting(self, name: str, reason: str) -> str:
        """The message of a container that waits for that reason."""

        def state(found: Any) -> Any:
            statuses = found["status"].get("containerStatuses") or [{}]
            return statuses[0].get("state", {}).get("waiting", {})

        found = self.wait(name, lambda found: state(found).get("reason") == reason, f"waiting for {reason}")
        return str(state(found).get("message", ""))

    def event(self, name: str, reason: str) -> str:
        """The message of an event about a pod."""
        deadline = time.monotonic() + TIMEOUT
        selector = f"involvedObject.name={name},reason={reason}"
        while True:
            items = json.loads(self.kubectl("get", "events", f"--field-selector={selector}", "-o", "json"))["items"]
            if items:
                return str(items[-1]["message"])
            assert time.monotonic() < deadline, f"{name}: no event {reason}: {self.explain(name)}"
            time.sleep(0.1)

    def exec(self, name: str, script: str) -> str:
        """What a script in a running pod says."""
        return self.kubectl("exec", name, "-c", "main", "--", "sh", "-c", script)

    def until(self, name: str, script: str, expected: str, timeout: float = TIMEOUT) -> None:
        """Wait until a script in a running pod says so."""
        deadline = time.monotonic() + timeout
        while True:
            said = self.kubectl("exec", name, "-c", "main", "--", "sh", "-c", script, check=False)
            if said == expected:
                return
            assert time.monotonic() < deadline, f"{name}: {script} says {said!r}, not {expected!r}"
            time.sleep(0.1)

    def explain(self, name: str) -> str:
        """Everything about a pod, for people."""
        return self.kubectl("describe", "pod", name, check=False)
