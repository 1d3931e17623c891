"""Services, Ingresses and NetworkPolicies: the pods behind them, and why there are none."""

from __future__ import annotations

from .cluster import (
    CORE,
    Answer,
    Cluster,
    Object,
    events_of,
    name_of,
    names,
    namespace_of,
    selects,
    warnings_of,
)
from .facts import is_ready, recent

_DISCOVERY = "/apis/discovery.k8s.io/v1"
_NETWORKING = "/apis/networking.k8s.io/v1"


async def explain_service(cluster: Cluster, thing: Object) -> Answer:
    """From the selector to pods, to their readiness, to the port."""
    spec, namespace = thing["spec"], namespace_of(thing)
    if spec.get("type") == "ExternalName":
        return Answer(f"nothing is wrong: its name stands for {spec.get('externalName')}", healthy=True)
    selector = spec.get("selector")
    if not selector:
        slices = await cluster.list(
            _DISCOVERY, "endpointslices", namespace, labelSelector=f"kubernetes.io/service-name={name_of(thing)}"
        )
        if any(each.get("endpoints") for each in slices):
            return Answer("nothing is wrong: it has no selector, and another client writes its endpoints", healthy=True)
        return Answer(
            "it has no endpoints: it has no selector, and no EndpointSlice of it has any",
            fix="set spec.selector to labels of your pods, or write an EndpointSlice",
        )
    shown = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    every = await cluster.list(CORE, "pods", namespace)
    pods = [each for each in every if selects({"matchLabels": selector}, each["metadata"].get("labels"))]
    living = [each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    if not pods:
        near, change = _nearest(selector, every)
        return Answer(
            f"it has no endpoints: no pod in namespace {namespace} has the labels of its selector ({shown}){near}",
            fix=change,
        )
    if not living:
        return Answer(
            f"it has no endpoints: all {len(pods)} pods that it selects have ended", fix="start pods with these labels"
        )
    if wrong := _port_problem(spec, living):
        return wrong
    ready = [each for each in living if is_ready(each) and not each["metadata"].get("deletionTimestamp")]
    if not ready and not spec.get("publishNotReadyAddresses"):
        pod = living[0]
        why = await cluster.explain("pod", pod)
        return Answer(
            f"it has no ready endpoints: none of the {len(living)} pods that it selects is ready; "
            f"pod {name_of(pod)}: {why.sentence}",
            (f"Service {name_of(thing)} → Pod {name_of(pod)}", *why.details),
            fix=why.fix,
        )
    if spec.get("type") == "LoadBalancer" and not ((thing.get("status") or {}).get("loadBalancer") or {}).get(
        "ingress"
    ):
        warned = warnings_of(await events_of(cluster, thing))
        said = f": {warned[-1].get('message')}" if warned else ": no controller of load balancers has given it one"
        return Answer(f"its pods are ready, but it has no external address{said}", recent(warned))
    if len(ready) < len(living):
        return Answer(
            f"it works with {len(ready)} of {len(living)} pods; the others are not ready",
            (f"Not ready: {names([name_of(each) for each in living if each not in ready])}",),
        )
    return Answer(f"nothing is wrong: {len(ready)} pods are behind it", healthy=True)


def _nearest(selector: dict[str, str], pods: list[Object]) -> tuple[str, str]:
    """The pod that has most of the labels, and the label that it lacks."""

    def count(pod: Object) -> int:
        labels = pod["metadata"].get("labels") or {}
        same = [key for key, value in selector.items() if labels.get(key) == value]
        return len(same) * 10 + len([key for key in selector if key in labels])

    pod = max(pods, key=count, default=None)
    if pod is None or not count(pod):
        return "", "correct spec.selector, or label the pods"
    labels = pod["metadata"].get("labels") or {}
    key, value = next((key, value) for key, value in sorted(selector.items()) if labels.get(key) != value)
    has = f"{key}={labels[key]}" if key in labels else f"no label {key}"
    return (
        f"; nearest is pod {name_of(pod)}, which has {has}",
        f"set {key}={labels[key]} in spec.selector" if key in labels else f"label the pods with {key}={value}",
    )


def _port_problem(spec: Object, pods: list[Object]) -> Answer | None:
    """A port by a name that no container of the pods has."""
    for port in spec.get("ports") or ():
        target = port.get("targetPort")
        if not isinstance(target, str) or target.isdigit():
            continue
        named = {
            each.get("name")
            for pod in pods
            for container in pod["spec"].get("containers") or ()
            for each in container.get("ports") or ()
        }
        if target not in named:
            known = ", ".join(sorted(each for each in named if each)) or "none"
            return Answer(
                f"its port {port.get('port')} has no endpoints: no container of its pods has a port named {target!r} "
                f"(named ports: {known})",
                fix=f"name the container's port {target!r}, or use its number as targetPort",
            )
    return None


async def explain_ingress(cluster: Cluster, thing: Object) -> Answer:
    """Its class, its Services and their ports, its secrets, its address."""
    spec, namespace = thing["spec"], namespace_of(thing)
    classes = await cluster.list(_NETWORKING, "ingressclasses")
    wanted = spec.get("ingressClassName") or (thing["metadata"].get("annotations") or {}).get(
        "kubernetes.io/ingress.class"
    )
    default = [
        each
        for each in classes
        if (each["metadata"].get("annotations") or {}).get("ingressclass.kubernetes.io/is-default-class") == "true"
    ]
    if not wanted and not default:
        return Answer(
            "no controller serves it: it names no class, and no IngressClass is the default",
            fix=f"set spec.ingressClassName (there are: {names([name_of(each) for each in classes]) or 'none'})",
        )
    if wanted and wanted not in {name_of(each) for each in classes}:
        return Answer(
            f"no controller serves it: the IngressClass {wanted} does not exist",
            fix=f"use one of: {names([name_of(each) for each in classes]) or 'none is there'}",
        )
    backends = [spec["defaultBackend"]] if spec.get("defaultBackend") else []
    backends += [
        path["backend"] for rule in spec.get("rules") or () for path in (rule.get("http") or {}).get("paths") or ()
    ]
    for backend in backends:
        named = backend.get("service") or {}
        if not named:
            continue
        service = await cluster.get(CORE, "services", namespace, named["name"])
        if service is None:
            return Answer(
                f"its Service {named['name']} does not exist in namespace {namespace}",
                fix="create the Service, or correct the backend",
            )
        port = named.get("port") or {}
        ports = service["spec"].get("ports") or ()
        if not any(
            each.get("port") == port.get("number") or (port.get("name") and each.get("name") == port["name"])
            for each in ports
        ):
            return Answer(
                f"its Service {named['name']} has no port {port.get('number') or port.get('name')} "
                f"(it has {names([str(each.get('port')) for each in ports])})",
                fix="correct the backend's port",
            )
        service.setdefault("kind", "Service")
        why = await explain_service(cluster, service)
        if not why.healthy and "no" in why.sentence.partition("endpoints")[0]:
            return Answer(
                f"its Service {named['name']} answers no request: {why.sentence}",
                (f"Ingress {name_of(thing)} → Service {named['name']}", *why.details),
                fix=why.fix,
            )
    for each in spec.get("tls") or ():
        secret = each.get("secretName")
        if secret:
            found = await cluster.get(CORE, "secrets", namespace, secret)
            if found is None:
                return Answer(
                    f"its TLS secret {secret} does not exist in namespace {namespace}: clients see another certificate",
                    fix=f"kubectl create secret tls {secret} -n {namespace} --cert=... --key=...",
                )
            if found.get("type") not in (None, "kubernetes.io/tls"):
                return Answer(f"its TLS secret {secret} is of type {found['type']}, not kubernetes.io/tls")
    if not ((thing.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        warned = warnings_of(await events_of(cluster, thing))
        said = (
            f": {warned[-1].get('message')}"
            if warned
            else f": the controller of the class {wanted or name_of(default[0])} has not served it yet"
        )
        return Answer(f"it has no address{said}")
    return Answer("nothing is wrong: its class, Services and secrets are there", healthy=True)


async def explain_policy(cluster: Cluster, thing: Object) -> Answer:
    """Which pods a NetworkPolicy isolates."""
    spec, namespace = thing["spec"], namespace_of(thing)
    pods = await cluster.list(CORE, "pods", namespace)
    chosen = [each for each in pods if selects(spec.get("podSelector") or {}, each["metadata"].get("labels"))]
    if not chosen:
        return Answer(
            f"it has no effect: its podSelector matches none of the {len(pods)} pods in namespace {namespace}",
            fix="correct spec.podSelector, or label the pods",
        )
    types = spec.get("policyTypes") or ["Ingress"]
    closed = [each for each in types if not spec.get(each.lower())]
    what = f"; it lets no {' and no '.join(each.lower() for each in closed)} traffic through" if closed else ""
    return Answer(
        f"nothing is wrong: it isolates {len(chosen)} pods ({names([name_of(each) for each in chosen])}){what}",
        healthy=True,
    )
