"""Changes the nodes of a cluster that runs: more, fewer, switched off and on, cut off from the network and back.

`up --nodes N` and `pyb node` come here. The components file says which nodes there are, and the supervisor follows it;
the record remembers them for the next start. The caller holds the lock of the cluster.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from pybernetes.cluster import pidfile, processes, removing, supervisor
from pybernetes.cluster.admin import Admin
from pybernetes.cluster.components import BIND_ADDRESS, Component
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, Record
from pybernetes.cluster.node import cgroups, joining, loop_devices, prepare
from pybernetes.cluster.node.boot import Boot
from pybernetes.cluster.node.machine import PARTITIONED, Machine
from pybernetes.cluster.node.network import NODES
from pybernetes.cluster.rootless import plain
from pybernetes.cluster.rootless.rights import rights
from pybernetes.cluster.settings import DEFAULT_FAMILY, DEFAULT_NETWORK

READY_TIMEOUT = 100.0
POLL = 0.02
STOPPED_WITHIN = supervisor.STOP_GRACE + processes.KILL_WAIT
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
RESERVED = ("apiserver", "controller-manager", "scheduler", "simulated-nodes", "supervisor", "renewal")
PAGE = 200
"""Pods listed by one request."""


def can_grow(layout: Layout) -> bool:
    """Whether the control plane listens where nodes reach it, so that nodes can be added while it runs."""
    if rights().level == "none":
        return True
    if rights().level == "user-namespaces":
        return any(spec.get("listen") for spec in layout.specs())
    return any("--additional-bind-address=" in str(spec["argv"]) for spec in layout.specs())


def check_name(name: str, record: Record) -> str:
    """Refuses what cannot be the name of a new node."""
    if not NAME.fullmatch(name):
        raise ClusterError(
            f"invalid node name {name!r}: at most 50 lower case letters, digits and '-', no '-' at either end"
        )
    if name in RESERVED:
        raise ClusterError(f"invalid node name {name!r}: a component of the cluster has it")
    if name in record.numbers:
        raise ClusterError(f"cluster {record.name!r} already has a node {name}")
    return name


def scale(layout: Layout, record: Record, numbers: Mapping[str, int], done: Callable[[str], None]) -> Record:
    """Adds and removes nodes until they are these, by name with their numbers; `done` gets a line for each."""
    for name in [name for name in record.numbers if name not in numbers]:
        record = remove(layout, record, name)
        done(f"node {name} is removed")
    fresh = {name: number for name, number in numbers.items() if name not in record.numbers}
    return add(layout, record, fresh, done) if fresh else record


def add(layout: Layout, record: Record, numbers: Mapping[str, int], done: Callable[[str], None]) -> Record:
    """Starts new nodes, returns when they are Ready. Those that do not become so are taken away again."""
    if len(record.numbers) + len(numbers) > NODES:
        raise ClusterError(f"--nodes {len(record.numbers) + len(numbers)}: at most {NODES} on one machine")
    from pybernetes.cluster.node import plan

    runtime = plan.runtime(layout, record.runtime or "auto")
    kind = record.network_kind or DEFAULT_NETWORK
    family = record.ip_family or DEFAULT_FAMILY
    nodes = joining.Nodes(
        layout, numbers, runtime, record.network, kind=kind, ip_family=family, verbosity=record.verbosity
    )
    nodes.provide_images()
    changed = replace(
        record, members={**record.numbers, **numbers}, nodes=len(record.numbers) + len(numbers), runtime=runtime
    )
    try:
        parts = nodes.parts(urlsplit(record.server).port or 0)
        layout.write_record(changed)
        # A name that an earlier node had: whatever the cluster still says about that one is no longer true.
        processes.change(layout, [*_without(layout, numbers), *(processes.spec(layout, part) for part in parts)])
        for part in parts:
            _wait(part)
            done(f"node {part.name} is ready")
        nodes.annotate()
    except BaseException:
        for name in numbers:
            _switch_off(layout, name)
            _forget(layout, name)
        layout.write_record(record)
        raise
    return changed


def remove(layout: Layout, record: Record, name: str) -> Record:
    """Takes a node away with its disk, its Node and its pods. It ends at once: `kubectl drain` is for what may not."""
    _require(record, name)
    _switch_off(layout, name)
    with contextlib.closing(_admin(layout, record)) as admin:
        forget_nodes(admin, [name])
    _forget(layout, name)
    members = {each: number for each, number in record.numbers.items() if each != name}
    changed = replace(record, members=members, nodes=len(members))
    layout.write_record(changed)
    return changed


def stop(layout: Layout, record: Record, name: str) -> None:
    """Switches a node off: all its processes end, its disk and its Node stay. A later `up` starts it too."""
    _require(record, name)
    specs = layout.specs()
    for spec in specs:
        if spec["name"] == name:
            spec["off"] = True
    processes.change(layout, specs)
    _wait_until_stopped(layout, name)
    _clean_up(layout, name)


def start(layout: Layout, record: Record, name: str) -> None:
    """Switches a node on, returns when it is Ready."""
    _require(record, name)
    specs = layout.specs()
    for spec in specs:
        if spec["name"] == name:
            spec.pop("off", None)
    processes.change(layout, specs)
    with contextlib.closing(_admin(layout, record)) as admin:
        machine = Machine.read(str(layout.node(name) / "machine.json"))
        boot = Boot(layout, machine, admin, with_network=record.network_kind != "cni")
        _wait(Component(name, f"node {name}", (), boot))


def partition(layout: Layout, record: Record, name: str, *, healed: bool) -> None:
    """Switches the node's port of the switch off, or on again; it stays so until it is healed."""
    _require(record, name)
    if rights().level == "none":
        raise ClusterError(f"{name} has no network of its own: without namespaces a node cannot be cut off")
    marker = layout.node(name) / PARTITIONED
    if healed:
        marker.unlink(missing_ok=True)
    else:
        marker.touch()
    holder = pidfile.read(str(layout.pid_file(name)))
    if holder is not None and holder.alive:
        os.kill(holder.pid, signal.SIGUSR1)


def forget_nodes(admin: Admin, names: Iterable[str]) -> None:
    """Deletes the Nodes and the pods of machines that are gone: nothing else would confirm that those have ended."""
    for name in names:
        _request(admin, "DELETE", f"/api/v1/nodes/{name}")
        for namespace, pod in _pods_on(admin, name):
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            _request(admin, "DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod}", body)


def remove_files(layout: Layout, name: str) -> None:
    """Removes the disk and the logs of a node that does not run."""
    if layout.node(name).exists():
        removing.remove_tree(layout.node(name))
    for program in ("", "-kubelet", "-runtime", "-containerd", "-node-network"):
        for rotated in ("", ".1"):
            layout.log(f"{name}{program}").with_suffix(f".log{rotated}").unlink(missing_ok=True)


def _pods_on(admin: Admin, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after = ""
    while True:
        path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}&limit={PAGE}&continue={after}"
        content = _request(admin, "GET", path)
        items, metadata = content.get("items"), content.get("metadata")
        for item in items if isinstance(items, list) else ():
            found.append((item["metadata"]["namespace"], item["metadata"]["name"]))
        after = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
        if not after:
            return found


def _request(admin: Admin, method: str, path: str, body: object = None) -> dict[str, object]:
    try:
        code, content = admin.request(method, path, body)
    except OSError as error:
        raise ClusterError(f"the API server cannot be asked ({method} {path}): {error}") from error
    if code >= 400 and code != 404:
        raise ClusterError(f"the API server refuses {method} {path}: {content.get('message', code)}")
    return content


def _admin(layout: Layout, record: Record) -> Admin:
    return Admin(BIND_ADDRESS, urlsplit(record.server).port or 0, layout.pki)


def _require(record: Record, name: str) -> None:
    if name not in record.numbers:
        there = ", ".join(record.numbers) or "none"
        raise ClusterError(f"cluster {record.name!r} has no node {name}; it has: {there}")


def _without(layout: Layout, names: Iterable[str]) -> list[dict[str, object]]:
    gone = set(names)
    return [spec for spec in layout.specs() if spec["name"] not in gone]


def _switch_off(layout: Layout, name: str) -> None:
    processes.change(layout, _without(layout, [name]))
    _wait_until_stopped(layout, name)


def _wait_until_stopped(layout: Layout, name: str) -> None:
    deadline = time.monotonic() + STOPPED_WITHIN
    while layout.pid_file(name).exists():
        if time.monotonic() > deadline:
            raise ClusterError(f"node {name} has not stopped after {STOPPED_WITHIN:.0f} s; {layout.log(name)}")
        time.sleep(POLL)


def _clean_up(layout: Layout, name: str) -> None:
    """Remove what a node that ended left on the host."""
    if rights().root:
        cgroups.remove(prepare.cgroup(layout, name), cgroups.hierarchies())
        loop_devices.release(layout.node(name))
    elif rights().level == "none":
        plain.end(Machine.read(str(layout.node(name) / "machine.json")))


def _forget(layout: Layout, name: str) -> None:
    _clean_up(layout, name)
    remove_files(layout, name)


def _wait(part: Component) -> None:
    deadline = time.monotonic() + READY_TIMEOUT
    while not part.ready():
        if time.monotonic() > deadline:
            raise ClusterError(f"the {part.title} is not ready after {READY_TIMEOUT:.0f} s ({part.ready.trouble})")
        time.sleep(POLL)
