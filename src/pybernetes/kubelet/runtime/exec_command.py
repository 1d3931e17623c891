"""Runs a command in a container and waits for it: what probes and hooks do."""

from __future__ import annotations

from typing import Any, Protocol

from pybernetes.api.times import format_duration
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError


class CommandRunner(Protocol):
    """The part of a runtime that runs commands (`cri.remote.Runtime`)."""

    async def exec_sync(self, request: Any) -> Any:
        """Run a command in a container to its end."""
        ...


class CommandFailed(Exception):
    """The command ended with another code than 0."""

    def __init__(self, command: list[str], code: int, stdout: bytes, stderr: bytes) -> None:
        super().__init__(f"command '{' '.join(command)}' exited with {code}: {stderr.decode(errors='replace')}")
        self.code = code
        self.output = stdout + stderr


class CommandTimedOut(Exception):
    """The command did not end in time; the runtime has killed it."""

    def __init__(self, command: list[str], seconds: int) -> None:
        text = " ".join(command).replace("\\", "\\\\").replace('"', '\\"')
        super().__init__(f'command timed out: "{text}" timed out after {format_duration(seconds * 10**9)}')


async def run_in_container(runtime: CommandRunner, container_id: str, command: list[str], within: int = 0) -> bytes:
    """The output of the command, first stdout and then stderr; `within` so many seconds, 0 = no limit.

    Raises CommandFailed, CommandTimedOut or (if there was no way to run it) CRIError.
    """
    try:
        answer = await runtime.exec_sync(cri.ExecSyncRequest(container_id=container_id, cmd=command, timeout=within))
    except CRIError as error:
        if error.code == "DeadlineExceeded":
            raise CommandTimedOut(command, within) from error
        raise
    if answer.exit_code:
        raise CommandFailed(command, answer.exit_code, answer.stdout, answer.stderr)
    return bytes(answer.stdout + answer.stderr)
