"""The command line: a table of commands, each a module of its own with `main(argv) -> int`.

Only the module of the chosen command is imported: `pyb apiserver` must start fast, so nothing here may import more
than it needs to find the module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module

from pybernetes.cluster.errors import ClusterError

_COMMANDS = "pybernetes.cluster.commands."

# name -> (module, one line of help; an empty one is internal and not listed)
COMMANDS: dict[str, tuple[str, str]] = {
    "up": (_COMMANDS + "up", "start a cluster in the background and wait until it is ready"),
    "down": (_COMMANDS + "down", "stop a cluster; --purge also removes its data"),
    "status": (_COMMANDS + "status", "show the processes of a cluster"),
    "logs": (_COMMANDS + "logs", "show what components have written"),
    "node": (_COMMANDS + "node", "nodes of a running cluster: add, remove, stop, start, partition, heal, list"),
    "kubeconfig": (_COMMANDS + "kubeconfig", "print the path of a cluster's kubeconfig"),
    "kubectl": ("pybernetes.kubectl.main", "the command line client, as `./kubectl` (`kubectl-pyb` where installed)"),
    "console": ("pybernetes.console.command", "open a page in the browser that shows a cluster"),
    "image": (
        _COMMANDS + "image",
        "images of the nodes: build, import or pull one, make one of a Debian package, list, remove",
    ),
    "fault": (_COMMANDS + "fault", "faults on demand: requests that are refused, delayed, lost or held back by rule"),
    "snapshot": (_COMMANDS + "snapshot", "save all that a cluster has stored into a file, and restore it"),
    "why": (_COMMANDS + "why", "explain where a pod is, or why it is pending and what would make it fit"),
    "at": (_COMMANDS + "at", "show objects as they were at a revision: at REVISION get RESOURCE"),
    "diff": (_COMMANDS + "diff", "show what has changed between two revisions, and who changed it"),
    "trace": (_COMMANDS + "trace", "run a command and show all that it caused; or what led to an object"),
    "record": (_COMMANDS + "record", "keep all that changes in a cluster, and whose decision it was, in a file"),
    "replay": ("pybernetes.simulation.replay", "what today's controllers and scheduler would do differently in it"),
    "test": (_COMMANDS + "test", "install what the tests need, then lint, type-check and run them"),
    "lock": (_COMMANDS + "lock", "pin the newest versions of all packages, with hashes, in requirements/"),
    "mutate": (_COMMANDS + "mutate", "break the code at random places and tell which breaks no test notices"),
    "docs": (_COMMANDS + "docs", "the documentation as a site: build, serve"),
    "bench": (_COMMANDS + "bench", "run a benchmark of the bench folder"),
    "apiserver": ("pybernetes.apiserver.command", "run the API server in the foreground (upstream's flags)"),
    "controller-manager": (
        "pybernetes.controllers.command",
        "run the controllers in the foreground (likewise)",
    ),
    "scheduler": ("pybernetes.scheduler.command", "run the scheduler in the foreground (likewise)"),
    "simulated-nodes": ("pybernetes.kubelet.simulated.command", "pretend nodes, with pods that behave by rules"),
    "kubelet": ("pybernetes.kubelet.command", "run a node's kubelet in the foreground (likewise)"),
    "node-network": ("pybernetes.network.node_network", "run a node's network: Services, names, routes (likewise)"),
    "network-policy": ("pybernetes.network.policy.command", "enforce NetworkPolicies on this node in the foreground"),
    "network-agent": ("pybernetes.network.overlay.command", "keep routes to the pods of other nodes in the foreground"),
    "proxy": ("pybernetes.proxy.command", "serve Services on this node in the foreground (kube-proxy's flags)"),
    "runtime": ("pybernetes.cri.embedded.command", "run a node's container runtime in the foreground (CRI)"),
    "dns": ("pybernetes.dns.command", "run a resolver for cluster names in the foreground"),
    "ingress": ("pybernetes.ingress.command", "serve Ingresses of the class `pybernetes` in the foreground"),
    "cni": ("pybernetes.cni.command", "network plugins of our own, and their installation for a runtime"),
    "csi": (
        "pybernetes.csi.command",
        "what runs beside a CSI driver: provisioner, attacher, resizer, snapshotter, ...",
    ),
    "csi-local": ("pybernetes.csi.drivers.local.command", "run the CSI driver of a node's local volumes"),
    "objectfs": ("pybernetes.objectfs.command", "a file system over an object store: format, mount, check volumes"),
    "version": (_COMMANDS + "version", "print the version"),
    "run-node": ("pybernetes.cluster.node.init", ""),
    "renew": (_COMMANDS + "renew", ""),
    "warm": ("pybernetes.cluster.warm", ""),
    "supervise": ("pybernetes.cluster.supervisor", ""),
    "supervise-rootless": ("pybernetes.cluster.rootless.machine", ""),
}


def main(argv: list[str] | None = None) -> int:
    """Runs one command and answers its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    name = "version" if argv[0] == "--version" else argv[0]
    if name not in COMMANDS:
        listed = [each for each, (_, text) in COMMANDS.items() if text]
        hint = closest(name, listed) or f"; `{program()} --help` lists them"
        print(f"pyb: unknown command {name!r}{hint}", file=sys.stderr)
        return 2
    command = import_module(COMMANDS[name][0]).main
    try:
        return int(command(argv[1:]))
    except ClusterError as error:
        print(f"pyb: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `pyb status | head`: the reader has what it wanted; do not let the interpreter complain while flushing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def program() -> str:
    """The name the user typed to get here (`./pyb` or `pyb`), for messages that say what to type next."""
    return os.environ.get("PYB_COMMAND", "pyb")


def closest(word: str, known: Iterable[str]) -> str:
    """`; did you mean WORD?` with the word that is spelled most like it, nothing if none is."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _help() -> str:
    listed = {name: text for name, (_, text) in COMMANDS.items() if text}
    width = max(map(len, listed))
    lines = [f"usage: {program()} COMMAND [flags]", "", "Kubernetes, written in Python.", ""]
    lines += [f"  {name:{width}}  {text}" for name, text in listed.items()]
    return "\n".join([*lines, "", f"`{program()} COMMAND --help` explains one."])
