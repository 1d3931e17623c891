"""Short ways to write what a runtime has, and pods in YAML, for tests of what the kubelet makes of both."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from pybernetes.api import strict
from pybernetes.api.core.defaults.pod import default_pod
from pybernetes.api.core.v1 import Pod
from pybernetes.api.gocompat import gojson
from pybernetes.api.yaml import yaml_to_json
from pybernetes.kubelet.container.hash import hash_container
from pybernetes.kubelet.runtime.types import (
    ContainerState,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    PodRef,
    find_container,
)

_numbers = itertools.count(1)


def pod(text: str, **metadata: Any) -> Pod:
    """A pod from the YAML of its spec, with defaults."""
    data, _ = yaml_to_json(text.encode())
    meta = {"name": "p", "namespace": "ns", "uid": "u", "generation": 1, **metadata}
    value = {"metadata": meta, "spec": msgspec.json.decode(data)}
    result, problems = strict.convert(Pod, gojson.loads(msgspec.json.encode(value)))
    assert not problems
    default_pod(result)
    return result


def observed(pod: Pod, *containers: str, sandbox: str = "ready") -> ObservedPod:
    """What the runtime has, newest first: `"web running"`, `"web exited 1"`, `"web created"`, `"web unknown"`.

    `sandbox`: ready, dead, or none; containers are in it.
    """
    assert pod.metadata is not None
    assert pod.spec is not None
    host = bool(pod.spec.host_network)
    sandboxes: tuple[ObservedSandbox, ...] = ()
    if sandbox != "none":
        ips = () if host else ("10.0.0.5",)
        sandboxes = (ObservedSandbox("s0", sandbox == "ready", 1.0, 0, ips, host),)
    found = []
    runs: dict[str, int] = {}
    for text in reversed(containers):
        name, state, *rest = text.split()
        spec = find_container(pod, name)
        count = runs[name] = runs.get(name, -1) + 1
        code = int(rest[0]) if rest else 0
        found.append(
            ObservedContainer(
                id=f"{name}-{count}",
                name=name,
                state=ContainerState(state),
                image="busybox:1",
                image_ref="sha256:1",
                hash=hash_container(spec) if spec else "",
                restart_count=count,
                created_at=100.0 + next(_numbers),
                started_at=100.0,
                finished_at=200.0 if state == "exited" else 0.0,
                exit_code=code,
                reason=("Error" if code else "Completed") if state == "exited" else "",
                sandbox_id="s0",
            )
        )
    ref = PodRef(pod.metadata.uid or "", pod.metadata.namespace or "", pod.metadata.name or "")
    return ObservedPod(ref, sandboxes, tuple(reversed(found)))
