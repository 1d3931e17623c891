"""`kubectl proxy`: a local HTTP server that adds the user's credentials and passes requests on to the API server."""

from __future__ import annotations

import os
import socket
import sys

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`proxy`."""
    import socketserver

    from pybernetes.kubectl.proxy_handler import handler

    flags = context.flags
    if arguments:
        raise CLIError(f"unexpected arguments: [{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    if flags.changed("port") and flags.text("unix-socket"):
        raise CLIError("cannot set --unix-socket and --port at the same time")
    if flags.text("www") and not os.path.isdir(flags.text("www")):
        context.err(f"Warning: Failed to stat static file directory {flags.text('www')}\n")
    if not 0 <= flags.number("port") < 65536:
        raise CLIError(f"listen tcp: address {flags.number('port')}: invalid port")
    answering = handler(context)
    context.client.headers()
    try:
        if flags.text("unix-socket"):

            class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
                daemon_threads = True

            server: Any = UnixServer(flags.text("unix-socket"), answering)
            shown = flags.text("unix-socket")
        else:

            class TCPServer(socketserver.ThreadingTCPServer):
                daemon_threads = True
                allow_reuse_address = True

            server = TCPServer((flags.text("address"), flags.number("port")), answering)
            shown = "{}:{}".format(*server.server_address[:2])
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if flags.text("unix-socket"):
            raise CLIError(f"listen unix {flags.text('unix-socket')}: bind: {reason}") from None
        if isinstance(error, socket.gaierror):
            raise CLIError(f"listen tcp: lookup {flags.text('address')}: no such host") from None
        where = f"{flags.text('address')}:{flags.number('port')}"
        raise CLIError(f"listen tcp {where}: bind: {reason}") from None
    context.out(f"Starting to serve on {shown}\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        if flags.text("unix-socket") and os.path.exists(flags.text("unix-socket")):
            os.unlink(flags.text("unix-socket"))
    return None


COMMAND = Command(
    "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix]",
    "Run a proxy to the Kubernetes API server",
    run,
    flags=(
        Flag("accept-hosts", default=r"^localhost$,^127\.0\.0\.1$,^\[::1\]$", help="Hosts that are served."),
        Flag("accept-paths", default="^.*", help="Paths that are served."),
        Flag("address", default="127.0.0.1", help="Address to listen on."),
        Flag("api-prefix", default="/", help="Prefix of the API's paths."),
        Flag("append-server-path", "bool", help="Put the server's path before each path."),
        Flag("disable-filter", "bool", help="Serve everything. Insecure."),
        Flag("keepalive", "duration", help="Period of TCP keepalives of connections to the server; 0 sends none."),
        Flag("port", "int", 8001, "Port to listen on; 0 takes any.", short="p"),
        Flag("reject-methods", default="^$", help="Methods that are refused."),
        Flag("reject-paths", default="^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach", help="Paths that are refused."),
        Flag("unix-socket", short="u", help="Socket file to listen on."),
        Flag("www", short="w", help="Folder with static files."),
        Flag("www-prefix", default="/static/", short="P", help="Prefix of static files."),
    ),
)
