"""`pyb record FILE`: keeps all that changes in a running cluster, and whose decision it was, for `pyb replay`.

    pyb record incident.gz -- kubectl scale deployment/web --replicas=5   # until its consequences have ended
    pyb record incident.gz --for 10m                                      # or until Ctrl-C

The changes come from the API server (`/debug/state`), who wrote them from the spans of the causal trace. The file has
the cluster's Secrets: it is for its owner alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.cluster import recording, snapshots
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import fault, flags
from pybernetes.cluster.commands.snapshot import PATH
from pybernetes.cluster.commands.trace import seconds
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.recording import Change, Recording

if TYPE_CHECKING:
    from pybernetes.client.client import Client

LOOK = 0.5
"""Seconds between looks."""
QUIET = 3.0
"""Seconds without a decision after which the consequences of a command have ended."""


def main(argv: list[str]) -> int:
    """Records; with a command, its exit code."""
    command: list[str] = []
    if "--" in argv:
        at = argv.index("--")
        argv, command = argv[:at], argv[at + 1 :]
    parser = flags.Parser(
        prog=f"{program()} record", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="compressed if its name ends with .gz")
    parser.add_argument("--for", dest="within", type=seconds, metavar="TIME", help="30s, 10m, 2h (default: to Ctrl-C)")
    parser.add_argument("--quiet-for", type=seconds, default=QUIET, metavar="TIME", help="end of a command's effects")
    fault.add_flags(parser)
    arguments = parser.parse_args(argv)
    if not arguments.file.absolute().parent.is_dir():
        raise ClusterError(f"there is no folder {arguments.file.parent}")
    return asyncio.run(_record(arguments, command))


async def _record(arguments: argparse.Namespace, command: list[str]) -> int:
    from pybernetes.api import errors
    from pybernetes.client.client import Client
    from pybernetes.cluster.tracing import Reader

    settings = fault.settings(arguments)
    async with Client(settings) as client:
        try:
            reader = Reader(client.transport)
            await reader.read(time.time())  # a server that keeps no spans is reported at once
            made = await _begin(client)
            code = await _follow(client, made, arguments, command)
            await reader.read()
        except (errors.PathNotFound, errors.NotFound):
            raise ClusterError(fault.unavailable(settings.server)) from None
        except (errors.APIError, OSError, TimeoutError) as error:
            raise ClusterError(f"{settings.server}: {error}") from None
    recording.attribute(made.changes, reader.spans)
    recording.save(made, arguments.file)
    decisions = recording.counts(made.changes)
    print(f"{arguments.file}: {len(made.changes)} changes in {made.end - made.begin:.0f} s; decisions: {decisions}")
    return code


async def _begin(client: Client) -> Recording:
    state = await _ask(client, PATH)
    now = await _ask(client, f"{PATH}?after={state['revision']}")
    before = snapshots.of_answer(state)
    made = Recording(now["now"], now["now"], before.revision, dict(before.entries))
    _add(made, now)
    return made


async def _follow(client: Client, made: Recording, arguments: argparse.Namespace, command: list[str]) -> int:
    """Read what changes until it is time to end; the exit code of the command."""
    loop = asyncio.get_running_loop()
    ended, code = asyncio.Event(), 0
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    if command:
        environment = {**os.environ}
        if arguments.kubeconfig:
            environment["KUBECONFIG"] = arguments.kubeconfig
        try:
            running = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as error:
            raise ClusterError(f"{command[0]}: {error.strerror}") from error
        code = await running.wait()
    deadline = loop.time() + arguments.within if arguments.within is not None else None
    quiet = loop.time()
    while not ended.is_set() and (deadline is None or loop.time() < deadline):
        if _add(made, await _ask(client, f"{PATH}?after={_reached(made)}")):
            quiet = loop.time()
        if command and deadline is None and loop.time() - quiet >= arguments.quiet_for:
            break
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), LOOK)
    _add(made, await _ask(client, f"{PATH}?after={_reached(made)}"))
    return code


def _reached(made: Recording) -> int:
    return made.changes[-1].revision if made.changes else made.revision


def _add(made: Recording, answer: dict[str, Any]) -> bool:
    """Keep the changes of an answer; whether any of them is more than a sign of life."""
    changes = [Change(answer["now"], each["revision"], each["key"], each["value"]) for each in answer["changes"]]
    made.changes += changes
    made.end = answer["now"]
    return any(not each.key.startswith("/registry/leases/") for each in changes)


async def _ask(client: Client, target: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await client.transport.request("GET", target)).body)
    return found
