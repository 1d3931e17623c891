"""`pyb apiserver`: flags in, an API server until SIGTERM. A second SIGTERM ends it at once, as upstream has it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

from pybernetes.api import features
from pybernetes.api.errors import APIError
from pybernetes.store.base import StoreError

from .logs import log_to_stderr
from .options import parse

if TYPE_CHECKING:
    from pybernetes.net.http import Timeouts

    from .server import APIServer


def main(argv: list[str], timeouts: Timeouts | None = None) -> int:
    """Run an API server; the exit code. `timeouts` are upstream's, which has no flags for them, unless given."""
    options = parse(argv)
    if features.INITIALIZERS_NAME in options.enable_admission_plugins and not features.INITIALIZERS:
        os.environ[features.VARIABLE] = features.INITIALIZERS_NAME
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    log_to_stderr(options.v, options.logging_format)
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(options, timeouts))
    except KeyboardInterrupt:
        return 0


async def _serve(options: argparse.Namespace, timeouts: Timeouts | None) -> int:
    from .server import APIServer

    try:
        server = APIServer(options, timeouts)
        await server.start()
    except (StoreError, APIError, OSError, ValueError) as error:
        print(f"pyb apiserver: {error}", file=sys.stderr)
        return 1
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, server)
    # What is alive now stays alive: the collector need not look at it again, and objects come and go as bytes.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    await server.run()
    return 0


def _stop(server: APIServer) -> None:
    if server.stopping:
        os._exit(1)
    server.stop()
