"""The process that runs seeds: a simulated cluster is started once, and forked for each seed.

`python -m pybernetes.simulation.process FD PKI FOLDER`. The first message on the socket names the scenario and the
cluster's options; each further one, with a socket for the result, is a seed and its plan.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pybernetes.simulation import determinism
from pybernetes.testing import virtual_time


def main() -> int:
    """Serve until the socket is closed."""
    determinism.without_chance(["-P", "-m", "pybernetes.simulation.process", *sys.argv[1:]])
    determinism.install()
    virtual_time.install(stands_still=True)
    import socket

    channel = socket.socket(fileno=int(sys.argv[1]))
    return _serve(channel, sys.argv[2], sys.argv[3])


def _serve(channel: object, pki: str, folder: str) -> int:
    import asyncio
    import gc
    import signal
    import socket
    from pathlib import Path

    import msgspec

    from pybernetes.cluster import warm
    from pybernetes.testing.channel import receive, send

    assert isinstance(channel, socket.socket)
    warm.load()
    from pybernetes.simulation.faults import Plan
    from pybernetes.simulation.world import Simulation
    from pybernetes.testing.control_plane import ControlPlane
    from pybernetes.testing.loop import ClusterLoop
    from pybernetes.testing.options import parse

    message, _ = receive(channel)
    if message is None:
        return 0
    try:
        scenario = _scenario(message["file"], message["name"], message["path"])
        loop = ClusterLoop()
        loop.autojump = True
        asyncio.set_event_loop(loop)
        control_plane = ControlPlane(parse(message["options"]), Path(pki), Path(folder))
        loop.run_until_complete(control_plane.start())
    except BaseException as error:
        send(channel, {"error": str(error) or type(error).__name__})
        return 1
    send(channel, {"ready": True})
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors = receive(channel)
        if message is None:
            return 0
        if os.fork() == 0:
            channel.close()
            result = socket.socket(fileno=descriptors[0])
            loop.forked()
            asyncio._set_running_loop(None)
            determinism.seed(message["seed"])
            plan = msgspec.convert(message["plan"], Plan)

            async def play(seed: int = message["seed"], plan: Plan = plan) -> dict[str, object]:
                return await Simulation(control_plane, seed, plan).run(scenario)

            try:
                outcome = loop.run_until_complete(play())
            except BaseException as error:
                outcome = {"error": f"{type(error).__name__}: {error}", "hash": "", "writes": 0, "time": 0, "shown": []}
            send(result, outcome)
            os._exit(0)
        for each in descriptors:
            os.close(each)


def _scenario(file: str, name: str, path: list[str]) -> Any:
    """The scenario's function, from its file."""
    import importlib.util

    sys.path[:] = path
    spec = importlib.util.spec_from_file_location("pybernetes_scenario", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pybernetes_scenario"] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return getattr(found, "scenario", found)


if __name__ == "__main__":
    sys.exit(main())
