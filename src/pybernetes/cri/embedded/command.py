"""`pyb runtime`: a container runtime behind a socket, until SIGTERM. Pods outlive it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from pybernetes.component import klog
from pybernetes.trace import recorder

REGISTRIES = "/etc/containerd/certs.d"
CNI_BIN = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"]


def main(argv: list[str]) -> int:
    """Run the runtime; the exit code."""
    parser = argparse.ArgumentParser(prog="pyb runtime", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/var/lib/pybernetes/runtime"), help="images and containers")
    parser.add_argument("--state", type=Path, default=Path("/run/pybernetes"), help="what need not outlive a reboot")
    parser.add_argument("--listen", type=Path, help="the socket (STATE/runtime.sock)")
    parser.add_argument("--cni-conf-dir", type=Path, default=Path("/etc/cni/net.d"), help="the pods' network")
    parser.add_argument("--cni-conf-template", type=Path, help="written there with the node's pod range filled in")
    parser.add_argument("--cni-bin-dir", action="append", help=f"plugins that are not ours ({', '.join(CNI_BIN)})")
    parser.add_argument("--images", type=Path, help="a folder of image archives (*.tar) to take in")
    parser.add_argument(
        "--registries", type=Path, action="append", help=f"folders of HOST/hosts.toml as containerd's ({REGISTRIES})"
    )
    parser.add_argument(
        "--cgroups", choices=["auto", "none"], default="auto", help="none: limits are not enforced (without root)"
    )
    parser.add_argument(
        "--plain-address",
        metavar="IP",
        help="containers are plain processes (without root or namespaces), and all pods have this machine's address",
    )
    parser.add_argument(
        "-v", type=int, default=0, help="2: calls that change something, 4: all calls; errors are always logged"
    )
    options = parser.parse_args(argv)
    klog.to_stderr(options.v)
    try:
        return asyncio.run(_serve(options))
    except (OSError, RuntimeError) as error:
        print(f"pyb runtime: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


async def _serve(options: argparse.Namespace) -> int:
    from pybernetes.component.watchdog import LoopWatchdog
    from pybernetes.cri.service import server_at

    from .call_log import LoggedCalls
    from .server import EmbeddedRuntime, Settings, lock

    state = options.state.absolute()
    try:
        lock(state)
    except BlockingIOError:
        raise RuntimeError(f"another runtime has {state}") from None
    runtime = EmbeddedRuntime(
        Settings(
            root=options.root.absolute(),
            state=state,
            cni_conf_dir=options.cni_conf_dir.absolute(),
            cni_bin_dirs=options.cni_bin_dir or CNI_BIN,
            cni_conf_template=options.cni_conf_template,
            images=options.images,
            registries=options.registries or [Path(REGISTRIES)],
            cgroups=options.cgroups == "auto",
            plain_address=options.plain_address or "",
        )
    )
    if recorder.wanted():
        recorder.start("runtime")  # what it records goes back to the caller with the response (`cri.tracing`)
    watchdog = LoopWatchdog()
    watchdog.start()
    await runtime.recover()
    socket = options.listen or state / "runtime.sock"
    server = server_at(socket, LoggedCalls(runtime))
    await server.start()
    done = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, done.set)
    await done.wait()
    await server.stop(1.0)
    watchdog.stop()
    await runtime.close()
    return 0
