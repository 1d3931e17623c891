"""`pyb cni add NETWORK NETNS`: connects a network namespace by hand, with the variables of CNI's own `cnitool`.

For trying a configuration, or a plugin, without a pod. A container is identified by its namespace's path, so that
attachments added by one of the two tools are found and deleted by the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from . import config, results
from .cache import DEFAULT
from .errors import CNIError
from .libcni import CNI, RuntimeConf
from .skel import BUILT_IN

COMMANDS = ("add", "check", "del", "status")
_VARIABLES = """variables:
  NETCONFPATH    folder of networks (/etc/cni/net.d)
  CNI_PATH       folders of plugins, with colons between (/opt/cni/bin:/usr/lib/cni)
  CNI_CACHE_DIR  where it is remembered what was added (/var/lib/cni)
  CNI_IFNAME     name of the interface (eth0)
  CNI_ARGS       K=V;K2=V2, for the plugins
  CAP_ARGS       JSON with the data of capabilities, such as {"portMappings": [...]}"""


def main(argv: list[str], environ: Mapping[str, str] = os.environ) -> int:
    """Adds, checks or deletes an attachment, or asks whether one could be added."""
    arguments = _parse(argv)
    try:
        network = config.load(Path(environ.get("NETCONFPATH") or "/etc/cni/net.d"), arguments.network)
        path = (environ.get("CNI_PATH") or "/opt/cni/bin:/usr/lib/cni").split(":")
        cache = Path(environ.get("CNI_CACHE_DIR") or DEFAULT)
        cni = CNI(path, cache, () if arguments.files else BUILT_IN)
        if arguments.command == "status":
            cni.status(network)
            return 0
        runtime = _runtime(arguments.netns, environ)
        if arguments.command == "add":
            print(json.dumps(results.written(cni.add(network, runtime), network.version), indent=4))
        elif arguments.command == "check":
            cni.check(network, runtime)
        else:
            cni.delete(network, runtime)
    except CNIError as error:
        print(f"pyb cni: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="pyb cni",
        description="Connects a network namespace by hand.",
        epilog=_VARIABLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("network", help="name of the network")
    parser.add_argument("netns", nargs="?", default="", help="file of the namespace, /run/netns/NAME")
    parser.add_argument("--files", action="store_true", help="call plugins as files alone, also those that we have")
    arguments = parser.parse_args(argv)
    if arguments.command != "status" and not arguments.netns:
        parser.error("which namespace?")
    return arguments


def _runtime(netns: str, environ: Mapping[str, str]) -> RuntimeConf:
    path = os.path.abspath(netns)
    pairs = []
    for pair in filter(None, environ.get("CNI_ARGS", "").split(";")):
        key, equals, value = pair.partition("=")
        if not (key and equals and value) or "=" in value:
            raise CNIError(f'invalid CNI_ARGS pair "{pair}"')
        pairs.append((key, value))
    try:
        capabilities = json.loads(environ.get("CAP_ARGS") or "{}")
    except ValueError as error:
        raise CNIError(f"CAP_ARGS: {error}") from None
    if not isinstance(capabilities, dict):
        raise CNIError("CAP_ARGS: must be an object")
    container_id = f"cnitool-{hashlib.sha512(path.encode()).digest()[:10].hex()}"
    return RuntimeConf(container_id, path, environ.get("CNI_IFNAME") or "eth0", tuple(pairs), capabilities)
