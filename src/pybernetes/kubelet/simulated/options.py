"""The flags of `pyb simulated-nodes`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pybernetes.api import quantity
from pybernetes.api.core.v1 import Taint
from pybernetes.flags import file, words

from ..options import pairs, taints


@dataclass(slots=True)
class Options:
    """The command line, parsed."""

    kubeconfig: str = ""
    nodes: int = 1
    name_prefix: str = "sim-"
    rules: Path | None = None
    node_resources: dict[str, str] = field(default_factory=dict)
    node_labels: dict[str, str] = field(default_factory=dict)
    register_with_taints: list[Taint] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)
    bind_address: str = "127.0.0.1"
    secure_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    kubelet_address: str = "127.0.0.1"
    kubelet_port: int | None = None
    kubelet_client_user: str = ""
    kubelet_tls_cert_file: str = ""
    kubelet_tls_private_key_file: str = ""
    v: int = 0


def parse(argv: Sequence[str]) -> Options:
    """The flags as values; a message and the end of the program if one is wrong."""
    parser = argparse.ArgumentParser(
        prog="pyb simulated-nodes",
        description="Pretends nodes, and pods on them that behave as annotations or a file of rules say.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--kubeconfig", default="", help="of the API server; who it names must be allowed to act as any node")
    add("--nodes", type=_count, default=1, help="how many (default: %(default)s)")
    add("--name-prefix", default="sim-", help="of their names, which end in a number (default: %(default)s)")
    add("--rules", type=file, help="what pods do, for those that say nothing themselves; YAML or JSON")
    add("--node-resources", type=_resources, default={}, metavar="NAME=QUANTITY,...", help="what each node has")
    add("--node-labels", type=pairs, default={}, metavar="KEY=VALUE,...", help="beside the usual ones")
    add("--register-with-taints", type=taints, default=[], metavar="KEY=VALUE:EFFECT,...")
    add("--zones", type=words, default=[], metavar="NAME,...", help="the nodes are in them in turn")
    add("--bind-address", default="127.0.0.1", help="of /healthz and /metrics")
    add("--secure-port", type=int, default=0, help="0 = do not serve")
    add("--tls-cert-file", default="")
    add("--tls-private-key-file", default="")
    add("--client-ca-file", default="", help="who may come with a certificate")
    add("--kubelet-address", default="127.0.0.1", help="of this machine, where the nodes' kubelets are reached")
    add("--kubelet-port", type=int, help="serve logs, exec, metrics of all nodes there and at ports behind; 0 = any")
    add("--kubelet-client-user", default="", help="may ask kubelets for anything: who the API server is for them")
    add("--kubelet-tls-cert-file", default="", help="for the address")
    add("--kubelet-tls-private-key-file", default="")
    add("-v", type=int, default=0)
    return Options(**vars(parser.parse_args(argv)))


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least one")
    return count


def _resources(text: str) -> dict[str, str]:
    found = pairs(text)
    for name, value in found.items():
        try:
            quantity.parse(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    return found
