"""`pyb why pod/NAME`: why a pod is not running, in one sentence, then what shows it; `why deployment/NAME` and other
makers of pods: why they make none.

The API server is asked for the pod and what it needs (`diagnosis.py` decides); for a pod without a node, or one that
runs, the scheduler is asked too (`/debug/why`): only it knows its attempts and what its plugins say now.
The cluster is the one of the kubeconfig's current context, unless --name or --data-dir names another.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pybernetes.cluster import diagnosis
from pybernetes.cluster.commands import flags, why_network
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import DEFAULT_NAME, Layout, clusters, locate

if TYPE_CHECKING:
    from pybernetes.client.config import Config
    from pybernetes.client.transport import Transport

DEFAULT_PORT = 10259
MAKERS = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), ("Deployment", "/apis/apps/v1", "deployments")),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), ("ReplicaSet", "/apis/apps/v1", "replicasets")),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), ("StatefulSet", "/apis/apps/v1", "statefulsets")),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), ("DaemonSet", "/apis/apps/v1", "daemonsets")),
    **dict.fromkeys(("job", "jobs"), ("Job", "/apis/batch/v1", "jobs")),
    **dict.fromkeys(
        ("replicationcontroller", "replicationcontrollers", "rc"),
        ("ReplicationController", "/api/v1", "replicationcontrollers"),
    ),
}


def main(argv: list[str]) -> int:
    """Asks, and prints the answer."""
    if why_network.concerns(argv):
        return why_network.main(argv)
    parser = flags.parser("why", "Explains in one sentence why a pod does not run, or what keeps pods from being made.")
    parser.set_defaults(name=None)
    parser.add_argument("what", nargs="+", metavar="pod/NAME", help="pod/NAME, pod NAME, NAME, or deployment/NAME etc.")
    parser.add_argument("--namespace", "-n", help="its namespace (default: the kubeconfig's)")
    parser.add_argument("--output", "-o", choices=["text", "json"], default="text", help="default: %(default)s")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    parser.add_argument("--scheduler", metavar="URL", help="address of the scheduler (default: the cluster's)")
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="do not check the scheduler's certificate"
    )
    arguments = parser.parse_args(argv)
    kind, name = _subject(parser, arguments.what)
    layout, settings = _cluster(arguments)
    return asyncio.run(_answer(arguments, layout, settings, kind, name))


def _subject(parser: argparse.ArgumentParser, words: list[str]) -> tuple[str, str]:
    kind, _, name = words[0].rpartition("/") if len(words) == 1 else (words[0], "/", "".join(words[1:2]))
    kind = kind.lower()
    if len(words) > 2 or not name or kind not in ("", "pod", "pods", "po", *MAKERS):
        known = ", ".join(sorted({plural for _, _, plural in MAKERS.values()}))
        parser.error(f"not a pod: {' '.join(words)!r}; say pod/NAME (or one of {known})")
    return kind, name


def _cluster(arguments: argparse.Namespace) -> tuple[Layout | None, Config]:
    """The cluster that is meant, if it is one of this machine, and the credentials for it."""
    from pybernetes.client import config

    try:
        if arguments.name is not None or arguments.data_dir is not None:
            layout = locate(arguments.name or DEFAULT_NAME, arguments.data_dir)
            own = layout.kubeconfig if not arguments.kubeconfig and layout.kubeconfig.exists() else None
            return layout, config.load(str(own) if own else arguments.kubeconfig)
        settings = config.load(arguments.kubeconfig)
        there = [each for each in clusters() if (record := each.read_record()) and record.server == settings.server]
        if not there:
            default = locate(DEFAULT_NAME)
            if not arguments.kubeconfig and not settings.server and default.kubeconfig.exists():
                return default, config.load(str(default.kubeconfig))
        return (there[0] if there else None), settings
    except (config.ConfigError, OSError) as error:
        raise ClusterError(str(error)) from error


async def _answer(arguments: argparse.Namespace, layout: Layout | None, settings: Config, kind: str, name: str) -> int:
    from pybernetes.api import errors
    from pybernetes.client.transport import Transport

    namespace = arguments.namespace or settings.namespace or "default"
    transport = Transport(settings)
    try:
        if kind in MAKERS:
            title = f"{MAKERS[kind][0]} {namespace}/{name}"
            answer = await _explain_maker(transport, kind, namespace, name)
        else:
            title = f"Pod {namespace}/{name}"
            answer = diagnosis.explain(await _facts(transport, namespace, name))
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
    print(f"{title}: {answer.sentence}.")
    for line in answer.details:
        print(line)
    if report:
        from pybernetes.scheduler.explain.text import render

        print(f"\n{render(report)}")
    if silence:
        print(f"\n{silence}")
    return 0


async def _get(transport: Transport, path: str) -> Any:
    """An object, None if it is not there."""
    from pybernetes.api import errors

    try:
        return json.loads((await transport.request("GET", path)).body)
    except errors.NotFound:
        return None


async def _events(transport: Transport, namespace: str, kind: str, name: str) -> list[diagnosis.Object]:
    chosen = urlencode({"fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}", "limit": 500})
    found = (await _get(transport, f"/api/v1/namespaces/{quote(namespace)}/events?{chosen}") or {}).get("items") or []
    return sorted(found, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))


async def _facts(transport: Transport, namespace: str, name: str) -> diagnosis.Facts:
    from pybernetes.api import errors

    base = f"/api/v1/namespaces/{quote(namespace)}"
    pod = await _get(transport, f"{base}/pods/{quote(name)}")
    if pod is None:
        raise ClusterError(f'pods "{name}" not found in namespace {namespace}')
    facts = diagnosis.Facts(pod, await _events(transport, namespace, "Pod", name))
    for volume in pod["spec"].get("volumes") or ():
        if claim := diagnosis.claim_name(pod, volume):
            facts.claims[claim] = await _get(transport, f"{base}/persistentvolumeclaims/{quote(claim)}")
            facts.claim_events[claim] = await _events(transport, namespace, "PersistentVolumeClaim", claim)
    if facts.claims:
        listed = await _get(transport, "/apis/storage.k8s.io/v1/storageclasses") or {}
        facts.classes.update({each["metadata"]["name"]: each for each in listed.get("items") or ()})
    for status in diagnosis.statuses(pod):
        ended = "terminated" in (status.get("state") or {})
        if ended or "terminated" in (status.get("lastState") or {}):
            query = {"container": status["name"], "tailLines": diagnosis.LOG_LINES, "previous": str(not ended).lower()}
            try:
                log = await transport.request("GET", f"{base}/pods/{quote(name)}/log?{urlencode(query)}")
                facts.logs[status["name"]] = log.body.decode(errors="replace")
            except (errors.APIError, OSError, TimeoutError):
                continue  # its node is away, or the container is gone
    if pod["spec"].get("nodeName"):
        node = await _get(transport, f"/api/v1/nodes/{quote(pod['spec']['nodeName'])}")
        return dataclasses.replace(facts, node=node)
    return facts


async def _explain_maker(transport: Transport, kind: str, namespace: str, name: str) -> diagnosis.Answer:
    title, group, plural = MAKERS[kind]
    maker = await _get(transport, f"{group}/namespaces/{quote(namespace)}/{plural}/{quote(name)}")
    if maker is None:
        raise ClusterError(f'{plural} "{name}" not found in namespace {namespace}')
    events, owned = await _events(transport, namespace, title, name), []
    if title == "Deployment":
        listed = await _get(transport, f"{group}/namespaces/{quote(namespace)}/replicasets") or {}
        uid = maker["metadata"]["uid"]
        for each in listed.get("items") or ():
            if any(owner.get("uid") == uid for owner in each["metadata"].get("ownerReferences") or ()):
                owned.append(each)
                events += await _events(transport, namespace, "ReplicaSet", each["metadata"]["name"])
    return diagnosis.explain_maker(title, maker, events, owned)


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
