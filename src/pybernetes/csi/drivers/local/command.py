"""`pyb csi-local`: the driver of volumes on this node, registered with its kubelet, with the controllers beside it.

One process for all of it. A kubelet with `--local-volumes-kubeconfig` starts it when the first claim needs it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, PersistentVolume
from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.component.tasks import Tasks

from ...client import CSIClient
from ...controller import snapshot_crds, snapshot_objects
from ...controller.health import HealthMonitor
from ...controller.loop import Context
from ...controller.modifier import Modifier
from ...controller.provisioner import Provisioner
from ...controller.resizer import Resizer
from ...controller.snapshotter import Snapshotter
from ...driver import serving
from .driver import NAME, TOPOLOGY, LocalDriver

PROGRAM = "pyb-csi-local"
SNAPSHOT_CLASS: Final = {
    "apiVersion": f"{snapshot_objects.GROUP}/v1",
    "kind": "VolumeSnapshotClass",
    "metadata": {"name": "standard", "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"}},
    "driver": NAME,
    "deletionPolicy": "Delete",
}
log = logging.getLogger(__name__)


def main(argv: list[str]) -> int:
    """Serve until SIGTERM; the exit code."""
    options = _parser().parse_args(argv)
    component.log_to_stderr(options.v)
    try:
        return component.run_until_done(_run(options))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb csi-local: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyb csi-local", description=__doc__)
    parser.add_argument("--kubeconfig", default="", help="how to reach the API server; in a pod: its service account")
    parser.add_argument("--node-name", required=True, help="the Node that this is")
    parser.add_argument("--kubelet-root", type=Path, default=Path("/var/lib/kubelet"), help="the kubelet's --root-dir")
    parser.add_argument("--data", type=Path, help="where the volumes are (default: plugins/DRIVER in the kubelet's)")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when stdin is closed")
    parser.add_argument("-v", type=int, default=2, help="verbosity of the log")
    return parser


async def _run(options: argparse.Namespace) -> int:
    clock = SystemClock()
    plugin = options.kubelet_root / "plugins" / NAME
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(clientconfig.load(options.kubeconfig or None), program=PROGRAM, clock=clock)
        )
        await component.wait_for_server(client)
        node = await client.get(Node, options.node_name)
        labels = (node.metadata.labels if node.metadata else None) or {}
        driver = LocalDriver(options.node_name, labels.get(TOPOLOGY, options.node_name), options.data or plugin)
        registry = options.kubelet_root / "plugins_registry"
        address = await stack.enter_async_context(serving(driver, plugin / "csi.sock", registry))
        calls = await stack.enter_async_context(CSIClient(address))
        informers = InformerFactory(client.for_component("informers"), clock=clock)
        events = EventBroadcaster(client.for_component("events"), clock, options.node_name)
        context = Context(client, informers, events, clock, calls, NAME, options.node_name)
        provisioner = Provisioner(context)
        here = _here(labels.get(TOPOLOGY, options.node_name))
        informers.start()
        stack.push_async_callback(informers.stop)
        tasks = Tasks(PROGRAM)
        stack.push_async_callback(tasks.stop)
        runs: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "events": events.run,
            "provisioner": provisioner.run,
            "resizer": Resizer(context, here).run,
            "modifier": Modifier(context, here).run,
            "health monitor": HealthMonitor(context).run,
            "snapshotter": partial(_snapshots, client, Snapshotter(context, here)),
        }
        for name, run in runs.items():
            tasks.start(name, run)
        work = asyncio.ensure_future(asyncio.Event().wait())
        component.end_on_signals(work)
        if options.end_with_stdin:
            asyncio.get_running_loop().add_reader(0, work.cancel)
        await asyncio.wait((work,))
    return 0


async def _snapshots(client: Client, snapshotter: Snapshotter) -> None:
    """Have the API serve snapshots, and this driver's class of them, then make some."""
    if await snapshot_crds.ensure(client):
        with suppress(errors.AlreadyExists):
            await snapshot_objects.create(client, "volumesnapshotclasses", SNAPSHOT_CLASS)
    await snapshotter.run()


def _here(hostname: str) -> Callable[[PersistentVolume], bool]:
    def here(volume: PersistentVolume) -> bool:
        affinity = volume.spec.node_affinity if volume.spec else None
        terms = (affinity.required.node_selector_terms if affinity and affinity.required else None) or ()
        values = [each.values or () for term in terms for each in term.match_expressions or () if each.key == TOPOLOGY]
        return any(hostname in each for each in values)

    return here
