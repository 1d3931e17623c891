"""`pyb console`: a local server for the page, and the browser opened with a one-time key.

The user is the one of the kubeconfig (or of the cluster that --name names): the page can do what this user may do.
"""

from __future__ import annotations

import sys

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context

ADDRESS = "127.0.0.1"


def run(context: Context, arguments: list[str]) -> int | None:
    """Serves until Ctrl-C."""
    import socketserver
    import time

    from pybernetes.console.handler import handler
    from pybernetes.console.sessions import Sessions

    flags = context.flags
    if arguments:
        raise CLIError(f"unexpected arguments: {' '.join(arguments)}")
    _choose_cluster(context)
    context.client.headers()  # credentials that cannot be had end the command here
    context.client.get("/version")
    sessions = Sessions()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 64

    try:
        server = Server((ADDRESS, flags.number("port")), handler(context, sessions))
    except (OSError, OverflowError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise CLIError(f"unable to listen on {ADDRESS}:{flags.number('port')}: {what.lower()}") from None
    with server:
        url = f"http://{ADDRESS}:{server.server_address[1]}/#key={sessions.new_key(time.monotonic())}"
        context.out(f"The console of {context.client.config.server} is at {url}\n")
        context.out("This address is valid once and for five minutes. Ctrl-C ends the console.\n")
        sys.stdout.flush()
        if not flags.on("no-browser"):
            import webbrowser

            webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
    return None


def _choose_cluster(context: Context) -> None:
    """`--name` chooses a cluster of this machine by its own kubeconfig."""
    name = context.flags.text("name")
    if not name:
        return
    from pybernetes.cluster.layout import locate

    kubeconfig = locate(name, None).kubeconfig
    if context.flags.text("kubeconfig"):
        raise CLIError("--name and --kubeconfig exclude each other")
    if not kubeconfig.exists():
        raise CLIError(f"there is no cluster {name!r}; `pyb status` lists them")
    context.flags.set("kubeconfig", str(kubeconfig))


COMMAND = Command(
    "console [--port=PORT] [--no-browser]",
    "Open a page in the browser that shows the cluster",
    run,
    flags=(
        Flag("name", help="Name of a cluster of this machine (default: the one of the kubeconfig)."),
        Flag("no-browser", "bool", help="Print the address, open no browser."),
        Flag("port", "int", 0, "Port to listen on; 0 takes any.", short="p"),
    ),
)


def main(argv: list[str]) -> int:
    """`pyb console`, with kubectl's flags for servers and credentials."""
    from pybernetes.kubectl.main import run_command

    return run_command(COMMAND, ["pyb", "console"], argv)
