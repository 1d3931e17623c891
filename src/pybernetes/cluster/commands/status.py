"""`pyb status`: the processes of a cluster, where its API is, and whether it answers. Exit code 1 if one of
the processes does not run.

The programs of a node are shown below it, as `node-1/kubelet`; they count like the others.
"""

from __future__ import annotations

import json
import os
from urllib.parse import urlsplit

from pybernetes.cluster import pidfile
from pybernetes.cluster.admin import Admin, node_ready
from pybernetes.cluster.commands import flags
from pybernetes.cluster.layout import SUPERVISOR, Layout, context_name, locate
from pybernetes.cluster.readiness import Probe

OFF = "off"


def main(argv: list[str]) -> int:
    """Shows the cluster the flags name."""
    parser = flags.parser("status", "Shows the processes of a cluster; exit code 1 if it does not run.")
    parser.add_argument("--output", "-o", choices=["table", "json"], default="table", help="default: %(default)s")
    arguments = parser.parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    status = _status(layout)
    if not status["running"] and not layout.data.exists() and arguments.output == "table":
        print(f"There is no cluster {layout.name!r}; {flags.command('up', layout.name)} makes one.")
        return 1
    print(json.dumps(status, indent=2) if arguments.output == "json" else _table(status))
    return 0 if status["running"] and status["supervised"] else 1


def _status(layout: Layout) -> dict[str, object]:
    record = layout.read_record()
    alive = layout.processes()
    names = (SUPERVISOR, *_component_names(layout))
    processes = [each for name in names for each in (_process(name, alive.get(name)), *_programs(layout, name))]
    supervised = bool(processes[0]["running"])
    running = len(processes) > 1 and all(process["running"] for process in processes[1:])
    server = record.server if record else ""
    listed = nodes(layout, server) if running else []
    ready = running and _ready(layout, server) and all(node["ready"] for node in listed if node["state"] != OFF)
    return {
        "name": layout.name,
        "running": running,
        "supervised": supervised,
        "ready": ready,
        "server": server,
        "store": record.store if record else "",
        "context": context_name(layout.name),
        "dataDir": str(layout.data),
        "nodes": listed,
        "differences": record.differences if record else (),
        "components": processes,
    }


def _programs(layout: Layout, name: str) -> list[dict[str, object]]:
    """The programs inside of a node."""
    if not layout.node(name).is_dir():
        return []
    from pybernetes.cluster.node import inside
    from pybernetes.cluster.node.machine import Machine

    try:
        machine = Machine.read(str(layout.node(name) / "machine.json"))
    except (OSError, ValueError, TypeError):
        return []
    init = inside.init_process(layout, name, plain=machine.isolation == "none")
    found = inside.programs(init, machine.run) if init is not None else {}
    return [_process(f"{name}/{program.name}", found.get(program.name)) for program in machine.programs]


def nodes(layout: Layout, server: str) -> list[dict[str, object]]:
    """The nodes of a running cluster: whether the API server calls them ready, and their state in a word."""
    address = urlsplit(server)
    admin = Admin(address.hostname or "", address.port or 0, layout.pki, timeout=2.0)
    found: list[dict[str, object]] = []
    for spec in layout.specs():
        name = str(spec["name"])
        if not spec.get("every") and layout.node(name).is_dir():
            try:
                _, node = admin.request("GET", f"/api/v1/nodes/{name}")
            except OSError:
                node = {}
            ready = not spec.get("off") and node_ready(node)
            state = OFF if spec.get("off") else "ready" if ready else "not ready"
            if (layout.node(name) / "partitioned").exists():
                state += ", cut off from the network"
            found.append({"name": name, "ready": ready, "state": state})
    admin.close()
    return found


def _component_names(layout: Layout) -> list[str]:
    """Those that should run: a chore does so only now and then, and a node may be switched off."""
    return [str(spec["name"]) for spec in layout.specs() if not spec.get("every") and not spec.get("off")]


def _ready(layout: Layout, server: str) -> bool:
    address = urlsplit(server)
    return bool(address.hostname and address.port) and Probe(address.hostname or "", address.port or 0, layout.pki)()


def _process(name: str, process: pidfile.Process | None) -> dict[str, object]:
    if process is None or not process.alive:
        return {"name": name, "running": False, "pid": None, "uptimeSeconds": None, "rssBytes": None, "restarts": None}
    return {
        "name": name,
        "running": True,
        "pid": process.pid,
        "uptimeSeconds": round(_uptime(process), 2),
        "rssBytes": _resident(process.pid),
        "restarts": process.restarts,
    }


def _uptime(process: pidfile.Process) -> float:
    with open("/proc/uptime") as file:
        return float(file.read().split()[0]) - process.start_time / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # It ended between two looks.
        return 0


def _table(status: dict[str, object]) -> str:
    lines = [f"Cluster {status['name']!r}: {_state(status)}"]
    processes = status["components"]
    assert isinstance(processes, list)
    if any(process["running"] for process in processes):
        lines += [f"  {key:8} {status[field]}" for key, field in _FACTS.items()]
        nodes = status["nodes"]
        assert isinstance(nodes, list)
        lines += [f"  node     {node['name']}: {node['state']}" for node in nodes]
        differences = status["differences"]
        assert isinstance(differences, (list, tuple))
        lines += [f"  rootless {each}" for each in differences]
        rows = [("COMPONENT", "STATE", "PID", "UPTIME", "RSS", "RESTARTS"), *map(_row, processes)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines += ["", *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)]
    return "\n".join(lines)


def _state(status: dict[str, object]) -> str:
    """One line about the cluster. Where some processes run and others do not, it names those that do not."""
    if status["running"]:
        state = "ready" if status["ready"] else "running, not ready"
        hint = flags.command("up", str(status["name"]))
        return state if status["supervised"] else f"{state}, without its supervisor; {hint} gives it a new one"
    processes = status["components"]
    assert isinstance(processes, list)
    down = [str(process["name"]) for process in processes if not process["running"]]
    return "not running" if len(down) == len(processes) else f"running, without {', '.join(down)}"


_FACTS = {"server": "server", "store": "store", "context": "context", "data": "dataDir"}


def _row(process: dict[str, object]) -> tuple[str, ...]:
    if not process["running"]:
        return str(process["name"]), "not running", "-", "-", "-", "-"
    resident, uptime = process["rssBytes"], process["uptimeSeconds"]
    assert isinstance(resident, int)
    assert isinstance(uptime, float)
    return (
        str(process["name"]),
        "running",
        str(process["pid"]),
        _duration(int(uptime)),
        f"{resident / 1e6:.1f} MB",
        str(process["restarts"]),
    )


def _duration(seconds: int) -> str:
    """As kubectl prints ages: the two largest units."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), 3)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"
