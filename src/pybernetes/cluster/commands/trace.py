"""`pyb trace -- COMMAND...`: runs a command and shows what it caused, from its requests to the containers.

`pyb trace deployment/web` shows what led to an object, and what came of that; `pyb trace --since 10m` everything of a
time. The spans come from the API server (docs/trace.md); what belongs together is worked out here (`trace.tree`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybernetes.cluster.commands import flags
from pybernetes.cluster.commands.cluster_of import cluster_of
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, locate
from pybernetes.terminal import escaped
from pybernetes.trace import context
from pybernetes.trace.span import Span

if TYPE_CHECKING:
    from pybernetes.cluster.tracing import Reader
    from pybernetes.trace.tree import Node

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def main(argv: list[str]) -> int:
    """Shows a trace; with a command, its exit code."""
    command: list[str] = []
    if "--" in argv:
        at = argv.index("--")
        argv, command = argv[:at], argv[at + 1 :]
    parser = _parser()
    arguments = parser.parse_args(argv)
    given = bool(command) + bool(arguments.what) + (arguments.since is not None)
    if given != 1 and not (arguments.follow and not given):
        parser.error("say one of: -- COMMAND..., KIND/NAME, --since TIME")
    if arguments.what and not all(arguments.what.partition("/")):
        parser.error(f"not an object: {arguments.what!r}; say KIND/NAME")
    return asyncio.run(_main(arguments, command))


def _parser() -> argparse.ArgumentParser:
    parser = flags.parser("trace", "Shows who caused what: from a request to the running containers.")
    parser.usage = "%(prog)s [flags] -- COMMAND... | KIND/NAME | --since 10m"
    parser.set_defaults(name=None)
    parser.add_argument("what", nargs="?", metavar="KIND/NAME", help="what led to this object, and what came of it")
    parser.add_argument("--namespace", "-n", help="its namespace (default: the kubeconfig's)")
    parser.add_argument("--since", type=seconds, metavar="TIME", help="everything of the last 30s, 10m, 2h")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    wait = "how long to wait for a command's consequences (default: 60s)"
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="TIME", help=wait)
    parser.add_argument("--json", action="store_true", help="a list of spans, in the names of OTLP's JSON form")
    parser.add_argument("--outline", action="store_true", help="who caused what, without times")
    parser.add_argument("--html", metavar="FILE", help="write one page with the waterfall, which opens anywhere")
    parser.add_argument("--follow", "-f", action="store_true", help="show each span when it has ended, until Ctrl-C")
    return parser


def seconds(text: str) -> float:
    """A duration of the command line: 30s, 10m, 2h."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    if not number.isdecimal() or len(number) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; 30s, 10m and 2h are")
    return float(int(number) * _UNITS[unit])


async def _main(arguments: argparse.Namespace, command: list[str]) -> int:
    from pybernetes.client.transport import Transport
    from pybernetes.cluster.tracing import Reader, of_object, prefixes_of

    _, settings = cluster_of(arguments)
    transport = Transport(settings)
    reader, code = Reader(transport), 0
    try:
        if command:
            return await _run(reader, arguments, command)
        if arguments.follow:
            return await _follow(reader, arguments.since or 0.0)
        await reader.read(time.time() - arguments.since if arguments.since is not None else 0.0)
        if arguments.what:
            kind, _, name = arguments.what.partition("/")
            namespace = arguments.namespace or settings.namespace or "default"
            trees = of_object(reader.spans, prefixes_of(kind, namespace), name)
            if not trees:
                raise ClusterError(f"no span tells of {arguments.what} (only what was written lately is known)")
        else:
            trees = reader.trees()
        _show(arguments, trees)
    finally:
        await transport.close()
    return code


async def _run(reader: Reader, arguments: argparse.Namespace, command: list[str]) -> int:
    """Run a command as the root of a trace, and wait for what comes of it."""
    await reader.read(time.time())  # a server that keeps no spans is reported before the command is run
    reader.forget()
    root = Span(context.new_trace(), context.new_span(), "", " ".join(command), Path(command[0]).name, time.time_ns())
    environment = {**os.environ, context.ENVIRONMENT: context.format_header(root.trace, root.id)}
    if own := _own_kubeconfig(arguments):
        environment["KUBECONFIG"] = own
    output = sys.stderr if arguments.json else None
    try:
        running = await asyncio.create_subprocess_exec(*command, env=environment, stdout=output)
    except OSError as error:
        raise ClusterError(f"{command[0]}: {error.strerror}") from error
    code = await running.wait()
    root.end = time.time_ns()
    root.error = f"exit code {code}" if code else ""
    reader.add(root)
    left = await reader.wait_until_quiet(root, arguments.timeout)
    if not arguments.json:
        print()
    _show(arguments, reader.trees(lambda span: span is root))
    if left:
        print(f"pyb trace: after {arguments.timeout:g} s: {left}", file=sys.stderr)
    return code


def _own_kubeconfig(arguments: argparse.Namespace) -> str:
    """The kubeconfig of the cluster that is meant by the flags; empty if it is that of the environment."""
    if arguments.kubeconfig or (arguments.name is None and arguments.data_dir is None):
        return str(arguments.kubeconfig or "")
    own = locate(arguments.name or DEFAULT_NAME, arguments.data_dir).kubeconfig
    return str(own) if own.exists() else ""


async def _follow(reader: Reader, since: float) -> int:
    from pybernetes.cluster.tracing import LOOK
    from pybernetes.trace.text import line

    await reader.read(time.time() - since)
    while True:
        for span in sorted(reader.spans, key=lambda each: each.end):
            print(escaped(line(span)))
        sys.stdout.flush()
        reader.forget()
        await asyncio.sleep(LOOK)
        await reader.read()


def _show(arguments: argparse.Namespace, trees: list[Node]) -> None:
    if arguments.html:
        from pybernetes.trace.page import render as page

        Path(arguments.html).write_text(page(trees), encoding="utf-8")
        print(f"{arguments.html} written", file=sys.stderr)
    if arguments.json:
        from pybernetes.trace.otlp import of_trees

        print(json.dumps(of_trees(trees), indent=1))
    elif arguments.outline:
        from pybernetes.trace.text import outline

        print(escaped("\n".join(outline(trees))))
    elif not arguments.html:
        from pybernetes.trace.text import render

        print(escaped("\n".join(render(trees))))
