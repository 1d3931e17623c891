"""`pyb up`: starts a cluster in the background and returns when it is ready.

Its supervisor is started before all else, and imports what components need while the rest is imported and done here
(`starting.py`). A start that fails, or that is broken off, leaves no process behind, and a cluster that was never ready
nothing that decides anything for the next start. Without nodes nothing of `node` is imported.
"""

from __future__ import annotations

import argparse
import os
import signal
import time

from pybernetes.cluster import processes
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, home, locate
from pybernetes.cluster.progress import Progress
from pybernetes.flags import file

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a start: Ctrl-C, `timeout`, a terminal that is closed."""


def main(argv: list[str]) -> int:
    """Starts the cluster the flags describe."""
    began = time.perf_counter()
    arguments = _parse(argv)
    layout = _layout(arguments.name, arguments.data_dir)
    _refuse_nodes(arguments)
    _refuse_rules(arguments)
    try:
        layout.claim()
        with layout.lock():
            if layout.running():
                return _already(layout)
            return _start(layout, arguments, began)
    except OSError as error:
        what = f"cannot write to {error.filename or layout.data}: {error.strerror or error}"
        raise ClusterError(f"{what}; --data-dir names another folder") from error


def _already(layout: Layout) -> int:
    record = layout.read_record()
    if record is None or not layout.kubeconfig.exists():
        raise ClusterError(f"the start of cluster {layout.name!r} was broken off; `{program()} down` ends what runs")
    print(f"Cluster {layout.name!r} is already running at {record.server}; `{program()} down` stops it.")
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = flags.parser("up", "Starts a cluster in the background and returns when it is ready.")
    parser.add_argument(
        "--port", type=_port, default=6443, help="of the API server, 0 = any free (default: %(default)s)"
    )
    parser.add_argument("--nodes", type=_count, metavar="N", help="0 = control plane only (default: 1)")
    parser.add_argument(
        "--runtime",
        choices=["auto", "embedded", "containerd", "simulated"],
        default="auto",
        help="of nodes; auto = containerd if it runs on this machine, else embedded, our own (default: %(default)s)",
    )
    parser.add_argument(
        "--simulated-nodes",
        type=_count,
        default=0,
        metavar="N",
        help="nodes that only pretend; then --nodes is 0, unless given",
    )
    parser.add_argument(
        "--simulation-rules", type=file, metavar="FILE", help="what pods on them do that do not say it themselves"
    )
    parser.add_argument("--store", choices=["sqlite", "etcd", "memory"], default="sqlite", help="default: %(default)s")
    parser.add_argument("--etcd-endpoints", metavar="URLS", help="comma separated, with --store etcd")
    parser.add_argument("--token", help="an extra bearer token with all rights, for load tests")
    arguments = parser.parse_args(argv)
    if (arguments.store == "etcd") != (arguments.etcd_endpoints is not None):
        parser.error("--store etcd and --etcd-endpoints belong together")
    if arguments.runtime == "simulated":
        if arguments.nodes is not None and arguments.simulated_nodes:
            parser.error("--runtime simulated: say the number of nodes by --nodes or by --simulated-nodes")
        arguments.simulated_nodes = arguments.simulated_nodes or (1 if arguments.nodes is None else arguments.nodes)
        arguments.nodes = 0
    if arguments.simulation_rules is not None and not arguments.simulated_nodes:
        parser.error("--simulation-rules needs simulated nodes")
    if arguments.nodes is None and arguments.simulated_nodes:
        arguments.nodes = 0
    if arguments.nodes and arguments.simulated_nodes:
        from pybernetes.cluster.components import FEW_NODES

        if arguments.simulated_nodes > FEW_NODES:
            parser.error(f"with real nodes there is room for {FEW_NODES} simulated ones")
    if arguments.token is not None and (not arguments.token or not arguments.token.isprintable()):
        parser.error("--token must be printable text")
    return arguments


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError
    return port


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError
    return count


def _layout(name: str, data_dir: str | None) -> Layout:
    """Where to start; names are unique among the running clusters of a user, as they name his contexts."""
    known = locate(name)
    layout = locate(name, data_dir) if data_dir is not None or known.running() else Layout(name, home() / name)
    if known.data != layout.data and known.running():
        raise ClusterError(f"cluster {name!r} is already running from {known.data}; choose another --name")
    return layout


def _refuse_nodes(arguments: argparse.Namespace) -> None:
    """Refuses nodes that cannot be, before anything is written; those that always can be cost no import here."""
    usual = arguments.runtime != "containerd" and arguments.store != "etcd" and arguments.nodes in (None, 1)
    if arguments.nodes == 0 or usual:
        return
    from pybernetes.cluster.node import plan

    plan.check(arguments.nodes, arguments.runtime, arguments.store)


def _refuse_rules(arguments: argparse.Namespace) -> None:
    if arguments.simulation_rules is None:
        return
    from pybernetes.kubelet.simulated.rules_file import RulesFile

    try:
        RulesFile(arguments.simulation_rules).read()
    except (OSError, ValueError) as error:
        raise ClusterError(f"--simulation-rules: {error}") from None


def _start(layout: Layout, arguments: argparse.Namespace, began: float) -> int:
    _refuse_remains(layout)
    count = 1 if arguments.nodes is None else arguments.nodes
    former, before = layout.read_record(), set(os.listdir(layout.data))
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, _broken_off)
    try:
        with Progress() as progress:
            layout.prepare()
            supervisor = processes.Supervisor(layout)
            from pybernetes.cluster import starting

            record = starting.start(layout, arguments, count, supervisor, progress)
    except BaseException:
        _undisturbed()
        processes.stop_all(layout)
        if count:
            _remove_nodes(layout)
        from pybernetes.cluster.removing import undo_first_start

        undo_first_start(layout, former, before)
        raise
    if record.differences:
        print("Without root, pods are not isolated as they would be with it:")
        print(*(f"  - {each}" for each in record.differences), sep="\n")
    print(f"Cluster {layout.name!r} is ready after {time.perf_counter() - began:.2f} s: {record.server}")
    what = "nodes" if count or arguments.simulated_nodes else "namespaces"
    print(f"Next: kubectl --context {record.context} get {what}   |   {program()} status   |   {program()} down")
    return 0


def _broken_off(number: int, _: object) -> None:
    _undisturbed()
    raise SystemExit(128 + number)


def _undisturbed() -> None:
    """What was begun is undone to the end, also for who is impatient."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _remove_nodes(layout: Layout) -> None:
    from pybernetes.cluster.node import teardown

    teardown.remove(layout)


def _refuse_remains(layout: Layout) -> None:
    for name, process in layout.processes().items():
        if process.alive:
            raise ClusterError(f"{name} (pid {process.pid}) has lost its supervisor; `{program()} down` ends it")
        raise ClusterError(
            f"stale pid file {layout.pid_file(name)}: process {process.pid} is gone; `{program()} down` cleans up"
        )
