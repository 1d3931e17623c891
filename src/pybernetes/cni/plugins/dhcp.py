"""Gives a pod the address that a DHCP server of its network chooses (`ipam`).

A lease must be renewed while the pod lives, and a plugin ends at once: `pyb cni dhcp-daemon` keeps it, on each node.
The pod's link must be there before, as it is for `macvlan`, `bridge` and `vlan`.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from ..errors import DECODING_FAILURE, TRY_AGAIN_LATER, UNSUPPORTED_FIELD, CNIError
from ..fields import field
from ..results import Result
from ..skel import Call, Plugin

SOCKET = "/run/cni/dhcp.sock"
_WITHIN = 60.0
"""Seconds: longer than the daemon waits for servers."""
_LONGEST = 1 << 20


def add(call: Call) -> Result:
    """Asks the daemon for a lease."""
    found: Result = _ask(call)
    if not found.get("ips"):
        raise CNIError("the DHCP daemon answered no address")
    return found


def delete(call: Call) -> None:
    """Gives the lease back. A daemon that does not run has none."""
    try:
        _ask(call)
    except CNIError as error:
        if error.code != TRY_AGAIN_LATER:
            raise


def check(call: Call) -> None:
    """Refuses if the daemon has no lease."""
    _ask(call)


def status(call: Call) -> None:
    """Refuses if no daemon runs."""
    _connect(_socket_path(call)).close()


def _socket_path(call: Call) -> str:
    ipam = field(call.config, "ipam", {})
    for key in ("provide", "request"):
        if ipam.get(key):
            raise CNIError(f"ipam.{key} is not supported", UNSUPPORTED_FIELD)
    return field(ipam, "daemonSocketPath", "") or SOCKET


def _ask(call: Call) -> dict[str, Any]:
    request = {
        "command": call.command,
        "client": f"{call.container_id}/{call.network}/{call.ifname}",
        "netns": call.netns,
        "ifname": call.ifname,
    }
    with _connect(_socket_path(call)) as sock:
        try:
            sock.sendall(json.dumps(request).encode() + b"\n")
            received = b""
            while not received.endswith(b"\n") and len(received) < _LONGEST and (piece := sock.recv(1 << 16)):
                received += piece
            answer = json.loads(received)
        except TimeoutError:
            raise CNIError("the DHCP daemon does not answer", TRY_AGAIN_LATER) from None
        except (OSError, ValueError) as error:
            raise CNIError(f"the DHCP daemon's answer cannot be read: {error}", DECODING_FAILURE) from None
    problem = field(answer, "error", {})
    if problem:
        raise CNIError(field(problem, "msg", ""), field(problem, "code", 0))
    return field(answer, "result", {})


def _connect(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_WITHIN)
    try:
        sock.connect(path)
    except OSError as error:
        sock.close()
        problem = f"the DHCP daemon (pyb cni dhcp-daemon) cannot be reached at {path}: {error.strerror}"
        raise CNIError(problem, TRY_AGAIN_LATER) from None
    return sock


PLUGIN = Plugin("dhcp", add, delete, check, status)
