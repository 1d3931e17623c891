"""`pyb record FILE`: keeps all that changes in a running cluster, and whose decision it was, for `pyb replay`.

    pyb record incident.gz -- kubectl scale deployment/web --replicas=5   # until its consequences have ended
    pyb record incident.gz --for 10m                                      # or until Ctrl-C

The changes come from the API server (`/debug/state`), who wrote them from the spans of the causal trace. The file has
the cluster's Secrets: it is for its owner alone. Both are read while the command runs, because the API server compacts
its history and drops old spans. When the API server stays away, the file has what was read until then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
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
    from pybernetes.cluster.tracing import Reader
    from pybernetes.trace.span import Span

LOOK = 0.5
"""Seconds between looks."""
QUIET = 3.0
"""Seconds without a change, except of leases, after which the consequences of a command have ended."""
TIMEOUT = 120.0
"""Seconds after the command's end: a controller that writes all the time does not keep the recording going."""
PATIENCE = 60.0
"""Seconds of failed polls in a row, for a restart of the API server, until the recording ends."""
OVERLAP = 60.0
"""Seconds of spans that are read again after a failed poll."""


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
    within = "30s, 10m, 2h, counted from the command's end if there is a command (default without one: to Ctrl-C)"
    parser.add_argument("--for", dest="within", type=seconds, metavar="TIME", help=within)
    quiet = f"a command's effects have ended after this time without changes (default: {QUIET:.0f}s)"
    parser.add_argument("--quiet-for", type=seconds, default=QUIET, metavar="TIME", help=quiet)
    timeout = f"how long to wait for them after the command's end (default: {TIMEOUT:.0f}s)"
    parser.add_argument("--timeout", type=seconds, default=TIMEOUT, metavar="TIME", help=timeout)
    fault.add_flags(parser)
    arguments = parser.parse_args(argv)
    if not arguments.file.absolute().parent.is_dir():
        raise ClusterError(f"there is no folder {arguments.file.parent}")
    return asyncio.run(_record(arguments, command))


async def _record(arguments: argparse.Namespace, command: list[str]) -> int:
    from pybernetes.api import errors
    from pybernetes.client.client import Client

    settings = fault.settings(arguments)
    async with Client(settings) as client:
        try:
            follower = await begin(client)
        except (errors.PathNotFound, errors.NotFound):
            raise ClusterError(fault.unavailable(settings.server)) from None
        except (errors.APIError, OSError, TimeoutError) as error:
            raise ClusterError(f"{settings.server}: {error}") from None
        code = await follow(follower, arguments, command)
    made = follower.made
    recording.attribute(made.changes, follower.spans)
    recording.save(made, arguments.file)
    decisions = recording.counts(made.changes)
    print(f"{arguments.file}: {len(made.changes)} changes in {made.end - made.begin:.0f} s; decisions: {decisions}")
    if missing := follower.missing():
        print(missing, file=sys.stderr)
    if follower.problem:
        print(f"The recording ends before its time: {follower.problem}", file=sys.stderr)
    return code if command else int(bool(follower.problem))


async def begin(client: Client) -> Follower:
    """Read the state at the beginning. APIError, ClusterError, OSError, TimeoutError."""
    from pybernetes.cluster.tracing import Reader

    reader = Reader(client.transport)
    await reader.read(time.time())  # a server that keeps no spans is reported at once
    state = await _ask(client, PATH)
    now = await _ask(client, f"{PATH}?after={state['revision']}")
    before = snapshots.of_answer(state)
    made = Recording(now["now"], now["now"], before.revision, dict(before.entries))
    return Follower(client, reader, made, now, state["leftOut"])


class Follower:
    """Reads the changes of the store and the spans, a poll at a time."""

    def __init__(self, client: Client, reader: Reader, made: Recording, first: dict[str, Any], objects: int) -> None:
        self._client = client
        self._reader = reader
        self._since = made.begin
        """The server's time of the last poll that succeeded, in seconds since 1970."""
        self._failing: float | None = None
        """The time of the first of the polls that failed in a row."""
        self._reached = made.revision
        self._objects_left_out = objects
        self._changes_left_out = 0
        self.made = made
        self.spans: list[Span] = []
        """Those that wrote something."""
        self.problem = ""
        """Why the recording cannot go on."""
        self._add(first)

    async def poll(self) -> bool:
        """Read once; whether anything but leases has changed. Sets `problem` when later polls would fail too."""
        from pybernetes.api import errors

        began = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                active = self._add(await _ask(self._client, f"{PATH}?after={self._reached}"))
                await self._read_spans()
        except errors.ResourceExpired:
            self.problem = f"the API server no longer has the changes after revision {self._reached}"
        except (errors.NotFound, errors.PathNotFound):
            self.problem = "the API server no longer serves /debug/state"
        except (errors.APIError, ClusterError, OSError, TimeoutError, ValueError, KeyError) as error:
            self._failing = began if self._failing is None else self._failing
            if time.monotonic() - self._failing >= PATIENCE:
                self.problem = f"no answer from the API server for {PATIENCE:.0f} s: {error or type(error).__name__}"
        else:
            self._failing, self._since = None, self.made.end
            return active
        return False

    async def finish(self, stopped: asyncio.Event) -> None:
        """Read what came last. After a failed poll it polls again, unless the user has stopped the recording."""
        while not self.problem:
            await self.poll()
            if not self.failing:
                break
            if stopped.is_set():
                self.problem = self.problem or "the API server did not answer the last poll"
                break
            await asyncio.sleep(LOOK)

    @property
    def failing(self) -> bool:
        """Whether the last poll failed."""
        return self._failing is not None

    def missing(self) -> str:
        """A sentence about what the recording leaves out; empty if nothing is left out."""
        if not self._objects_left_out and not self._changes_left_out:
            return ""
        return (
            f"Not in the recording: {self._objects_left_out} objects and {self._changes_left_out} changes "
            "whose values are not JSON (encryption at rest)"
        )

    def _add(self, answer: dict[str, Any]) -> bool:
        changes = [Change(answer["now"], each["revision"], each["key"], each["value"]) for each in answer["changes"]]
        self.made.changes += changes
        self.made.end = answer["now"]
        self._reached = max(self._reached, answer["revision"])
        self._changes_left_out += answer["leftOut"]
        return any(not each.key.startswith("/registry/leases/") for each in changes)

    async def _read_spans(self) -> None:
        """Keep the spans that wrote something: the server drops the oldest ones of a long recording."""
        from pybernetes.cluster.tracing import Reader

        if self._failing is not None:  # a server that was restarted numbers its batches from 1
            self._reader = Reader(self._client.transport)
            await self._reader.read(self._since - OVERLAP)
        else:
            await self._reader.read()
        self.spans += [each for each in self._reader.spans if each.revisions]
        self._reader.forget()


async def follow(follower: Follower, arguments: argparse.Namespace, command: list[str]) -> int:
    """Run the command and poll until it is time to end or the recording cannot go on; the command's exit code."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    running = await _start(arguments, command) if command else None
    deadline: float | None = None
    if running is None:
        if arguments.within is not None:
            deadline = loop.time() + arguments.within
        waiting = asyncio.ensure_future(stopped.wait())
        while not waiting.done() and not follower.problem and (deadline is None or loop.time() < deadline):
            await follower.poll()
            await asyncio.wait([waiting], timeout=LOOK)
        waiting.cancel()
        await follower.finish(stopped)
        return 0
    command_ended = asyncio.ensure_future(running.wait())
    while not command_ended.done() and not follower.problem:
        await follower.poll()
        await asyncio.wait([command_ended], timeout=LOOK)
    code = await command_ended
    quiet = loop.time()
    deadline = quiet + (arguments.timeout if arguments.within is None else arguments.within)
    while not stopped.is_set() and not follower.problem and loop.time() < deadline:
        if await follower.poll() or follower.failing:
            quiet = loop.time()
        if arguments.within is None and loop.time() - quiet >= arguments.quiet_for:
            break
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), LOOK)
    await follower.finish(stopped)
    return code


async def _start(arguments: argparse.Namespace, command: list[str]) -> asyncio.subprocess.Process:
    environment = {**os.environ}
    if arguments.kubeconfig:
        environment["KUBECONFIG"] = arguments.kubeconfig
    try:
        return await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise ClusterError(f"{command[0]}: {error.strerror}") from error


async def _ask(client: Client, target: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await client.transport.request("GET", target)).body)
    return found
