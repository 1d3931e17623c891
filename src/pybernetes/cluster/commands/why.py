"""`pyb why pod/NAME`: why a pod does not run, in one sentence, then what shows it. The same for what makes pods, for
claims, nodes and namespaces; Services and connections are in `why_network.py`.

The API server is asked for the object and what it needs (`diagnosis/asking.py`). For a pod
without a node, or one that runs, the scheduler is asked too (`/debug/why`): only it knows its attempts and what its
plugins say now. The cluster is the one of the kubeconfig's current context, unless --name or --data-dir names another.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pybernetes.cluster.commands import flags, why_network
from pybernetes.cluster.commands.cluster_of import cluster_of
from pybernetes.cluster.diagnosis import asking
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, Layout, locate

if TYPE_CHECKING:
    from pybernetes.client.config import Config
    from pybernetes.client.transport import Transport

DEFAULT_PORT = 10259


def main(argv: list[str]) -> int:
    """Asks, and prints the answer."""
    if why_network.concerns(argv):
        return why_network.main(argv)
    parser = flags.parser("why", "Explains in one sentence why a pod (or what makes pods) is as it is.")
    parser.set_defaults(name=None)
    parser.add_argument(
        "what", nargs="+", metavar="pod/NAME", help="or NAME, deployment/NAME, pvc/NAME, node/NAME etc."
    )
    parser.add_argument("--namespace", "-n", help="its namespace (default: the kubeconfig's)")
    parser.add_argument("--output", "-o", choices=["text", "json"], default="text", help="default: %(default)s")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    parser.add_argument("--scheduler", metavar="URL", help="address of the scheduler (default: the cluster's)")
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="do not check the scheduler's certificate"
    )
    arguments = parser.parse_args(argv)
    kind, name = _subject(parser, arguments.what)
    layout, settings = cluster_of(arguments)
    return asyncio.run(_answer(arguments, layout, settings, kind, name))


def _subject(parser: argparse.ArgumentParser, words: list[str]) -> tuple[str, str]:
    kind, _, name = words[0].rpartition("/") if len(words) == 1 else (words[0], "/", "".join(words[1:2]))
    kind = kind.lower()
    if len(words) > 2 or not name or kind not in asking.KINDS:
        known = sorted({plural for _, _, plural in asking.MAKERS.values()})
        others = "persistentvolumeclaims, nodes, namespaces, services"
        what = " ".join(words)
        parser.error(f"{what!r} cannot be explained; say pod/NAME, or one of {', '.join(known)}, {others}")
    return kind, name


async def _answer(arguments: argparse.Namespace, layout: Layout | None, settings: Config, kind: str, name: str) -> int:
    from pybernetes.api import errors
    from pybernetes.client.transport import Transport

    namespace = arguments.namespace or settings.namespace or "default"
    transport = Transport(settings)
    try:
        title, answer = await asking.Asked(_Reader(transport), namespace).explain(kind, name)
    except (LookupError, asking.Forbidden) as error:
        raise ClusterError(str(error.args[0])) from error
    except errors.APIError as error:
        raise ClusterError(str(error)) from error
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"the API server at {settings.server} does not answer: {error}") from error
    finally:
        await transport.close()
    report, silence = {}, ""
    if answer.ask_scheduler:
        try:
            report = await _ask_scheduler(arguments, layout, settings, namespace, name)
        except ClusterError as error:
            silence = f"The scheduler cannot be asked for more: {error}"
    if arguments.output == "json":
        print(json.dumps({**report, "why": answer.sentence, "details": list(answer.details)}, indent=2))
        return 0
    print(f"{title}: {answer.sentence.rstrip('. ')}.")
    for line in answer.details:
        print(line)
    if report:
        from pybernetes.scheduler.explain.text import render

        print(f"\n{render(report)}")
    if silence:
        print(f"\n{silence}")
    return 0


class _Reader:
    """Reads with a client of ours."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, path: str) -> Any:
        from pybernetes.api import errors

        try:
            return json.loads((await self._transport.request("GET", path)).body)
        except errors.NotFound:
            return None
        except errors.Forbidden as error:
            raise asking.Forbidden(str(error)) from error

    async def log(self, path: str) -> str | None:
        from pybernetes.api import errors

        try:
            return (await self._transport.request("GET", path)).body.decode(errors="replace")
        except (errors.APIError, OSError, TimeoutError):
            return None


async def _ask_scheduler(
    arguments: argparse.Namespace, layout: Layout | None, settings: Config, namespace: str, name: str
) -> dict[str, Any]:
    from pybernetes.api import errors
    from pybernetes.client.transport import Transport

    if not arguments.scheduler and layout is None:
        raise ClusterError("the cluster is none of this machine; --scheduler names its address")
    url = arguments.scheduler or _address(layout or locate(DEFAULT_NAME))
    skip = arguments.insecure_skip_tls_verify
    there = dataclasses.replace(settings, server=url, tls_server_name="", insecure_skip_tls_verify=skip)
    query = urlencode({"namespace": namespace, "name": name})
    transport = Transport(there)
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
