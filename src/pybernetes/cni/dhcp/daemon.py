"""`pyb cni dhcp-daemon`: obtains leases for the plugin `dhcp`, renews them, and gives them back.

One JSON object a line over a unix socket: `{"command": "ADD", "client": ..., "netns": ..., "ifname": ...}` is answered
with `{"result": ...}`, or `{"error": {"code": ..., "msg": ...}}`. Each lease has a file beside the socket, so that a
daemon that is started again goes on with it; one whose namespace is gone is forgotten.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pybernetes.cni.errors import DECODING_FAILURE, CNIError
from pybernetes.component import offload
from pybernetes.component.tasks import Tasks

from . import message
from .lease import SERVER_PORT, Lease
from .message import Answer

SOCKET = "/run/cni/dhcp.sock"
STATE = "/run/cni/dhcp"
_LONGEST_REQUEST = 1 << 16
_REQUEST_WITHIN = 10.0
log = logging.getLogger(__name__)


def main(argv: list[str]) -> int:
    """Serve until a signal; the exit code."""
    parser = argparse.ArgumentParser(prog="pyb cni dhcp-daemon", description="Keeps DHCP leases of pods.")
    parser.add_argument("--socket", default=SOCKET, help=f"where the plugin asks ({SOCKET})")
    parser.add_argument("--state-dir", default=STATE, help=f"folder with a file for each lease ({STATE})")
    options = parser.parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        asyncio.run(_run(options.socket, Path(options.state_dir)))
    except OSError as error:
        print(f"pyb cni dhcp-daemon: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(path: str, state: Path) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    daemon = Daemon(state)
    await daemon.start(path)
    try:
        await stop.wait()
    finally:
        await daemon.stop()


class Daemon:
    """All leases of a node. They stay when it stops."""

    def __init__(self, state: Path, *, server_port: int = SERVER_PORT) -> None:
        self._state, self._server_port = state, server_port
        self._leases: dict[str, Lease] = {}
        self._upkeep: dict[str, asyncio.Task[None]] = {}
        self._tasks = Tasks("dhcp")
        self._server: asyncio.Server | None = None

    async def start(self, path: str) -> None:
        """Go on with the leases there are, and serve."""
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in sorted(self._state.glob("*.json")):
            self._resume(file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._server = await asyncio.start_unix_server(self._serve, path, limit=_LONGEST_REQUEST)
        os.chmod(path, 0o600)

    async def stop(self) -> None:
        """Serve no more; addresses are not given back."""
        if self._server:
            self._server.close()
        await self._tasks.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_WITHIN):
                line = await reader.readline()
            try:
                answer: dict[str, Any] = {"result": await self._answer(json.loads(line))}
            except CNIError as error:
                answer = {"error": {"code": error.code, "msg": str(error)}}
            except offload.Overdue as error:
                answer = {"error": {"code": 11, "msg": str(error)}}
            except (ValueError, KeyError, TypeError, OSError) as error:
                answer = {"error": {"code": DECODING_FAILURE, "msg": f"{type(error).__name__}: {error}"}}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (OSError, TimeoutError, ValueError) as error:
            log.debug("a request was not answered: %s", error)
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        client, netns, ifname = (str(request[key]) for key in ("client", "netns", "ifname"))
        match request["command"]:
            case "ADD":
                await self._end(client)
                lease = Lease(client, netns, ifname, server_port=self._server_port)
                answer = await lease.obtain()
                self._file(client).write_text(
                    json.dumps({"client": client, "netns": netns, "ifname": ifname, "answer": answer.data.hex()})
                )
                self._keep(lease)
                return result(answer)
            case "CHECK":
                if client not in self._leases:
                    raise CNIError(f"there is no lease of {client}")
                return {}
            case "DEL":
                lease_or_none = self._leases.get(client)
                await self._end(client)
                if lease_or_none is not None:
                    await lease_or_none.release()
                return {}
            case other:
                raise CNIError(f"unknown command {other!r}", DECODING_FAILURE)

    def _resume(self, file: Path) -> None:
        try:
            kept = json.loads(file.read_bytes())
            lease = Lease(kept["client"], kept["netns"], kept["ifname"], server_port=self._server_port)
            lease.answer = message.read(bytes.fromhex(kept["answer"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("%s is no lease: %s", file, error)
            return
        if os.path.exists(lease.netns):
            self._keep(lease, at_once=True)
        else:
            file.unlink(missing_ok=True)

    def _keep(self, lease: Lease, *, at_once: bool = False) -> None:
        run: Callable[[], Any] = lambda: lease.maintain(at_once=at_once)  # noqa: E731
        self._leases[lease.client_id] = lease
        self._upkeep[lease.client_id] = self._tasks.start("lease", run)

    async def _end(self, client: str) -> None:
        self._leases.pop(client, None)
        task = self._upkeep.pop(client, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._file(client).unlink(missing_ok=True)

    def _file(self, client: str) -> Path:
        return self._state / f"{hashlib.sha256(client.encode()).hexdigest()[:32]}.json"


def result(answer: Answer) -> dict[str, Any]:
    """A server's answer as a result of CNI."""
    routers = answer.addresses(message.ROUTER)
    ip = {"address": str(answer.interface)} | ({"gateway": str(routers[0])} if routers else {})
    found: dict[str, Any] = {
        "ips": [ip],
        "routes": [{"dst": str(dst), "gw": str(gateway)} for dst, gateway in answer.routes()],
    }
    dns: dict[str, Any] = {}
    if servers := answer.addresses(message.DNS_SERVER):
        dns["nameservers"] = [str(each) for each in servers]
    if domain := answer.options.get(message.DOMAIN, b"").decode("ascii", "replace").strip("\0 "):
        dns["domain"] = domain
    return found | ({"dns": dns} if dns else {})
