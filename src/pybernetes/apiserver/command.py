"""`pyb apiserver`: flags in, an API server until SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys

from pybernetes.store.base import StoreError

from .options import parse


def main(argv: list[str]) -> int:
    """Run an API server; the exit code."""
    options = parse(argv)
    level = logging.DEBUG if options.v >= 4 else logging.INFO if options.v >= 2 else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s", stream=sys.stderr)
    try:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(options))
    except KeyboardInterrupt:
        return 0


async def _serve(options: object) -> int:
    from .server import APIServer

    try:
        server = APIServer(options)  # type: ignore[arg-type]
        await server.start()
    except (StoreError, OSError, ValueError) as error:
        print(f"pyb apiserver: {error}", file=sys.stderr)
        return 1
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    # What is alive now stays alive: the collector need not look at it again, and objects come and go as bytes.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    await server.run()
    return 0
