"""`pyb node add|remove|stop|start|partition|heal NAME`: the nodes of a running cluster, as machines in a room are.

add NAME        a new node, of the cluster's runtime; returns when it is Ready
remove NAME     it is gone, with its disk, its Node and its pods
stop NAME       its power is switched off: pods end, the disk and the Node stay
start NAME      its power is switched on; returns when it is Ready
partition NAME  its port of the switch is off: it runs, and reaches no one
heal NAME       its port is on again
list            what there is
"""

from __future__ import annotations

from collections.abc import Callable

from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, Record, locate

_HELP = {
    "add": "Adds a node and returns when it is Ready.",
    "remove": "Removes a node with its disk, its Node object and its pods.",
    "stop": "Switches a node off; its disk stays.",
    "start": "Switches a node on and returns when it is Ready.",
    "partition": "Cuts a node off from the network; it runs on.",
    "heal": "Connects a node to the network again.",
    "list": "Lists the nodes.",
}


def main(argv: list[str]) -> int:
    """Runs one of the subcommands."""
    parser = flags.Parser(prog=f"{program()} node", description="The nodes of a running cluster.")
    flags.add(parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="verb")
    for verb, text in _HELP.items():
        made = commands.add_parser(verb, help=text, description=text, allow_abbrev=False)
        if verb != "list":
            made.add_argument("node", metavar="NAME", help="the name of the node")
        flags.add(made, again=True)
    arguments = parser.parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    record = layout.read_record()
    if record is None or not layout.running():
        hint = flags.command("up", layout.name)
        raise ClusterError(f"cluster {layout.name!r} is not running; {hint} starts it")
    if arguments.verb == "list":
        return _list(layout, record)
    try:
        with layout.lock():
            _VERBS[arguments.verb](layout, layout.read_record() or record, arguments.node)
    except OSError as error:
        raise ClusterError(f"{error.filename or layout.data}: {error.strerror or error}") from error
    return 0


def _list(layout: Layout, record: Record) -> int:
    from pybernetes.cluster.commands.status import nodes

    for node in nodes(layout, record.server):
        print(f"{node['name']}\t{node['state']}")
    return 0


def _add(layout: Layout, record: Record, name: str) -> None:
    from pybernetes.cluster.node import joining, scaling

    scaling.check_name(name, record)
    if not scaling.can_grow(layout):
        hint = flags.command("up --nodes 1", layout.name)
        raise ClusterError(f"cluster {layout.name!r} was made without nodes; {hint} gives it the first")
    scaling.add(layout, record, {name: joining.free_number(record.numbers.values())}, _done)


def _remove(layout: Layout, record: Record, name: str) -> None:
    from pybernetes.cluster.node import scaling

    scaling.remove(layout, record, name)
    _done(f"node {name} is removed")


def _stop(layout: Layout, record: Record, name: str) -> None:
    from pybernetes.cluster.node import scaling

    scaling.stop(layout, record, name)
    _done(f"node {name} is off")


def _start(layout: Layout, record: Record, name: str) -> None:
    from pybernetes.cluster.node import scaling

    scaling.start(layout, record, name)
    _done(f"node {name} is ready")


def _partition(layout: Layout, record: Record, name: str) -> None:
    from pybernetes.cluster.node import scaling

    scaling.partition(layout, record, name, healed=False)
    _done(f"node {name} is cut off")


def _heal(layout: Layout, record: Record, name: str) -> None:
    from pybernetes.cluster.node import scaling

    scaling.partition(layout, record, name, healed=True)
    _done(f"node {name} is connected")


def _done(text: str) -> None:
    print(text, flush=True)


_VERBS: dict[str, Callable[[Layout, Record, str], None]] = {
    "add": _add,
    "remove": _remove,
    "stop": _stop,
    "start": _start,
    "partition": _partition,
    "heal": _heal,
}
