"""`pyb objectfs csi node|controller|webhook|sidecar`: the driver's processes; `manifest`: the YAML that installs it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from pybernetes.csi.errors import CSIError
from pybernetes.objectfs.csi import manifests
from pybernetes.objectfs.csi.request import NAME
from pybernetes.objectfs.errors import ObjectFSError

log = logging.getLogger(__name__)
TEND_SECONDS = 5.0


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["node", "controller", "webhook", "sidecar", "manifest"])
    parser.add_argument(
        "--mode", choices=["mountpod", "process", "sidecar"], default="mountpod", help="where clients run"
    )
    parser.add_argument("--image", default=manifests.IMAGE, help="of the plugin and its mount pods")
    parser.add_argument("--namespace", default=os.environ.get("NAMESPACE", manifests.NAMESPACE))
    parser.add_argument("--node-name", default=os.environ.get("NODE_NAME", ""))
    parser.add_argument("--kubeconfig", default="", help="how to reach the API server; in a pod: its service account")
    parser.add_argument("--kubelet-root", type=Path, default=Path("/var/lib/kubelet"))
    parser.add_argument("--root", type=Path, default=Path(manifests.HOST), help="what the driver keeps on its node")
    parser.add_argument("--local", default=manifests.LOCAL, help="folder of nodes for SQLite and --storage file")
    parser.add_argument("--target", type=Path, help="where a sidecar mounts its volume")
    parser.add_argument("--no-provisioner", action="store_true", help="no dynamic volumes")


def run(arguments: argparse.Namespace) -> int:
    if arguments.what == "manifest":
        import yaml

        objects = manifests.install(
            arguments.image, arguments.mode, arguments.namespace, not arguments.no_provisioner, arguments.local
        )
        yaml.safe_dump_all(objects, sys.stdout, sort_keys=False)
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if arguments.what == "sidecar":
        return _sidecar(arguments)
    from pybernetes.client import component

    works = {"node": _node, "controller": _controller, "webhook": _webhook}
    return component.run_until_done(works[arguments.what](arguments))


def _sidecar(arguments: argparse.Namespace) -> int:
    from pybernetes.objectfs.csi import sidecar

    if arguments.target is None or "VOLUME" not in os.environ:
        raise ObjectFSError("a sidecar needs --target, and the volume in its environment: the webhook writes both")
    try:
        return sidecar.run(arguments.target)
    except TimeoutError:
        raise ObjectFSError("the volume is not mounted; see the log above") from None
    except (CSIError, OSError) as error:
        raise ObjectFSError(error.message if isinstance(error, CSIError) else str(error)) from None


async def _webhook(arguments: argparse.Namespace) -> int:
    """The webhook of sidecar mode, until SIGTERM."""
    from pybernetes.client import component
    from pybernetes.client import config as clientconfig
    from pybernetes.client.client import Client
    from pybernetes.objectfs.csi import injection, webhook

    async with Client(clientconfig.load(arguments.kubeconfig or None), program="objectfs-csi") as client:
        await component.wait_for_server(client)
        how = injection.Client(arguments.image, sys.executable, arguments.local)
        work = asyncio.ensure_future(webhook.serve(client, arguments.namespace, how, manifests.WEBHOOK_PORT))
        component.end_on_signals(work)
        await asyncio.wait((work,))
        if not work.cancelled():
            work.result()
    return 0


async def _node(arguments: argparse.Namespace) -> int:
    from pybernetes.client import component
    from pybernetes.client import config as clientconfig
    from pybernetes.client.client import Client
    from pybernetes.component.tasks import Tasks
    from pybernetes.csi.driver import serving
    from pybernetes.objectfs.csi.driver import NodeDriver
    from pybernetes.objectfs.csi.mounts import Mounts, PodMounts, ProcessMounts
    from pybernetes.objectfs.csi.publisher import Publisher
    from pybernetes.objectfs.csi.state import States
    from pybernetes.objectfs.fuse.holder import HolderServer

    if arguments.mode == "sidecar":
        raise ObjectFSError("--mode sidecar has no plugin on nodes: `pyb objectfs csi webhook` injects the clients")
    root: Path = arguments.root
    async with AsyncExitStack() as stack:
        mounts: Mounts
        if arguments.mode == "process":
            mounts = ProcessMounts(root)
        else:
            holder = HolderServer(root / "run" / "holder.sock")
            stack.callback(holder.close)
            client = await stack.enter_async_context(
                Client(clientconfig.load(arguments.kubeconfig or None), program="objectfs-csi")
            )
            mounts = PodMounts(client, arguments.node_name, arguments.namespace, arguments.image, arguments.local)
        publisher = Publisher(mounts, States(root / "state"))
        driver = NodeDriver(arguments.node_name, publisher)
        plugin = arguments.kubelet_root / "plugins" / NAME
        await stack.enter_async_context(
            serving(driver, plugin / "csi.sock", arguments.kubelet_root / "plugins_registry")
        )
        log.info("driver %s serves node %s, clients run by %s", NAME, arguments.node_name, arguments.mode)
        tasks = Tasks("objectfs-csi")
        stack.push_async_callback(tasks.stop)

        async def tend() -> None:
            while True:
                await publisher.tend()
                await asyncio.sleep(TEND_SECONDS)

        tasks.start("tend", tend)
        work = asyncio.ensure_future(asyncio.Event().wait())
        component.end_on_signals(work)
        await asyncio.wait((work,))
    return 0


async def _controller(arguments: argparse.Namespace) -> int:
    """The driver's controller with the cluster's provisioner, resizer and snapshotter in the same process."""
    from pybernetes.client import component
    from pybernetes.client import config as clientconfig
    from pybernetes.client.client import Client
    from pybernetes.client.clock import SystemClock
    from pybernetes.client.events import EventBroadcaster
    from pybernetes.client.informers import InformerFactory
    from pybernetes.component.tasks import Tasks
    from pybernetes.csi.client import CSIClient
    from pybernetes.csi.controller import snapshot_crds
    from pybernetes.csi.controller.loop import Context
    from pybernetes.csi.controller.provisioner import Provisioner
    from pybernetes.csi.controller.resizer import Resizer
    from pybernetes.csi.controller.snapshotter import Snapshotter
    from pybernetes.csi.driver import serving
    from pybernetes.objectfs.csi.driver import ControllerDriver

    clock = SystemClock()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(clientconfig.load(arguments.kubeconfig or None), program="objectfs-csi", clock=clock)
        )
        await component.wait_for_server(client)
        socket = Path(os.environ.get("CSI_SOCKET", "/tmp/objectfs-csi.sock"))
        address = await stack.enter_async_context(serving(ControllerDriver(arguments.node_name), socket))
        calls = await stack.enter_async_context(CSIClient(address))
        informers = InformerFactory(client.for_component("informers"), clock=clock)
        events = EventBroadcaster(client.for_component("events"), clock, "objectfs-csi")
        context = Context(client, informers, events, clock, calls, NAME)
        provisioner, resizer = Provisioner(context), Resizer(context)
        informers.start()
        stack.push_async_callback(informers.stop)
        tasks = Tasks("objectfs-csi")
        stack.push_async_callback(tasks.stop)

        async def snapshots() -> None:
            await snapshot_crds.ensure(client)
            await Snapshotter(context).run()

        works = {"events": events.run, "provisioner": provisioner.run, "resizer": resizer.run, "snapshots": snapshots}
        for name, work in works.items():
            tasks.start(name, work)
        waiting = asyncio.ensure_future(asyncio.Event().wait())
        component.end_on_signals(waiting)
        await asyncio.wait((waiting,))
    return 0
