"""`pyb objectfs serve DESCRIPTOR`: the server behind `mount`, started by it; the options come through the socket."""

from __future__ import annotations

import argparse
import faulthandler
import logging
import signal
import socket

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.fuse.holder import Holder, receive
from pybernetes.objectfs.mount_options import MountOptions


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("descriptor", type=int)


def run(arguments: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # For operators: SIGUSR1 writes the stacks of all threads to the log.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    connection = socket.socket(fileno=arguments.descriptor)
    connection.set_inheritable(False)
    first = receive(connection)
    if first is None:
        raise ObjectFSError("`serve` is started by `mount`")
    options = MountOptions.from_json(first[0]["options"])
    own = Holder(connection)
    from pybernetes.objectfs.serving import serve

    holder = Holder.at(first[0]["holder"], first[0]["name"]) if first[0].get("holder") else own
    try:
        serve(options, holder, lambda: own.say("ready"))
    except (ObjectFSError, OSError) as error:
        own.say("failed", reason=str(error))
        raise
    own.say("ended")
    return 0
