"""Ordinary work that must go on beside odd objects: each canary does a round of it and says how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from node.cluster import Cluster
from poison.server import Requests

import tools
from pybernetes.api.times import parse_time

NAMESPACE = "canary"
MINUTELY = 60.0
LONGEST = 120.0
"""Seconds that a canary waits for anything before it gives up."""


class Canaries:
    """Rounds of ordinary work in a namespace of their own."""

    def __init__(self, cluster: Cluster, requests: Requests) -> None:
        self._cluster, self._requests = cluster, requests
        self._round = 0
        self.rounds: dict[str, Callable[[str], None]] = {
            "deployment": self._deployment,
            "job": self._job,
            "cron job": self._cron_job,
            "garbage collection": self._garbage_collection,
            "quota": self._quota,
            "namespace deletion": self._namespace_deletion,
            "exec": self._exec,
        }

    def prepare(self) -> None:
        """Make the namespace, and the pod that exec goes to."""
        self._create("/api/v1/namespaces", _named("v1", "Namespace", NAMESPACE))
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        tools.wait_until(lambda: self._requests("GET", account)[0] == 200, "the default service account is there")
        pod = {**_named("v1", "Pod", "shell"), "spec": _pod("sleep 100000")}
        self._create(self._path("pods"), pod)
        self._wait("the shell runs", lambda: self._get("pods/shell")["status"].get("phase") == "Running")
        template = {"spec": {"template": {"spec": {**_pod("true"), "restartPolicy": "Never"}}}}
        minutely = {
            **_named("batch/v1", "CronJob", "minutely"),
            "spec": {"schedule": "* * * * *", "jobTemplate": template},
        }
        made = self._create(self._path("cronjobs", "apis/batch/v1"), minutely)
        self._last_run = parse_time(made["metadata"]["creationTimestamp"])

    def run(self) -> dict[str, float]:
        """Do all rounds once; the seconds that each took."""
        self._round += 1
        found = {}
        for name, work in self.rounds.items():
            began = time.monotonic()
            work(f"canary-{self._round}")
            found[name] = time.monotonic() - began
        return found

    def _deployment(self, name: str) -> None:
        labels = {"app": name}
        spec = {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod("sleep 100000")},
        }
        self._create(self._path("deployments", "apis/apps/v1"), {**_named("apps/v1", "Deployment", name), "spec": spec})
        where = f"deployments/{name}"
        status: Callable[[], Any] = lambda: self._get(where, "apis/apps/v1").get("status") or {}  # noqa: E731
        self._wait("the deployment is available", lambda: status().get("availableReplicas") == 2)
        self._delete(where, "apis/apps/v1")
        query = f"{self._path('pods')}?labelSelector=app%3D{name}"
        self._wait("its pods are gone", lambda: not self._requests("GET", query)[1]["items"])

    def _job(self, name: str) -> None:
        template = {"spec": {**_pod("true"), "restartPolicy": "Never"}}
        job = {**_named("batch/v1", "Job", name), "spec": {"template": template}}
        self._create(self._path("jobs", "apis/batch/v1"), job)
        where = f"jobs/{name}"
        self._wait("the job is done", lambda: self._get(where, "apis/batch/v1")["status"].get("succeeded") == 1)
        self._delete(where, "apis/batch/v1")

    def _cron_job(self, name: str) -> None:
        """Nothing to wait for: it runs every minute, and its last run must not be longer ago than that."""

        def due() -> bool:
            last = (self._get("cronjobs/minutely", "apis/batch/v1").get("status") or {}).get("lastScheduleTime")
            if last:
                self._last_run = parse_time(last)
            return time.time() - self._last_run > MINUTELY

        self._wait("the cron job has run in the last minute", lambda: not due())

    def _garbage_collection(self, name: str) -> None:
        owner = self._create(self._path("configmaps"), _named("v1", "ConfigMap", name))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}
        owned = _named("v1", "ConfigMap", f"{name}-owned")
        owned["metadata"]["ownerReferences"] = [reference]
        self._create(self._path("configmaps"), owned)
        self._delete(f"configmaps/{name}")
        path = f"{self._path('configmaps')}/{name}-owned"
        self._wait("what it owned is gone", lambda: self._requests("GET", path)[0] == 404)

    def _quota(self, name: str) -> None:
        quota = {**_named("v1", "ResourceQuota", name), "spec": {"hard": {"count/secrets": "10"}}}
        self._create(self._path("resourcequotas"), quota)
        where = f"resourcequotas/{name}"
        used: Callable[[], Any] = lambda: (self._get(where).get("status") or {}).get("used") or {}  # noqa: E731
        self._wait("the quota has counted", lambda: used().get("count/secrets") == "0")
        self._create(self._path("secrets"), _named("v1", "Secret", name))
        self._wait("the secret is counted", lambda: used().get("count/secrets") == "1")
        self._delete(f"secrets/{name}")
        self._wait("the secret is no longer counted", lambda: used().get("count/secrets") == "0")
        self._delete(where)

    def _namespace_deletion(self, name: str) -> None:
        self._create("/api/v1/namespaces", _named("v1", "Namespace", name))
        self._create(f"/api/v1/namespaces/{name}/configmaps", _named("v1", "ConfigMap", "inside"))
        self._requests("DELETE", f"/api/v1/namespaces/{name}")
        path = f"/api/v1/namespaces/{name}"
        self._wait("the namespace is gone", lambda: self._requests("GET", path)[0] == 404)

    def _exec(self, name: str) -> None:
        said = self._cluster.kubectl("exec", "-n", NAMESPACE, "shell", "--", "echo", name, timeout=LONGEST)
        assert said == f"{name}\n"

    def _path(self, plural: str, root: str = "api/v1") -> str:
        return f"/{root}/namespaces/{NAMESPACE}/{plural}"

    def _create(self, path: str, body: dict[str, Any]) -> Any:
        code, answer = self._requests("POST", path, body)
        assert code == 201, f"POST {path}: {code} {answer}"
        return answer

    def _get(self, where: str, root: str = "api/v1") -> Any:
        code, answer = self._requests("GET", self._path(where, root))
        assert code == 200, f"GET {where}: {code} {answer}"
        return answer

    def _delete(self, where: str, root: str = "api/v1") -> None:
        code, answer = self._requests(
            "DELETE", self._path(where, root), {"propagationPolicy": "Background", "gracePeriodSeconds": 1}
        )
        assert code in (200, 202), f"DELETE {where}: {code} {answer}"

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        tools.wait_until(condition, f"round {self._round}: {what}", LONGEST)


def _named(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def _pod(script: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", f"trap 'exit 0' TERM; {script} & wait"],
    }
    # Odd Nodes are in the cluster too, and some of them look fine.
    return {"containers": [container], "nodeName": "node-1", "terminationGracePeriodSeconds": 1}
