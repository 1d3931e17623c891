"""`pyb up`: starts a cluster in the background and returns when it is ready.

Its supervisor is started before all else, and imports what components need while the rest is imported and done here
(`starting.py`). A start that fails, or that is broken off, leaves no process behind, and a cluster that was never ready
nothing that decides anything for the next start. Without nodes nothing of `node` is imported.

A cluster that was ready before keeps what it was made with (`settings.py`). One that runs gets the nodes that the flags
ask for; one that has lost its supervisor gets a new one; what a reboot left behind does not matter.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from pybernetes.cluster import processes, settings
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import SUPERVISOR, Layout, Record, home, locate
from pybernetes.cluster.progress import Progress
from pybernetes.flags import file

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that abort a start: Ctrl-C, `timeout`, a terminal that is closed."""
TAKEN_OVER_WITHIN = 60.0  # seconds
POLL = 0.02


def main(argv: list[str]) -> int:
    """Starts the cluster the flags describe."""
    began = time.perf_counter()
    arguments, given = _parse(argv)
    layout = _layout(arguments.name, arguments.data_dir)
    _refuse_rules(arguments)
    if not layout.record_file.exists():
        _refuse_nodes(settings.for_start(None, given))  # before anything is written
    try:
        layout.claim()
        with layout.lock():
            if any(process.alive for process in layout.processes().values()):
                _take_over(layout)
            if layout.running():
                decision = _change(layout, given, arguments.token)
                if decision is None:
                    return 0
            else:
                decision = settings.for_start(layout.read_record(), given)
                _refuse_nodes(decision)
                processes.stop_all(layout)  # pid files that a reboot has made stale
            return _start(layout, decision, arguments.token, began)
    except OSError as error:
        what = f"cannot write to {error.filename or layout.data}: {error.strerror or error}"
        raise ClusterError(f"{what}; --data-dir names another folder") from error


def _take_over(layout: Layout) -> None:
    """Gives components that have lost their supervisor a new one; they run on. Half a start is ended instead."""
    specs = layout.specs()
    if not specs or not layout.kubeconfig.exists():
        print(
            f"The last start of cluster {layout.name!r} was broken off: {', '.join(processes.stop_all(layout))} ended."
        )
        return
    if layout.running():
        return
    if any(spec.get("listen") for spec in specs):
        # The sockets of a rootless cluster were in the supervisor's hands: it starts anew.
        print(f"Cluster {layout.name!r} had lost its supervisor: {', '.join(processes.stop_all(layout))} ended.")
        return
    layout.pid_file(SUPERVISOR).unlink(missing_ok=True)
    events = processes.Supervisor(layout).adopt()
    wanted = {str(spec["name"]) for spec in specs if not spec.get("every") and not spec.get("off")}
    adopted = set()
    deadline = time.monotonic() + TAKEN_OVER_WITHIN
    while wanted:
        for event, name, _ in events.read(POLL):
            if event in ("adopted", "started"):
                wanted.discard(name)
            if event == "adopted":
                adopted.add(name)
        if events.closed or time.monotonic() > deadline:
            raise ClusterError(f"cluster {layout.name!r} cannot be taken over; {layout.log(SUPERVISOR)} says why")
    events.close()
    print(f"Cluster {layout.name!r} had lost its supervisor: taken over, with {', '.join(sorted(adopted))}.")


def _change(layout: Layout, given: settings.Flags, token: str | None) -> settings.Decision | None:
    """Gives a running cluster the nodes that were asked for; a decision if it has to start again for them."""
    record = layout.read_record()
    assert record is not None  # `claim` has looked
    decision = settings.for_running(record, given)
    if token is not None and f",{token}," not in f",{_token(layout)},":
        raise ClusterError(f"--token: cluster {layout.name!r} runs with another, or with none; it is read at a start")
    if not decision.changed:
        hint = flags.command("down", layout.name)
        print(f"Cluster {layout.name!r} is already running at {record.server}; {hint} stops it.")
        return None
    _refuse_nodes(decision)
    from pybernetes.cluster.node import joining, scaling

    if decision.settings.nodes and not scaling.can_grow(layout):
        if record.store == "memory":
            raise ClusterError(
                f"--nodes {decision.settings.nodes}: the API server has to start again for the first node, "
                f"and --store memory would lose all objects"
            )
        print(f"Cluster {layout.name!r} starts again, for its first node.")
        processes.stop_all(layout)
        return decision
    print(f"Cluster {layout.name!r} is running at {record.server}: {', '.join(decision.changed)}")
    with Progress() as progress:
        numbers = joining.numbers(record.numbers, decision.settings.nodes)
        scaling.scale(layout, record, numbers, progress.done)
    return None


def _token(layout: Layout) -> str:
    import csv

    try:
        with open(layout.token_file, newline="") as file:
            return next(csv.reader(file), [""])[0]
    except FileNotFoundError:
        return ""


def _parse(argv: list[str]) -> tuple[argparse.Namespace, settings.Flags]:
    parser = flags.parser("up", "Starts a cluster in the background and returns when it is ready.")
    parser.add_argument("--port", type=flags.port, help="of the API server, 0 = any free (default: 6443)")
    parser.add_argument("--nodes", type=flags.count, metavar="N", help="0 = control plane only (default: 1)")
    parser.add_argument(
        "--runtime",
        choices=["auto", "embedded", "containerd", "simulated"],
        help="of nodes; auto = containerd if it runs on this machine, else embedded, our own (default: auto)",
    )
    parser.add_argument(
        "--network",
        choices=["vxlan", "host-gw", "udp", "none", "cni"],
        help="between nodes: none = host network only, cni = others bring it (default: as before, else vxlan)",
    )
    parser.add_argument(
        "--ip-family",
        choices=["ipv4", "dual"],
        help="of pods and Services: dual = IPv4 and IPv6 (default: as before, else ipv4)",
    )
    parser.add_argument(
        "--simulated-nodes",
        type=flags.count,
        metavar="N",
        help="nodes that only pretend; then --nodes is 0, unless given",
    )
    parser.add_argument(
        "--simulation-rules", type=file, metavar="FILE", help="what pods on them do that do not say it themselves"
    )
    parser.add_argument("--store", choices=["sqlite", "etcd", "memory"], help="default: sqlite")
    parser.add_argument("--etcd-endpoints", metavar="URLS", help="comma separated, with --store etcd")
    parser.add_argument(
        "--load-balancer-pool",
        type=_pool,
        metavar="RANGES",
        help="for Services of type LoadBalancer: networks or FIRST-LAST, comma separated (default: of the nodes' link)",
    )
    for scheme, usual, high in (("http", 80, 8080), ("https", 443, 8443)):
        parser.add_argument(
            f"--ingress-{scheme}-port",
            type=flags.port,
            metavar="PORT",
            help=f"of this machine, where Ingresses are served; 0 = not (default: {usual}, without root {high})",
        )
    parser.add_argument(
        "-v", "--v", dest="verbosity", type=flags.count, metavar="N", help="how much components log (default: 2)"
    )
    parser.add_argument("--token", help="an extra bearer token with all rights, for load tests; for this start only")
    parser.epilog = "A cluster that was started before keeps what it was made with, unless a flag changes it."
    arguments = parser.parse_args(argv)
    if arguments.etcd_endpoints is not None and arguments.store not in (None, "etcd"):
        parser.error("--etcd-endpoints belongs to --store etcd")
    if arguments.runtime == "simulated":
        if arguments.nodes is not None and arguments.simulated_nodes:
            parser.error("--runtime simulated: say the number of nodes by --nodes or by --simulated-nodes")
        arguments.simulated_nodes = arguments.simulated_nodes or (1 if arguments.nodes is None else arguments.nodes)
        arguments.nodes, arguments.runtime = 0, None
    if arguments.token is not None and (not arguments.token or not arguments.token.isprintable()):
        parser.error("--token must be printable text")
    rules = arguments.simulation_rules
    return arguments, settings.Flags(
        nodes=arguments.nodes,
        runtime=arguments.runtime,
        network=arguments.network,
        ip_family=arguments.ip_family,
        store=arguments.store or ("etcd" if arguments.etcd_endpoints else None),
        etcd_endpoints=arguments.etcd_endpoints,
        port=arguments.port,
        simulated_nodes=arguments.simulated_nodes,
        simulation_rules=str(Path(rules).resolve()) if rules is not None else None,
        load_balancer_pool=arguments.load_balancer_pool,
        ingress_http_port=arguments.ingress_http_port,
        ingress_https_port=arguments.ingress_https_port,
        verbosity=arguments.verbosity,
    )


def _pool(text: str) -> str:
    """Ranges of addresses; empty for the usual ones. Raises ArgumentTypeError."""
    from pybernetes.controllers.servicelb.pool import parse_ranges

    try:
        parse_ranges(text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _layout(name: str, data_dir: str | None) -> Layout:
    """Where to start; names are unique among the clusters of a user that run, as they name his contexts."""
    known = locate(name)
    kept = known.running() or known.read_record() is not None
    layout = locate(name, data_dir) if data_dir is not None or kept else Layout(name, home() / name)
    if known.data != layout.data and known.running():
        raise ClusterError(f"cluster {name!r} is already running from {known.data}; choose another --name")
    return layout


def _refuse_nodes(decision: settings.Decision) -> None:
    """Refuses what cannot be started, before anything is written; what always can be costs no import here."""
    wanted = decision.settings
    if wanted.store == "etcd" and not wanted.etcd_endpoints:
        raise ClusterError("--store etcd and --etcd-endpoints belong together")
    if wanted.simulation_rules and not wanted.simulated_nodes:
        raise ClusterError("--simulation-rules needs simulated nodes")
    if wanted.nodes and wanted.simulated_nodes:
        from pybernetes.cluster.components import FEW_NODES

        if wanted.simulated_nodes > FEW_NODES:
            raise ClusterError(f"--simulated-nodes: with real nodes there is room for {FEW_NODES} simulated ones")
    usual = wanted.runtime != "containerd" and wanted.store != "etcd" and wanted.nodes == 1
    if wanted.nodes == 0 or usual:
        return
    from pybernetes.cluster.node import plan

    plan.check(wanted.nodes, wanted.runtime, wanted.store)


def _refuse_rules(arguments: argparse.Namespace) -> None:
    if arguments.simulation_rules is None:
        return
    from pybernetes.kubelet.simulated.rules_file import RulesFile

    try:
        RulesFile(arguments.simulation_rules).read()
    except (OSError, ValueError) as error:
        raise ClusterError(f"--simulation-rules: {error}") from None


def _start(layout: Layout, decision: settings.Decision, token: str | None, began: float) -> int:
    if decision.kept:
        print(f"Cluster {layout.name!r} keeps what it was made with: {' '.join(decision.kept)}")
    if decision.changed:
        print(f"Changed: {', '.join(decision.changed)}")
    if token is None and layout.token_file.exists():
        print("The token of the last start is gone; --token sets one.")
    former, before = layout.read_record(), set(os.listdir(layout.data))
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, _broken_off)
    try:
        with Progress() as progress:
            layout.prepare()
            supervisor = processes.Supervisor(layout)
            from pybernetes.cluster import starting

            record = starting.start(layout, decision.settings, token, supervisor, progress)
    except BaseException:
        _undisturbed()
        processes.stop_all(layout)
        if decision.settings.nodes:
            _remove_nodes(layout)
        from pybernetes.cluster.removing import undo_first_start

        undo_first_start(layout, former, before)
        raise
    _tell(record, began)
    return 0


def _tell(record: Record, began: float) -> None:
    if record.differences:
        print("Without root, pods are not isolated as they would be with it:")
        print(*(f"  - {each}" for each in record.differences), sep="\n")
    print(f"Cluster {record.name!r} is ready after {time.perf_counter() - began:.2f} s: {record.server}")
    what = "nodes" if record.nodes or record.simulated_nodes else "namespaces"
    hints = [flags.command(word, record.name).strip("`") for word in ("status", "down")]
    print(f"Next: kubectl --context {record.context} get {what}   |   {'   |   '.join(hints)}")


def _broken_off(number: int, _: object) -> None:
    _undisturbed()
    raise SystemExit(128 + number)


def _undisturbed() -> None:
    """Ignore further signals, so that the clean-up completes."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _remove_nodes(layout: Layout) -> None:
    from pybernetes.cluster.node import teardown

    teardown.remove(layout)
