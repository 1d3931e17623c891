"""`pyb why KIND/NAME`: why an object is as it is, in one sentence, then what shows it and what would help.

Any kind can be asked for; Services and connections are in `why_network.py`. `--field` says who has set a field.
The API server is asked for the object and what it needs (`trace/why`). For a pod without a node, or one that runs, the
scheduler is asked too (`/debug/why`): only it knows its attempts and what its plugins say now.
The cluster is the one of the kubeconfig's current context, unless --name or --data-dir names another.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pybernetes.cluster.commands import flags, why_network
from pybernetes.cluster.commands.cluster_of import cluster_of
from pybernetes.cluster.component_addresses import address_of
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, Layout, locate
from pybernetes.terminal import escaped
from pybernetes.trace.why import asking
from pybernetes.trace.why.kinds import explain, explain_pod

if TYPE_CHECKING:
    from pybernetes.api.resources import Resource
    from pybernetes.client.config import Config
    from pybernetes.client.transport import Transport


def main(argv: list[str]) -> int:
    """Asks, and prints the answer."""
    if why_network.concerns(argv):
        return why_network.main(argv)
    parser = flags.parser("why", "Explains in one sentence why a pod (or what makes pods) is as it is.")
    parser.set_defaults(name=None)
    parser.add_argument(
        "what", nargs="+", metavar="pod/NAME", help="or NAME, deployment/NAME, pvc/NAME, node/NAME etc."
    )
    parser.add_argument("--field", metavar="PATH", help="who has set a field, such as spec.replicas, and when")
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
    if len(words) > 2 or not name:
        parser.error(f"{' '.join(words)!r} cannot be explained; say KIND/NAME, or the name of a pod")
    return kind, name


async def _answer(arguments: argparse.Namespace, layout: Layout | None, settings: Config, kind: str, name: str) -> int:
    from pybernetes.api import errors
    from pybernetes.client.transport import Transport

    namespace = arguments.namespace or settings.namespace or "default"
    transport = Transport(settings)
    try:
        reader = _Reader(transport)
        if kind in asking.PODS and not arguments.field:
            title, answer = await explain_pod(reader, namespace, name)
        else:
            resource = await resource_of(settings, kind)
            place = namespace if resource.namespaced else ""
            title = f"{resource.kind} {place}/{name}" if place else f"{resource.kind} {name}"
            thing = await _object(reader, resource, place, name)
            if arguments.field:
                return _show_field(title, thing, arguments.field)
            answer = await explain(reader, thing)
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
        told = {"why": answer.sentence, "details": list(answer.details), "help": answer.fix, "healthy": answer.healthy}
        print(json.dumps({**report, **told}, indent=2))
        return 0
    print(answer.text(title))
    if report:
        from pybernetes.scheduler.explain.text import render

        print(f"\n{escaped(render(report))}")
    if silence:
        print(f"\n{escaped(silence)}")
    return 0


async def _object(reader: _Reader, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
    """The object to explain. Raises LookupError if it is not there, Forbidden."""
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    found: dict[str, Any] | None = await reader.get(f"{resource.path}{place}/{resource.plural}/{quote(name, safe=':')}")
    if found is None:
        where = f" in namespace {namespace}" if namespace else ""
        raise LookupError(f'{resource.plural} "{name}" not found{where}')
    return found


async def resource_of(settings: Config, kind: str) -> Resource:
    """The resource that a word means: plural, singular, kind or short name, with `.GROUP` where several have it."""
    from pybernetes.api.resources import RESOURCES
    from pybernetes.client.client import Client
    from pybernetes.client.discovery import discover

    word, _, group = (kind or "pods").partition(".")

    def meant(each: Resource) -> bool:
        words = (each.plural, each.singular, each.kind.lower(), *each.short_names)
        return word in words and group in ("", each.group) and "get" in each.verbs

    stable = sorted(filter(meant, RESOURCES), key=lambda each: (each.group == "events.k8s.io", len(each.version)))
    if stable:
        return stable[0]
    async with Client(settings, program="pyb-why") as client:
        found = [each for each in (await discover(client)).preferred if meant(each)]
    if not found:
        raise ClusterError(f"the server has no resource {kind!r}")
    return found[0]


def _show_field(title: str, thing: dict[str, Any], path: str) -> int:
    """The managers of a field."""
    from pybernetes.trace.why.fields import owners_of, value_at

    owners, value = owners_of(thing, path), json.dumps(value_at(thing, path))
    if not owners:
        print(f"{title}: {path} is {value}; no manager owns it (the API server's default, or never set).")
        return 0
    first, *others = owners
    print(escaped(f"{title}: {path} is {value}; set by {first.manager} ({first.operation}) at {first.time}."))
    for each in others:
        print(escaped(f"Also owned by {each.manager} ({each.operation}) since {each.time}."))
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
    url = arguments.scheduler or address_of(layout or locate(DEFAULT_NAME), "scheduler")
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
