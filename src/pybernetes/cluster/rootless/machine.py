"""`pyb supervise-rootless` (internal): the supervisor of a cluster whose nodes are in a user namespace.

    outside   waits for the one inside; the proxy by which it reaches other networks (`wayout`)
    inside    a user namespace in which we are root, and a network in which there is nothing but the cluster's bridge:
              the supervisor with all components, as root's has them

Neither outlives the other. The ports where components are asked from outside (the API server by kubectl) are opened
before and handed on: sockets belong to the network in which they were made.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from pybernetes.cluster import supervisor
from pybernetes.cluster.node import syscalls
from pybernetes.cluster.node.network import SERVICES6, Network
from pybernetes.cluster.rootless import namespaces, wayout

NETWORK = Network(0)
"""The network is the cluster's own, so that each can have the first."""


def main(argv: list[str]) -> int:
    """`pyb supervise-rootless COMPONENTS_FILE PID_FILE NOTIFY_FD`"""
    components_file, own_pid_file, notify = argv[0], argv[1], int(argv[2])
    os.set_inheritable(notify, False)
    with open(components_file) as file:
        specs = json.load(file)
    listeners = {each["name"]: made for each in specs if (made := _listeners(each))}
    outside = os.getpid()
    ours, theirs = socket.socketpair()
    inside = os.fork()
    if not inside:
        ours.close()
        descriptors = {name: tuple(each.fileno() for each in made) for name, made in listeners.items()}
        dual = any(SERVICES6 in str(each["argv"]) for each in specs)
        _inside(theirs, outside, lambda: supervisor.run(components_file, own_pid_file, notify, descriptors), dual=dual)
    theirs.close()
    os.close(notify)
    for each in [one for made in listeners.values() for one in made]:
        each.close()
    return _outside(ours, inside)


def _listeners(spec: dict[str, Any]) -> list[socket.socket]:
    """The sockets of a component: the one it needs, and those that are offered to it as far as ports are free."""
    made = [socket.create_server(tuple(spec["listen"]), backlog=1024)] if spec.get("listen") else []
    for address, port in spec.get("offers", ()):
        try:
            made.append(socket.create_server((address, port), backlog=1024))
        except OSError as error:
            print(f"{spec['name']} cannot be reached at {address} port {port}: {error.strerror}", flush=True)
    return made


def _outside(line: socket.socket, inside: int) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(inside, signal.SIGTERM))
    signal.signal(signal.SIGUSR1, lambda *_: os.kill(inside, signal.SIGUSR1))  # the components file has changed
    if line.recv(1):  # it has its namespaces
        namespaces.map_child(inside, namespaces.ranges(os.geteuid()))
        line.send(b"!")
        _, descriptors, _, _ = socket.recv_fds(line, 1, 1)
        if descriptors:
            wayout.serve(socket.socket(fileno=descriptors[0]))
    _, status = os.waitpid(inside, 0)
    print(f"the supervisor ended: {supervisor.describe_exit(status)}", flush=True)
    return 0 if status == 0 else 1


def _inside(line: socket.socket, outside: int, work: Callable[[], int], *, dual: bool) -> NoReturn:
    code = 1
    try:
        syscalls.unshare(syscalls.NEWUSER | syscalls.NEWNET)
        syscalls.signal_at_parents_death(signal.SIGKILL)
        if os.getppid() != outside:
            os._exit(code)  # it died before prctl set the death signal
        line.send(b"!")
        if line.recv(1):
            with _network(dual) as way_out:
                socket.send_fds(line, [b"!"], [way_out.fileno()])
            line.close()
            code = work()
    except BaseException as error:
        print(f"no supervisor in a user namespace: {error!r}", flush=True)
    finally:
        os._exit(code)


def _network(dual: bool) -> socket.socket:
    """Makes the network, by a process of its own because the supervisor shall stay small; where the proxy listens."""
    child = os.fork()
    if not child:
        code = 1
        try:
            from pybernetes.cluster.node import fabric
            from pybernetes.cluster.node.netlink import Netlink

            with Netlink() as here:
                here.up("lo")
            fabric.sysctl("net/ipv4/ip_forward", "1")
            fabric.make(NETWORK, dual=dual)
            code = 0
        except OSError as error:
            print(f"no network in a user namespace: {error}", flush=True)
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError("its network cannot be made")
    return socket.create_server((NETWORK.gateway, wayout.PORT))
