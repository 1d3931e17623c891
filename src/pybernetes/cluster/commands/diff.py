"""`pyb diff REVISION [REVISION]`: what has changed between two revisions, and by whose requests."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from pybernetes.cluster.commands import flags
from pybernetes.cluster.commands.cluster_of import cluster_of
from pybernetes.cluster.commands.why import resource_of
from pybernetes.cluster.errors import ClusterError

if TYPE_CHECKING:
    from pybernetes.client.config import Config
    from pybernetes.cluster.tracing import Reader
    from pybernetes.trace.span import Span

NOISE = ("events", "leases")
"""Resources that change all the time; shown where they are asked for."""


def main(argv: list[str]) -> int:
    """Prints the differences."""
    parser = flags.parser("diff", "Shows what has changed between two revisions, and who changed it.")
    parser.set_defaults(name=None)
    parser.add_argument("first", type=flags.count, help="a resourceVersion")
    parser.add_argument("second", type=flags.count, nargs="?", default=0, help="a later one (default: now)")
    parser.add_argument("--resource", action="append", metavar="RESOURCE", help="only these (default: all but noise)")
    parser.add_argument("--namespace", "-n", help="only this namespace")
    parser.add_argument("--names", action="store_true", help="names of changed objects alone, without their fields")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    arguments = parser.parse_args(argv)
    _, settings = cluster_of(arguments)
    return asyncio.run(_show(arguments, settings))


async def _show(arguments: argparse.Namespace, settings: Config) -> int:
    from pybernetes.client.client import Client
    from pybernetes.client.discovery import discover
    from pybernetes.client.transport import Transport
    from pybernetes.cluster.history import History, changes, difference
    from pybernetes.cluster.tracing import Reader

    transport = Transport(settings)
    try:
        if arguments.resource:
            resources = [await resource_of(settings, each.lower()) for each in arguments.resource]
        else:
            async with Client(settings, program="pyb-diff") as client:
                found = (await discover(client)).with_verbs("list", "watch")
            resources = [each for each in found if each.plural not in NOISE]
        history = History(transport)
        second = arguments.second or await history.now()
        if arguments.first >= second:
            raise ClusterError(f"revision {arguments.first} is not before {second}")
        writers = await _writers(Reader(transport))
        for resource in sorted(resources, key=lambda each: each.fullname):
            if arguments.namespace and not resource.namespaced:
                continue
            before = await history.objects(resource, arguments.first, arguments.namespace or "")
            after = await history.objects(resource, second, arguments.namespace or "")
            for key, one, two in changes(before, after):
                sign = "+" if one is None else "-" if two is None else "~"
                last = int((two or {"metadata": {}})["metadata"].get("resourceVersion") or 0)
                print(f"{sign} {key}{_by(writers.get(last))}")
                if not arguments.names and sign == "~":
                    print("\n".join(f"    {line}" for line in difference(one, two)))
    finally:
        await transport.close()
    return 0


async def _writers(reader: Reader) -> dict[int, Span]:
    """The writer of each revision, where that is recorded."""
    try:
        await reader.read()
    except ClusterError:
        return {}  # nothing is recorded, or it is not ours to read: the differences stand by themselves
    return {revision: span for span in reader.spans for revision in span.revisions}


def _by(span: Span | None) -> str:
    if span is None:
        return ""
    return f"  ({span.name} by {span.attributes.get('user', 'unknown')})"
