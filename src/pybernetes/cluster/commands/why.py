"""`pyb why pod/NAME`: why a pod is pending, why it is where it is, and what would make it fit.

The scheduler itself is asked (`/debug/why`), with the credentials of the kubeconfig: what it has kept of its attempts
and what its plugins say now is known nowhere else.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from typing import Any
from urllib.parse import urlencode

from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, locate

DEFAULT_PORT = 10259


def main(argv: list[str]) -> int:
    """Asks, and prints the answer."""
    parser = flags.parser("why", "Explains where a pod is, or why it is nowhere yet, and what would make it fit.")
    parser.add_argument("pod", nargs="+", metavar="pod/NAME", help="the pod: pod/NAME or pod NAME")
    parser.add_argument("--namespace", "-n", help="its namespace (default: the kubeconfig's)")
    parser.add_argument("--output", "-o", choices=["text", "json"], default="text", help="default: %(default)s")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    parser.add_argument("--scheduler", metavar="URL", help="address of the scheduler (default: the cluster's)")
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="do not check the scheduler's certificate"
    )
    arguments = parser.parse_args(argv)
    name = _pod_name(parser, arguments.pod)
    layout = locate(arguments.name, arguments.data_dir)
    report = asyncio.run(_ask(arguments, layout, name))
    if arguments.output == "json":
        print(json.dumps(report, indent=2))
    else:
        from pybernetes.scheduler.explain.text import render

        print(render(report))
    return 0


def _pod_name(parser: argparse.ArgumentParser, words: list[str]) -> str:
    kind, _, name = words[0].rpartition("/") if len(words) == 1 else (words[0], "/", "".join(words[1:2]))
    if len(words) > 2 or not name or kind.lower() not in ("", "pod", "pods", "po"):
        parser.error(f"not a pod: {' '.join(words)!r}; say pod/NAME")
    return name


async def _ask(arguments: argparse.Namespace, layout: Layout, name: str) -> dict[str, Any]:
    from pybernetes.api import errors
    from pybernetes.client import config
    from pybernetes.client.transport import Transport

    kubeconfig = arguments.kubeconfig
    if not kubeconfig and layout.kubeconfig.exists():
        kubeconfig = layout.kubeconfig
    url = arguments.scheduler or _address(layout)
    try:
        settings = config.load(kubeconfig)
    except (config.ConfigError, OSError) as error:
        raise ClusterError(str(error)) from error
    settings = dataclasses.replace(
        settings,
        server=url,
        tls_server_name="",
        insecure_skip_tls_verify=arguments.insecure_skip_tls_verify,
    )
    query = urlencode({"namespace": arguments.namespace or settings.namespace, "name": name})
    transport = Transport(settings)
    try:
        response = await transport.request("GET", f"/debug/why?{query}")
    except errors.APIError as error:
        raise ClusterError(str(error)) from error
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"the scheduler at {url} does not answer: {error}") from error
    finally:
        await transport.close()
    found: dict[str, Any] = json.loads(response.body)
    return found


def _address(layout: Layout) -> str:
    """Where the cluster's scheduler listens, by the flags it was started with."""
    try:
        components = json.loads(layout.components_file.read_bytes())
    except FileNotFoundError:
        return f"https://127.0.0.1:{DEFAULT_PORT}"
    for component in components:
        if component["name"] == "scheduler":
            given = dict(word[2:].partition("=")[::2] for word in component["argv"] if word.startswith("--"))
            host = given.get("bind-address", "127.0.0.1").replace("0.0.0.0", "127.0.0.1")
            return f"https://{host}:{given.get('secure-port', DEFAULT_PORT)}"
    raise ClusterError(f"cluster {layout.name!r} runs no scheduler")
