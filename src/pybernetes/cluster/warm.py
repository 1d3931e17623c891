"""`pyb warm` (internal): imports what components have in common, then becomes the command that it reads from stdin.

`up` starts it before anything else, and makes certificates while it imports; the command is `supervise`, whose
components are forks of it (`forking.py`). So 100 ms of imports are paid once instead of six times, and their pages are
in memory once as long as they are not written to.

What most of the components need is in MODULES: a module more costs all of them memory and the first one time. None of
them may start a thread or open a descriptor when it is imported.
"""

from __future__ import annotations

import gc
import json
import sys
from importlib import import_module

from pybernetes.cluster import forking

MODULES = (
    "argparse",
    "typing_extensions",
    "uvloop",
    "pybernetes.flags",
    "pybernetes.api.apps.v1",
    "pybernetes.api.authentication.v1",
    "pybernetes.api.authorization.v1",
    "pybernetes.api.core.v1",
    "pybernetes.api.policy.v1",
    "pybernetes.api.resource.v1",
    "pybernetes.api.storage.v1",
    "pybernetes.api.strict",
    "pybernetes.client.component",
    "pybernetes.client.events",
    "pybernetes.client.informers",
    "pybernetes.net.http",
    "pybernetes.net.tls",
)


def main(_: list[str]) -> int:
    """Reads a command, as JSON, until the end of stdin; none is a start that was given up."""
    load()
    words = json.loads(sys.stdin.read() or "[]")
    if not words:
        return 0
    forking.be_called([*forking.PYTHON, *words])
    return forking.run(words)


def load() -> None:
    """Imports what is common, and keeps the collector away from it: looking at a page would copy it for each fork."""
    gc.disable()
    for name in MODULES:
        import_module(name)
    _compile()
    gc.freeze()
    gc.enable()


def _compile() -> None:
    """Decoders that nearly all need: to make one takes milliseconds."""
    from pybernetes.api.core.v1 import Node, Pod
    from pybernetes.client import codec

    for kind in (Node, Pod):
        codec.decoder(kind)
