"""Starts the parts of a cluster under its supervisor, and follows them until all are ready.

The order is chosen for the clock: certificates and files first, which the API server needs; what it does not need
(YAML, TLS client, images) is imported and done while it starts.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import errno
import io
import os
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pybernetes.cluster import certificates, components, files, processes
from pybernetes.cluster.addresses import free_port, this_machine
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import SUPERVISOR, Layout, Record, remember
from pybernetes.cluster.progress import Progress

if TYPE_CHECKING:
    from pybernetes.cluster.node.joining import Nodes

READY_TIMEOUT = 100.0
POLL = 0.01
LOG_LINES = 15
LITTLE_ROOM = 1 << 20
"""Bytes: with less, it is the disk's fault that a log is empty."""
FIRST_NICE = -10


def start(
    layout: Layout, arguments: argparse.Namespace, count: int, supervisor: processes.Supervisor, progress: Progress
) -> Record:
    """Starts what the flags of `up` say, on so many nodes; returns when it is ready."""
    nodes = _nodes(layout, count, arguments.runtime) if count else None
    inside, outside = (nodes.address, nodes.outside) if nodes else [components.BIND_ADDRESS] * 2
    etcd_servers = _etcd_servers(layout, arguments)
    port = _free_port(arguments.port, outside)
    # Upstream advertises this machine's address too when it is bound to the loopback.
    addresses = [this_machine(), *([inside] if nodes and inside != components.BIND_ADDRESS else [])]
    made = certificates.ensure(layout.pki, [components.KUBERNETES_SERVICE_IP, *addresses])
    progress.done(f"certificates: {'new: ' + ', '.join(made) if made else 'good'}")
    parts = components.control_plane(
        layout,
        address=inside,
        port=port,
        controller_manager_port=(controllers := _free_port(0, apart_from=(port,))),
        scheduler_port=_free_port(0, apart_from=(port, controllers)),
        advertise_address=addresses[-1],
        pod_range=nodes.network.pods if nodes else components.pod_range(arguments.simulated_nodes),
        etcd_servers=etcd_servers,
        token_file=_write_token(layout, arguments.token),
        more_flags=[
            *([components.METRICS] if nodes or arguments.simulated_nodes else []),
            *([components.REACHED_FROM_OUTSIDE] if arguments.simulated_nodes else []),
        ],
    )
    if nodes:
        parts += nodes.parts(port)
    if arguments.simulated_nodes:
        ports = (port, controllers)
        parts.append(
            components.simulated_nodes(
                layout,
                f"https://{inside}:{port}",
                addresses[-1],
                _free_port(0, apart_from=ports),
                arguments.simulated_nodes,
                arguments.simulation_rules,
            )
        )
    if inside != outside:
        parts = [components.reached_from_outside(part) for part in parts]
    record = layout.read_record() or Record(layout.name)
    record = replace(record, server=f"https://{outside}:{port}", store=arguments.store, nodes=count)
    if nodes:
        record = replace(record, runtime=nodes.runtime)
    record = replace(record, differences=tuple(nodes.differences) if nodes else ())
    offsets = {path.stem: _size(path) for path in layout.logs.glob("*.log")}
    command = nodes.supervisor if nodes else "supervise"
    events = supervisor.run(parts, [components.renewal(layout, addresses)], command)
    return _follow(layout, parts, nodes, events, offsets, progress, record)


def _nodes(layout: Layout, count: int, runtime: str) -> Nodes:
    from pybernetes.cluster.node import plan
    from pybernetes.cluster.node.joining import Nodes

    return Nodes(layout, count, plan.runtime(layout, runtime))


def _follow(
    layout: Layout,
    parts: Sequence[components.Component],
    nodes: Nodes | None,
    events: processes.Events,
    offsets: dict[str, int],
    progress: Progress,
    record: Record,
) -> Record:
    """Gives the user his context while the processes start, and waits for them."""
    try:
        progress.begin(f"starting {', '.join(part.title for part in parts)}")
        if nodes:
            nodes.provide_images()
        from pybernetes.cluster import kubeconfig

        components.write_kubeconfig(layout, certificates.PROXY, record.server)
        record = replace(record, user_kubeconfig=str(kubeconfig.user_file()))
        content = kubeconfig.document(record.context, record.server, layout.pki)
        kubeconfig.check(kubeconfig.user_file())
        for title in _wait(layout, parts, events, offsets):
            progress.done(title)
        note = nodes.finish() if nodes else None
        if note:
            print(f"Note: {note}.")
        kubeconfig.write(layout.kubeconfig, content)
        layout.write_record(record)
        kubeconfig.merge(kubeconfig.user_file(), content)
        with contextlib.suppress(OSError):  # Only a convenience, and a home may be read-only.
            remember(layout)
        progress.done(f"context {record.context} in {record.user_kubeconfig}")
    finally:
        events.close()
    return record


def _wait(
    layout: Layout, parts: Sequence[components.Component], events: processes.Events, offsets: dict[str, int]
) -> Iterator[str]:
    """Yields a line for each component that becomes ready; raises with the end of its log if one does not."""
    waiting = {part.name: part for part in parts}
    first = 0
    deadline = time.monotonic() + READY_TIMEOUT
    while waiting:
        for event, name, detail in events.read(POLL):
            if event == "started" and name == parts[0].name:
                first = int(detail)
                _prefer(first)
            if event == "exited" and name in waiting:
                raise _failure(layout, name, f"the {waiting[name].title} ended while starting, {detail}", offsets)
        if events.closed:
            raise _failure(layout, SUPERVISOR, "the supervisor ended while starting", {})
        for part in list(waiting.values()):
            if _ready(layout, part, offsets):
                del waiting[part.name]
                if part is parts[0] and first:
                    _prefer(first, more=False)
                yield f"{part.title} is ready"
        if waiting and time.monotonic() > deadline:
            name, part = next(iter(waiting.items()))
            raise _failure(
                layout,
                name,
                f"the {part.title} is not ready after {READY_TIMEOUT:.0f} s ({part.ready.trouble})",
                offsets,
            )


def _prefer(group: int, *, more: bool = True) -> None:
    """Lets the API server have a processor while the others import what they need: they all wait for it."""
    with contextlib.suppress(OSError):  # only root may, or it has ended
        os.setpriority(os.PRIO_PGRP, group, FIRST_NICE if more else 0)


def _ready(layout: Layout, part: components.Component, offsets: dict[str, int]) -> bool:
    try:
        return part.ready()
    except ClusterError as error:
        log = getattr(error, "log", None)
        raise _failure(layout, log, str(error), offsets) if log else error from None


def _failure(layout: Layout, name: str, what: str, offsets: dict[str, int]) -> ClusterError:
    log = layout.log(name)
    lines: deque[str] = deque(maxlen=LOG_LINES)
    with contextlib.suppress(FileNotFoundError), open(log, errors="replace") as file:
        if _size(log) >= offsets.get(name, 0):  # Else the supervisor has begun a new file.
            file.seek(offsets.get(name, 0))
        lines.extend(file)
    disk = os.statvfs(layout.data)
    free = disk.f_bavail * disk.f_frsize
    silence = " nothing" if free > LITTLE_ROOM else f" nothing; its disk has room for {free} bytes"
    tail = "".join(f"\n    {line.rstrip()}" for line in lines) or silence
    return ClusterError(f"{what}; {log} says:{tail}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _free_port(port: int, host: str = components.BIND_ADDRESS, *, apart_from: Sequence[int] = ()) -> int:
    """The port that is wished for, or any that is free and none of the others, where nobody listens yet."""
    try:
        if not port:
            return free_port(host, apart_from=apart_from)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return port
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            hint = "stop what listens there, or choose another --port (0 = any free)"
            raise ClusterError(f"port {port} of {host} is in use; {hint}") from None
        raise ClusterError(f"port {port} cannot be used: {error.strerror}") from None


def _etcd_servers(layout: Layout, arguments: argparse.Namespace) -> str:
    if arguments.store == "etcd":
        return str(arguments.etcd_endpoints)
    return "memory://" if arguments.store == "memory" else f"sqlite://{layout.database}"


def _write_token(layout: Layout, token: str | None) -> str | None:
    """The token file in upstream's format (token,user,uid,"groups"); a later `up` without a token removes it."""
    if token is None:
        layout.token_file.unlink(missing_ok=True)
        return None
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([token, "kubernetes-admin", "kubernetes-admin", "system:masters"])
    files.write_private(layout.token_file, line.getvalue().encode())
    return os.fspath(layout.token_file)
