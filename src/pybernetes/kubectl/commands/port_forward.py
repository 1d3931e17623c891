"""`kubectl port-forward`: local ports that lead to ports of a pod, over one WebSocket for each connection."""

from __future__ import annotations

import os
import signal
import sys
import threading

from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.pod_lookup import check_timeout, first_pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`port-forward`."""
    flags = context.flags
    usage = f"\nSee '{context.path} -h' for help and examples"
    if len(arguments) < 2:
        raise CLIError("TYPE/NAME and list of ports are required for port-forward" + usage)
    check_timeout(context)
    word, *ports = arguments
    builder = Builder(context).arguments([word] if "/" in word else ["pods", word])
    infos = builder.infos()
    raise_all(builder.errors)
    obj, mapping = infos[0].object, infos[0].mapping
    pod = obj if mapping.kind == "Pod" else first_pod(context, obj, mapping.resource, flags["pod-running-timeout"])
    pairs = [_pair(text, obj if mapping.kind == "Service" else None, pod) for text in ports]
    phase = dig(pod, "status", "phase", default="")
    if phase != "Running":
        raise CLIError(f"unable to forward port because pod is not running. Current status={phase}")
    return serve(context, pod, pairs)


def _number(text: str, ports: list[dict[str, Any]], field: str, where: str) -> int:
    if text.isdigit():
        return int(text)
    for port in ports:
        if port.get("name") == text:
            return int(port[field])
    raise CLIError(f"Pod '{where}' does not have a named port '{text}'")


def _pair(text: str, service: dict[str, Any] | None, pod: dict[str, Any]) -> tuple[int, int]:
    """Local and remote port of `8080`, `8080:80`, `:80`, `http`; a Service's port is translated to its target."""
    local, colon, remote = text.partition(":")
    if ":" in remote or (colon and not remote) or not text:
        raise CLIError(f"invalid port format '{text}'")
    containers = [port for each in dig(pod, "spec", "containers", default=[]) for port in each.get("ports") or ()]
    name = pod["metadata"]["name"]
    wanted = remote or local
    if service is None:
        target = _number(wanted, containers, "containerPort", name)
    else:
        ports = dig(service, "spec", "ports", default=[])
        chosen = next((port for port in ports if str(port["port"]) == wanted or port.get("name") == wanted), None)
        if chosen is None:
            raise CLIError(f"Service {service['metadata']['name']} does not have a service port {wanted}")
        if dig(service, "spec", "clusterIP") == "None":
            target = int(chosen["port"])
        else:
            target = _number(str(chosen.get("targetPort", chosen["port"])), containers, "containerPort", name)
        if not colon:
            local = str(chosen["port"]) if not wanted.isdigit() else local
    try:
        return (int(local) if local and local.isdigit() else 0 if colon else target), target
    except ValueError:
        raise CLIError(
            f"error parsing local port '{local}': strconv.ParseUint: parsing \"{local}\": invalid syntax"
        ) from None


def serve(context: Context, pod: dict[str, Any], pairs: list[tuple[int, int]]) -> int | None:
    """Listens and forwards until the user ends it."""
    import socket

    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata.get('namespace', context.namespace())}/pods/{metadata['name']}/portforward"
    listeners = []
    addresses: list[str] = []
    for word in context.flags.words("address"):
        addresses += ["127.0.0.1", "::1"] if word == "localhost" else [word]
    for local, remote in pairs:
        bound = local
        opened = 0
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((address, bound))
                listener.listen(64)
            except OSError as error:
                listener.close()
                if address == "::1" and opened:
                    continue
                reason = (error.strerror or str(error)).lower()
                network = "tcp6" if ":" in address else "tcp4"
                context.err(
                    f"Unable to listen on port {bound}: Listeners failed to create with the following errors:"
                    f" [unable to create listener: Error listen {network} {address}:{bound}: bind: {reason}]\n"
                )
                raise CLIError(f"unable to listen on any of the requested ports: [{{{local} {remote}}}]") from None
            opened += 1
            bound = listener.getsockname()[1]
            shown = f"[{address}]" if ":" in address else address
            context.out(f"Forwarding from {shown}:{bound} -> {remote}\n")
            listeners.append((listener, remote))
    sys.stdout.flush()
    for listener, remote in listeners:
        threading.Thread(target=_accept, args=(context, listener, path, remote), daemon=True).start()
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass
    return None


def _accept(context: Context, listener: Any, path: str, remote: int) -> None:
    while True:
        connection, _ = listener.accept()
        os.write(1, f"Handling connection for {listener.getsockname()[1]}\n".encode())
        threading.Thread(target=_forward, args=(context, connection, path, remote), daemon=True).start()


def _forward(context: Context, connection: Any, path: str, remote: int) -> None:
    """One connection: bytes both ways, until one side ends."""
    import select

    from pybernetes.kubectl.websocket import WebSocket

    try:
        tunnel = WebSocket(context.client.clone(), path, {"ports": remote}, "v4.channel.k8s.io")
    except (CLIError, StatusError) as error:
        os.write(2, f"error: {error.message}\n".encode())
        connection.close()
        return
    first = {0: True, 1: True}
    try:
        while True:
            ready = [tunnel] if tunnel.pending() else select.select([tunnel, connection], [], [])[0]
            if connection in ready:
                content = connection.recv(65536)
                if not content:
                    return
                tunnel.send(0, content)
            if tunnel in ready:
                message = tunnel.receive()
                if message is None:
                    return
                channel, payload = message
                if first.get(channel):  # the first two bytes of each channel repeat the port
                    first[channel] = False
                    payload = payload[2:]
                if channel == 0 and payload:
                    connection.sendall(payload)
                elif channel == 1 and payload:
                    text = payload.decode("utf-8", "replace").strip()
                    os.write(2, f"error: an error occurred forwarding {remote}: {text}\n".encode())
                    return
    except OSError:
        pass
    finally:
        tunnel.close()
        connection.close()


COMMAND = Command(
    "port-forward TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
    "Forward one or more local ports to a pod",
    run,
    flags=(
        Flag("address", "list", ["localhost"], "Addresses to listen on."),
        Flag("pod-running-timeout", "duration", 60.0, "How long to wait until a pod runs."),
    ),
)
