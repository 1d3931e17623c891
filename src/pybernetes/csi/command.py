"""`pyb csi NAME`: what runs beside a CSI driver, in the foreground: upstream's sidecars, for the driver at a socket.

pyb csi provisioner|attacher|resizer|snapshotter|health-monitor --csi-address=SOCKET [--kubeconfig=FILE]
    [--node-name=NODE]
pyb csi populator --group=GROUP --version=VERSION --kind=KIND --plural=PLURAL --pod-template=FILE
pyb csi registrar --csi-address=SOCKET --kubelet-registration-path=PATH [--plugin-registration-path=FOLDER]
pyb csi liveness --csi-address=SOCKET [--address=ADDRESS] [--port=9808]
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.client.leaderelection import LeadershipLost
from pybernetes.component.tasks import Tasks

from .client import CSIClient
from .errors import CSIError

if TYPE_CHECKING:
    from .controller.loop import Context

PROGRAM = "pyb-csi"
KUBECONFIG_HELP = "how to reach the API server; else as a pod does"
DRIVER_WITHIN = 30.0
"""Seconds that the driver may take to come up, before a sidecar ends and is started again."""


class Worker(Protocol):
    """A controller beside a driver."""

    async def run(self) -> None:
        """Work until cancelled."""


def main(argv: list[str]) -> int:
    """Run one of them until SIGTERM; the exit code."""
    options = _parser().parse_args(argv)
    component.log_to_stderr(options.v)
    try:
        return component.run_until_done(options.run(options))
    except (clientconfig.ConfigError, CSIError, LeadershipLost, OSError, ValueError) as error:
        print(f"pyb csi {options.name}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyb csi", description="What runs beside a CSI driver.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="name", required=True)

    def add(name: str, help: str, run: Callable[[argparse.Namespace], Awaitable[int]]) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        if name != "populator":  # which works beside no driver
            made.add_argument("--csi-address", required=True, help="the driver's socket")
        made.add_argument("-v", type=int, default=2, help="verbosity of the log")
        made.set_defaults(run=run)
        return made

    for name, help in (
        ("provisioner", "make volumes for claims, and delete those that are released"),
        ("attacher", "attach volumes to nodes, and detach them"),
        ("resizer", "make volumes larger for claims that ask for more, and give them other VolumeAttributesClasses"),
        ("snapshotter", "make snapshots of volumes, and delete them"),
        ("health-monitor", "report sick volumes as events of their claims"),
    ):
        controller = add(name, help, _controller)
        controller.add_argument("--kubeconfig", default="", help=KUBECONFIG_HELP)
        controller.add_argument("--node-name", default="", help="work for this node's volumes alone")
        controller.add_argument("--leader-election", action="store_true", help="work only while holding the Lease")
        controller.add_argument("--leader-election-namespace", default="kube-system")
        if name == "provisioner":
            controller.add_argument("--extra-create-metadata", action="store_true", help="name the claim to the driver")
            controller.add_argument("--enable-capacity", action="store_true", help="keep CSIStorageCapacity objects")
            controller.add_argument("--capacity-namespace", default=os.environ.get("NAMESPACE", "kube-system"))
        if name == "health-monitor":
            controller.add_argument("--monitor-interval", type=_seconds, default=60.0, help="seconds between two looks")
    populator = add("populator", "fill volumes of claims whose dataSourceRef is of a kind of your own", _populator)
    populator.add_argument("--kubeconfig", default="", help=KUBECONFIG_HELP)
    for flag, help in (
        ("group", "of the sources' kind"),
        ("version", "of it"),
        ("kind", "of the sources"),
        ("plural", "how the kind is called in paths"),
    ):
        populator.add_argument(f"--{flag}", required=True, help=help)
    populator.add_argument("--namespace", default=os.environ.get("NAMESPACE", "default"), help="of the pods that fill")
    populator.add_argument("--pod-template", type=Path, required=True, help="YAML file with the spec of these pods")
    registrar = add("registrar", "make the driver known to the kubelet", _registrar)
    registrar.add_argument(
        "--kubelet-registration-path", required=True, help="the driver's socket, as the kubelet sees it"
    )
    registrar.add_argument("--plugin-registration-path", type=Path, default=Path("/registration"))
    liveness = add("liveness", "answer HTTP probes for the driver at /healthz", _liveness)
    liveness.add_argument("--address", default="127.0.0.1")
    liveness.add_argument("--port", type=_port, default=9808)
    liveness.add_argument("--probe-timeout", type=_seconds, default=1.0, help="seconds that the driver may take")
    return parser


def _seconds(text: str) -> float:
    found = float(text)
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: more than 0 seconds are wanted")
    return found


def _port(text: str) -> int:
    found = int(text)
    if not 0 <= found < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is no port")
    return found


async def _until_ended(work: Awaitable[Any]) -> None:
    """Wait for the work, or for SIGTERM."""
    task = asyncio.ensure_future(work)
    component.end_on_signals(task)
    await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


async def _name_of(driver: CSIClient) -> str:
    try:
        name = (await driver.call("GetPluginInfo", within=DRIVER_WITHIN, wait=True)).name
    except CSIError as error:
        raise ValueError(f"the driver at {driver.socket} does not say its name: {error}") from None
    if not name:
        raise ValueError(f"the driver at {driver.socket} does not say its name")
    return str(name)


def _workers(options: argparse.Namespace, context: Context) -> list[Worker]:
    """The controllers of one command; only their modules are imported."""
    match options.name:
        case "provisioner":
            from .controller.provisioner import Provisioner

            provisioner = Provisioner(context, extra_metadata=options.extra_create_metadata)
            if not options.enable_capacity:
                return [provisioner]
            from .controller.capacities import Capacities

            return [provisioner, Capacities(context, options.capacity_namespace)]
        case "attacher":
            from .controller.attacher import Attacher

            return [Attacher(context)]
        case "resizer":
            from .controller.modifier import Modifier
            from .controller.resizer import Resizer

            return [Resizer(context), Modifier(context)]
        case "snapshotter":
            from .controller.snapshotter import Snapshotter

            return [Snapshotter(context)]
    from .controller.health import HealthMonitor

    return [HealthMonitor(context, options.monitor_interval)]


async def _controller(options: argparse.Namespace) -> int:
    from .controller.loop import Context

    clock = SystemClock()
    async with AsyncExitStack() as stack:
        driver = await stack.enter_async_context(CSIClient(options.csi_address))
        name = await _name_of(driver)
        client, informers, events = await _cluster(stack, options.kubeconfig, clock)
        context = Context(client, informers, events, clock, driver, name, options.node_name)
        workers = _workers(options, context)

        async def work() -> None:
            informers.start()
            async with asyncio.TaskGroup() as group:
                for each in workers:
                    group.create_task(each.run())

        if options.leader_election:
            elector = component.elector(
                client,
                clock,
                name=f"external-{options.name}-{name.replace('.', '-')}",
                namespace=options.leader_election_namespace,
                lease=15.0,
                renew=10.0,
                retry=5.0,
            )
            await _until_ended(elector.run(work))
        else:
            await _until_ended(work())
    return 0


async def _cluster(
    stack: AsyncExitStack, kubeconfig: str, clock: Clock
) -> tuple[Client, InformerFactory, EventBroadcaster]:
    """A client, informers to be started, and events that are sent."""
    settings = clientconfig.load(kubeconfig or None)
    client = await stack.enter_async_context(Client(settings, program=PROGRAM, clock=clock))
    await component.wait_for_server(client)
    informers = InformerFactory(client.for_component("informers"), clock=clock)
    events = EventBroadcaster(client.for_component("events"), clock)
    tasks = Tasks(PROGRAM)
    stack.push_async_callback(tasks.stop)
    stack.push_async_callback(informers.stop)
    tasks.start("events", events.run)
    return client, informers, events


async def _populator(options: argparse.Namespace) -> int:
    import yaml

    from .controller.populator import Populator, Sources

    try:
        template = yaml.safe_load(options.pod_template.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"--pod-template {options.pod_template}: {error}") from None
    if not isinstance(template, dict) or not template.get("containers"):
        raise ValueError(f"--pod-template {options.pod_template}: no spec of a pod: containers is missing")
    kind = (options.group, options.version, options.kind, options.plural)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        client, informers, events = await _cluster(stack, options.kubeconfig, clock)
        populator = Populator(Sources(*kind, template, options.namespace), client, informers, events, clock)
        informers.start()
        await _until_ended(populator.run())
    return 0


async def _registrar(options: argparse.Namespace) -> int:
    from .node.registrar import registered

    async with CSIClient(options.csi_address) as driver:
        name = await _name_of(driver)
    async with registered(name, Path(options.kubelet_registration_path), options.plugin_registration_path):
        await _until_ended(asyncio.Event().wait())
    return 0


async def _liveness(options: argparse.Namespace) -> int:
    from .node.liveness import Liveness

    async with CSIClient(options.csi_address) as driver:
        server = await Liveness(driver, options.probe_timeout).serve(options.address, options.port)
        async with server:
            await _until_ended(asyncio.Event().wait())
    return 0
