"""The context of a command: its flags, its output streams, and on demand the client, the mapper and the namespace."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from pybernetes.kubectl.client import Client
    from pybernetes.kubectl.flags import Flags
    from pybernetes.kubectl.mapper import Mapper
    from pybernetes.kubectl.restconfig import Loader

_VERSION = "v1.36.4"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


def platform() -> str:
    """Operating system and processor in Go's names: `linux/amd64`."""
    system = os.uname()
    return f"{system.sysname.lower()}/{_MACHINES.get(system.machine, system.machine)}"


def _uuid() -> str:
    """A random UUID (version 4); the module `uuid` costs more than the rest of a request."""
    octets = bytearray(os.urandom(16))
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    text = octets.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Context:
    """One run of one command."""

    def __init__(self, flags: Flags, path: str, argv: list[str]) -> None:
        self.flags = flags
        self.path = path
        """The command's name with its parents: `kubectl config view`."""
        self.argv = argv
        self._client: Client | None = None
        self._mapper: Mapper | None = None
        self._loader: Loader | None = None

    # -- streams

    def out(self, text: str) -> None:
        """Writes to stdout."""
        sys.stdout.write(text)

    def err(self, text: str) -> None:
        """Writes to stderr, after what was written to stdout before it."""
        sys.stdout.flush()
        sys.stderr.write(text)

    def flush(self) -> None:
        """Brings what was written to stdout to its reader, before a question or a wait."""
        sys.stdout.flush()

    @property
    def stdin(self) -> IO[bytes]:
        return sys.stdin.buffer

    def terminal(self) -> bool:
        """Whether stdout is a terminal that wants colours."""
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    # -- the server

    @property
    def loader(self) -> Loader:
        if self._loader is None:
            from pybernetes.kubectl.restconfig import Loader

            self._loader = Loader(self.flags)
            self._loader.command = self.path
        return self._loader

    @property
    def client(self) -> Client:
        if self._client is None:
            from pybernetes.kubectl.client import Client
            from pybernetes.kubectl.verbose import Log

            config = self.loader.rest()
            config.stdin_used = any(word in ("-", "-f-", "-f=-", "--filename=-") for word in self.argv)
            log = Log(int(self.flags.get("v") or 0))
            log.loaded(self.loader.config.files)
            self._client = Client(config, log, f"kubectl/{_VERSION} ({platform()}) kubernetes/pybernetes")
            self._client.unlogged = [("Kubectl-Command", self.path), ("Kubectl-Session", _uuid())]
            self._client.warnings.color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        return self._client

    @property
    def mapper(self) -> Mapper:
        if self._mapper is None:
            from pybernetes.kubectl.discovery import Discovery
            from pybernetes.kubectl.mapper import Mapper

            if self.flags.on("match-server-version"):
                self._match_version()
            self._mapper = Mapper(Discovery(self.client, self.cache_dir()))
        return self._mapper

    def _match_version(self) -> None:
        """Refuses a server of another version than the client's. Raises CLIError."""
        from pybernetes.kubectl.errors import CLIError

        found = str((self.client.get("/version") or {}).get("gitVersion", ""))
        if found != _VERSION:
            raise CLIError(f"server version ({found}) differs from client version ({_VERSION})!")

    def cache_dir(self) -> str:
        """Where discovery is cached."""
        from pybernetes.kubectl.kubeconfig import home

        given = self.flags.get("cache-dir") or os.environ.get("KUBECACHEDIR")
        return str(given) if given else os.path.join(home(), ".kube", "cache")

    def namespace(self) -> str:
        """The namespace for requests."""
        return self.loader.namespace()[0]

    def explicit_namespace(self) -> bool:
        """Whether `--namespace` was given."""
        return self.loader.namespace()[1]

    def get(self, kind_path: str, parameters: dict[str, Any] | None = None) -> Any:
        """GET of a path."""
        return self.client.get(kind_path, parameters)

    def warned(self) -> int:
        """How many warnings the server sent."""
        return len(self._client.warnings.seen) if self._client is not None else 0
