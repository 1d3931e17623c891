"""Starts the parts of a cluster under its supervisor, and follows them until all are ready.

The order is chosen for the clock: certificates and files first, which the API server needs; what it does not need
(YAML, TLS client, images) is imported and done while it starts.
"""

from __future__ import annotations

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
from urllib.parse import urlsplit

from pybernetes.cluster import certificates, components, files, processes
from pybernetes.cluster.addresses import free_port, this_machine
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import SUPERVISOR, Layout, Record, remember
from pybernetes.cluster.progress import Progress
from pybernetes.cluster.settings import DEFAULT_PORT, USUAL_PORT, Settings

if TYPE_CHECKING:
    from pybernetes.cluster.node.joining import Nodes

READY_TIMEOUT = 100.0
FULL_DISK_TIMEOUT = 10.0
"""Seconds that a component may take to be ready on a disk without room, where it can only fail."""
FULL = 16384
"""Bytes of room below which a disk counts as full."""
POLL = 0.01
LOG_LINES = 15
LITTLE_ROOM = 1 << 20
"""Bytes: with less, a failure is most likely the disk's fault."""
FIRST_NICE = -10


def start(
    layout: Layout, settings: Settings, token: str | None, supervisor: processes.Supervisor, progress: Progress
) -> Record:
    """Starts what the settings say; returns when it is ready."""
    record = layout.read_record() or Record(layout.name)
    nodes, gone = _nodes(layout, settings, record)
    record = layout.read_record() or record  # which knows their network now
    listens = [components.BIND_ADDRESS, *([nodes.address] if nodes and not nodes.inside else [])]
    port = _port(settings.port, listens, kept=settings.port == urlsplit(record.server).port)
    # Upstream advertises this machine's address too when it is bound to the loopback.
    addresses = [this_machine(), *([nodes.address] if nodes and nodes.address != components.BIND_ADDRESS else [])]
    made = certificates.ensure(layout.pki, [components.KUBERNETES_SERVICE_IP, *addresses])
    progress.done(f"certificates: {'new: ' + ', '.join(made) if made else 'good'}")
    inside = nodes.address if nodes and nodes.inside else components.BIND_ADDRESS
    parts = components.control_plane(
        layout,
        address=inside,
        node_address=nodes.address if nodes and nodes.address != inside else "",
        port=port,
        controller_manager_port=(controllers := _free_port(0, apart_from=(port,))),
        scheduler_port=_free_port(0, apart_from=(port, controllers)),
        advertise_address=addresses[-1],
        pod_range=nodes.pod_range if nodes else components.pod_range(settings.simulated_nodes),
        etcd_servers=_etcd_servers(layout, settings),
        service_range=components.service_range(settings.ip_family),
        load_balancer_pool=settings.load_balancer_pool or (nodes.load_balancer_pool if nodes else ""),
        token_file=_write_token(layout, token),
        more_flags=[
            *([components.METRICS] if nodes or settings.simulated_nodes else []),
            *([components.REACHED_FROM_OUTSIDE] if settings.simulated_nodes else []),
            *([] if nodes and nodes.isolation != "none" else [components.NO_POLICY]),
        ],
    )
    if nodes:
        parts += nodes.parts(port)
    if nodes and (found := _ingress_ports(settings)) != (0, 0):
        health = _free_port(0, apart_from=(port, controllers))
        where = (f"https://{inside}:{port}", nodes.ingress_addresses, found, health)
        parts.append(components.ingress(layout, *where, inside=nodes.inside))
    if settings.simulated_nodes:
        ports = (port, controllers)
        parts.append(
            components.simulated_nodes(
                layout,
                f"https://{inside}:{port}",
                addresses[-1],
                _free_port(0, apart_from=ports),
                settings.simulated_nodes,
                Path(settings.simulation_rules) if settings.simulation_rules else None,
            )
        )
    if nodes and nodes.inside:
        parts = [components.reached_from_outside(part) for part in parts]
    parts = [components.with_verbosity(part, settings.verbosity) for part in parts]
    record = replace(
        record,
        server=f"https://{components.BIND_ADDRESS}:{port}",
        store=settings.store,
        etcd_endpoints=settings.etcd_endpoints,
        nodes=settings.nodes,
        members=nodes.numbers if nodes else {},
        runtime=nodes.runtime if nodes else record.runtime,
        network_kind=nodes.kind if nodes else record.network_kind,
        ip_family=settings.ip_family,
        simulated_nodes=settings.simulated_nodes,
        simulation_rules=settings.simulation_rules,
        load_balancer_pool=settings.load_balancer_pool,
        ingress_http_port=settings.ingress_http_port,
        ingress_https_port=settings.ingress_https_port,
        verbosity=settings.verbosity,
        differences=tuple(nodes.differences) if nodes else (),
    )
    offsets = {path.stem: _size(path) for path in layout.logs.glob("*.log")}
    command = nodes.supervisor if nodes else "supervise"
    events = supervisor.run(parts, [components.renewal(layout, addresses)], command)
    return _follow(layout, parts, nodes, gone, events, offsets, progress, record)


def _ingress_ports(settings: Settings) -> tuple[int, int]:
    """Where Ingresses are served; only root opens low ports."""
    http, https = (80, 443) if os.geteuid() == 0 else (8080, 8443)
    wanted = settings.ingress_http_port, settings.ingress_https_port
    return (http if wanted[0] == USUAL_PORT else wanted[0], https if wanted[1] == USUAL_PORT else wanted[1])


def _nodes(layout: Layout, settings: Settings, record: Record) -> tuple[Nodes | None, list[str]]:
    """The nodes to start, and the names of those that the cluster had before and has no more."""
    had = record.numbers if record.server else {}
    if not settings.nodes:
        return None, list(had)
    from pybernetes.cluster.node import joining, plan

    numbers = joining.numbers(had, settings.nodes)
    runtime, family = plan.runtime(layout, settings.runtime), settings.ip_family
    made = joining.Nodes(
        layout, numbers, runtime, kind=settings.network, ip_family=family, verbosity=settings.verbosity
    )
    return made, [name for name in had if name not in numbers]


def _port(wanted: int, listens: Sequence[str], *, kept: bool) -> int:
    """The API server's port, free at all its addresses. One that was chosen by an earlier `up` may be another now."""
    try:
        for address in listens:
            _free_port(wanted, address)
    except ClusterError as error:
        if not kept or wanted == DEFAULT_PORT:
            raise
        port = _port(0, listens, kept=False)
        print(f"Note: {error.args[0].partition(';')[0]}, so the API server has port {port} now.")
        return port
    if wanted:
        return wanted
    while True:
        port = _free_port(0, listens[0])
        try:
            for address in listens[1:]:
                _free_port(port, address)
            return port
        except ClusterError:
            continue


def _follow(
    layout: Layout,
    parts: Sequence[components.Component],
    nodes: Nodes | None,
    gone: Sequence[str],
    events: processes.Events,
    offsets: dict[str, int],
    progress: Progress,
    record: Record,
) -> Record:
    """Gives the user his context while the processes start, and waits for them."""
    try:
        progress.begin(f"starting {', '.join(part.title for part in parts if not part.later)}")
        if nodes:
            nodes.provide_images()
        from pybernetes.cluster import kubeconfig

        components.write_kubeconfig(layout, certificates.PROXY, record.server)
        record = replace(record, user_kubeconfig=str(kubeconfig.user_file()))
        content = kubeconfig.document(record.context, record.server, layout.pki)
        kubeconfig.check(kubeconfig.user_file())
        first = [part for part in parts if not part.later]
        for title in _wait(layout, first, events, offsets):
            progress.done(title)
        if gone:
            _forget(layout, record, gone)
            progress.done(f"removed: {', '.join(gone)}")
        note = nodes.finish() if nodes else None
        processes.start_later(layout)
        if note:
            print(f"Note: {note}.")
        kubeconfig.write(layout.kubeconfig, content)
        layout.write_record(record)
        former = kubeconfig.merge(kubeconfig.user_file(), content)
        if former not in ("", record.context):
            record = replace(record, former_context=former)
            layout.write_record(record)
        with contextlib.suppress(OSError):  # Only a convenience, and a home may be read-only.
            remember(layout)
        progress.done(f"context {record.context} in {record.user_kubeconfig}")
    finally:
        events.close()
    return record


def _forget(layout: Layout, record: Record, names: Sequence[str]) -> None:
    """Takes nodes out of the cluster that it was started without: they would be places for pods that never run."""
    from pybernetes.cluster.admin import Admin
    from pybernetes.cluster.node import scaling

    with contextlib.closing(Admin(components.BIND_ADDRESS, urlsplit(record.server).port or 0, layout.pki)) as admin:
        scaling.forget_nodes(admin, names)
    for name in names:
        scaling.remove_files(layout, name)


def _wait(
    layout: Layout, parts: Sequence[components.Component], events: processes.Events, offsets: dict[str, int]
) -> Iterator[str]:
    """Yields a line for each component that becomes ready; raises with the end of its log if one does not."""
    waiting = {part.name: part for part in parts}
    first = 0
    begin = time.monotonic()
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
        limit = READY_TIMEOUT
        if waiting and time.monotonic() - begin > FULL_DISK_TIMEOUT and _room(layout) < FULL:
            limit = FULL_DISK_TIMEOUT
        if waiting and time.monotonic() - begin > limit:
            name, part = next(iter(waiting.items()))
            trouble = f"the {part.title} is not ready after {limit:.0f} s ({part.ready.trouble})"
            raise _failure(layout, name, trouble, offsets)


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
    free = _room(layout)
    tail = "".join(f"\n    {line.rstrip()}" for line in lines) or " nothing"
    if free <= LITTLE_ROOM:
        what += f"; its disk has room for {free} bytes"
    return ClusterError(f"{what}; {log} says:{tail}")


def _room(layout: Layout) -> int:
    """The bytes that the disk of the cluster's data has room for."""
    disk = os.statvfs(layout.data)
    return disk.f_bavail * disk.f_frsize


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _free_port(port: int, host: str = components.BIND_ADDRESS, *, apart_from: Sequence[int] = ()) -> int:
    """The port that is asked for, or any that is free and none of the others; no process listens there yet."""
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


def _etcd_servers(layout: Layout, settings: Settings) -> str:
    if settings.store == "etcd":
        return settings.etcd_endpoints
    return "memory://" if settings.store == "memory" else f"sqlite://{layout.database}"


def _write_token(layout: Layout, token: str | None) -> str | None:
    """The token file in upstream's format (token,user,uid,"groups"); a later `up` without a token removes it."""
    if token is None:
        layout.token_file.unlink(missing_ok=True)
        return None
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([token, "kubernetes-admin", "kubernetes-admin", "system:masters"])
    files.write_private(layout.token_file, line.getvalue().encode())
    return os.fspath(layout.token_file)
