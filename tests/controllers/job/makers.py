"""Jobs and pods for the tests of the pure parts."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.times import rfc3339

NOW = 1_700_000_000.0
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_numbers = count()


def job(status: dict[str, Any] | None = None, **spec: Any) -> Job:
    """A Job with upstream's defaults."""
    whole = {
        "metadata": {"name": "work", "namespace": "ns", "uid": "job-uid"},
        "spec": {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}},
            **spec,
        },
        "status": status or {},
    }
    return msgspec.convert(whole, Job)


def pod(
    phase: str = "Running",
    *,
    index: int | None = None,
    tracked: bool = True,
    deleted: bool = False,
    ready: bool = False,
    exit_code: int | None = None,
    ended: float | None = None,
    annotations: dict[str, str] | None = None,
    conditions: list[dict[str, Any]] | None = None,
    restarts: int = 0,
    node: str | None = "node",
    uid: str | None = None,
) -> Pod:
    """A pod of such a Job."""
    name = f"work-{next(_numbers)}"
    state: dict[str, Any] = {}
    if exit_code is not None:
        state = {"terminated": {"exitCode": exit_code, "finishedAt": rfc3339(NOW if ended is None else ended)}}
    whole: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or f"uid-{name}",
            "creationTimestamp": rfc3339(NOW - 100),
            "finalizers": [TRACKING] if tracked else [],
            "annotations": {**({INDEX: str(index)} if index is not None else {}), **(annotations or {})},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": [*(conditions or []), {"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "main", "restartCount": restarts, "state": state}],
        },
    }
    if deleted:
        whole["metadata"]["deletionTimestamp"] = rfc3339(NOW)
    return msgspec.convert(whole, Pod)
