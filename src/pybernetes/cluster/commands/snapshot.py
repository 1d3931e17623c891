"""`pyb snapshot save FILE`, `pyb snapshot restore FILE`: all that a running cluster has stored, as a file and back.

Works with every store. While a snapshot is restored, all requests for resources are held back, so that controllers see
the change as a whole; then they go on from the new state. The file has the Secrets: it is for its owner alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.cluster import snapshots
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import fault, flags
from pybernetes.cluster.errors import ClusterError

if TYPE_CHECKING:
    from pybernetes.client.client import Client

PATH = "/debug/state"
HOLD = {"action": "hold", "name": "pyb-snapshot-restore"}


def main(argv: list[str]) -> int:
    """Saves or restores."""
    parser = flags.Parser(
        prog=f"{program()} snapshot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="what", required=True, parser_class=flags.Parser
    )
    for name, text in (("save", "write a file"), ("restore", "make the cluster what it was")):
        each = commands.add_parser(name, help=text)
        each.add_argument("file", type=Path, help="compressed if its name ends with .gz")
        fault.add_flags(each)
    arguments = parser.parse_args(argv)
    try:
        wanted = snapshots.load(arguments.file) if arguments.what == "restore" else None
        return asyncio.run(_run(arguments, wanted))
    except (snapshots.SnapshotError, OSError) as error:
        raise ClusterError(str(error)) from None


async def _run(arguments: argparse.Namespace, wanted: snapshots.Snapshot | None) -> int:
    from pybernetes.api import errors
    from pybernetes.client.client import Client

    settings = fault.settings(arguments)
    async with Client(settings) as client:
        try:
            now = snapshots.of_answer(await _ask(client, "GET", PATH))
            if wanted is None:
                snapshots.save(now, arguments.file)
                print(f"{arguments.file}: {len(now.entries)} objects as of revision {now.revision}")
                return 0
            if now.cluster != wanted.cluster:
                print("The snapshot is of another cluster: nodes, leases and certificates stay as they are.")
            count = await _restore(client, wanted)
        except errors.PathNotFound:
            raise ClusterError(fault.unavailable(settings.server)) from None
        except errors.APIError as error:
            raise ClusterError(f"{settings.server}: {error}") from None
    print(f"{count} objects changed; the cluster is as of revision {wanted.revision} of the snapshot")
    return 0


async def _restore(client: Client, wanted: snapshots.Snapshot) -> int:
    from pybernetes.api import errors

    with contextlib.suppress(errors.NotFound):
        await _ask(client, "DELETE", f"{fault.PATH}?name={HOLD['name']}")  # of a restore that was broken off
    await _ask(client, "POST", fault.PATH, json.dumps(HOLD).encode())
    try:
        count = 0
        for batch in snapshots.changes(snapshots.of_answer(await _ask(client, "GET", PATH)), wanted):
            await _ask(client, "POST", PATH, batch.body())
            count += len(batch.put) + len(batch.delete)
        return count
    finally:
        await _ask(client, "DELETE", f"{fault.PATH}?name={HOLD['name']}")


async def _ask(client: Client, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await client.transport.request(method, path, body=body)).body)
    return found
