"""Connects the streaming server to this runtime's containers, commands and networks."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from .commands import Begun, Commands
from .containers import Containers
from .launching import LauncherError, Launching
from .network import Network
from .sandboxes import Sandboxes
from .streaming import Attachment


class Streams:
    """Fulfils `streaming.Containers`."""

    def __init__(
        self, launching: Launching, sandboxes: Sandboxes, containers: Containers, commands: Commands, network: Network
    ) -> None:
        self._launching = launching
        self._sandboxes = sandboxes
        self._containers = containers
        self._commands = commands
        self._network = network

    def check_running(self, container_id: str) -> None:
        """Raises CRIError unless the container is there and runs."""
        container = self._containers.get(container_id)
        if not container.running:
            state = "CONTAINER_EXITED" if container.finished_at else "CONTAINER_CREATED"
            raise CRIError("Unknown", f"container is in {state} state")

    def network(self, sandbox_id: str) -> str:
        """The file of a ready sandbox's network namespace; empty = the node's."""
        sandbox = self._sandboxes.get(sandbox_id)
        if not sandbox.ready:
            raise CRIError("Unknown", f'sandbox container "{sandbox_id}" is not running')
        of_node = sandbox.config.linux.security_context.namespace_options.network == cri.NODE
        if of_node or self._sandboxes.plain_address:
            return ""
        return str(self._network.path(sandbox_id))

    async def execute(self, container_id: str, command: Sequence[str], streams: Sequence[int], tty: bool) -> Begun:
        """Runs a command: in a terminal, or with three descriptors as its streams."""
        self.check_running(container_id)
        return await self._commands.begin(container_id, command, streams, tty)

    async def attach(self, container_id: str, stdout: int, stderr: int) -> Attachment:
        """Copies a container's output from now on."""
        self.check_running(container_id)
        copies = {name: each for name, each in (("stdout", stdout), ("stderr", stderr)) if each >= 0}
        try:
            stdin, terminal = await self._launching.attach(container_id, copies)
        except LauncherError as error:
            raise CRIError("Unknown", f"failed to attach container: {error}") from None
        return Attachment(stdin, terminal, self._containers.get(container_id).config.stdin_once)

    async def close_stdin(self, container_id: str) -> None:
        """The container's first process reads the end of its stdin."""
        try:
            await self._launching.close_stdin(container_id)
        except LauncherError as error:
            raise CRIError("Unknown", str(error)) from None
