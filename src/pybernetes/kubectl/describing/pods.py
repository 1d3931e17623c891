"""Descriptions of pod templates: containers, volumes, tolerations."""

from __future__ import annotations

from pybernetes.kubectl.data import dig, go_quote
from pybernetes.kubectl.describing.text import ZERO, Writer, when, write_annotations, write_labels
from pybernetes.kubectl.describing.volumes import volumes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def template_text(template: dict[str, Any]) -> str:
    """A pod template with its tabs."""
    writer = Writer()
    write_template(writer, template)
    return writer.text()


def write_template(writer: Writer, template: dict[str, Any] | None) -> None:
    """`Pod Template:` and what is in it."""
    writer.write(0, "Pod Template:\n")
    if template is None:
        writer.write(1, "<unset>")
        return
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    write_labels(writer, "  Labels", metadata.get("labels"))
    if metadata.get("annotations"):
        write_annotations(writer, "  Annotations", metadata["annotations"])
    if spec.get("serviceAccountName"):
        writer.write(1, f"Service Account:\t{spec['serviceAccountName']}\n")
    if spec.get("initContainers"):
        containers(writer, "Init Containers", spec["initContainers"], {}, 1)
    containers(writer, "Containers", spec.get("containers") or [], {}, 1)
    volumes(writer, spec.get("volumes") or [], 1)
    topology(writer, spec.get("topologySpreadConstraints") or [], 1)
    if spec.get("priorityClassName"):
        writer.write(1, f"Priority Class Name:\t{spec['priorityClassName']}\n")
    write_labels(writer, "Node-Selectors", spec.get("nodeSelector"), 1)
    tolerations(writer, 1, spec.get("tolerations") or [])
    if spec.get("schedulingGroup") is not None:
        scheduling_group(writer, 1, spec["schedulingGroup"])


def scheduling_group(writer: Writer, level: int, group: dict[str, Any]) -> None:
    """The PodGroup that a pod is scheduled with."""
    writer.write(level, "SchedulingGroup:\n")
    writer.write(1, f"PodGroupName:\t{group.get('podGroupName', '')}\n")


def containers(
    writer: Writer,
    title: str,
    found: list[dict[str, Any]],
    statuses: dict[str, Any],
    level: int,
    pod: dict[str, Any] | None = None,
) -> None:
    """Containers with their state where there is one; `pod` where they are those of a pod and not of a template."""
    writer.write(level, f"{title}:{'' if found else ' <none>'}\n")
    for container in found:
        state = statuses.get(container["name"])
        writer.write(1, f"{' ' if level else ''}{container['name']}:\n")
        if state is not None:
            writer.write(2, f"Container ID:\t{state.get('containerID', '')}\n")
        writer.write(2, f"Image:\t{container.get('image', '')}\n")
        if state is not None:
            writer.write(2, f"Image ID:\t{state.get('imageID', '')}\n")
        _ports(writer, container)
        seccomp(writer, 2, dig(container, "securityContext", "seccompProfile"), 3)
        for name, title_ in (("command", "Command"), ("args", "Args")):
            if container.get(name):
                writer.write(2, f"{title_}:\n")
                for word in container[name]:
                    for line in word.split("\n"):
                        writer.write(3, f"{line}\n")
        if state is not None:
            _state(writer, state)
        resources(writer, container.get("resources") or {}, 2)
        _probes(writer, container)
        _environment(writer, container, pod)
        _mounts(writer, container)


def seccomp(writer: Writer, level: int, profile: dict[str, Any] | None, inner: int) -> None:
    """The seccomp profile of a pod or a container, where it has one."""
    if profile is not None:
        writer.write(level, f"SeccompProfile:\t{profile.get('type', '')}\n")
        if profile.get("type") == "Localhost":
            writer.write(inner, f"LocalhostProfile:\t{profile.get('localhostProfile', '')}\n")


def _ports(writer: Writer, container: dict[str, Any]) -> None:
    ports = container.get("ports") or []
    for title, field in (("Port", "containerPort"), ("Host Port", "hostPort")):
        shown = ", ".join(
            f"{port.get(field, 0)}/{port.get('protocol', 'TCP')}" + (f" ({port['name']})" if port.get("name") else "")
            for port in ports
        )
        writer.write(2, f"{title}{'s' if ',' in shown else ''}:\t{shown or '<none>'}\n")


def _state(writer: Writer, status: dict[str, Any]) -> None:
    _one_state(writer, "State", status.get("state") or {})
    last = status.get("lastState") or {}
    if last.get("terminated") is not None:
        _one_state(writer, "Last State", last)
    writer.write(2, f"Ready:\t{_yes(status.get('ready'))}\n")
    writer.write(2, f"Restart Count:\t{status.get('restartCount', 0)}\n")


def _yes(value: Any) -> str:
    return "True" if value else "False"


def _one_state(writer: Writer, title: str, state: dict[str, Any]) -> None:
    running, waiting, ended = (state.get(name) for name in ("running", "waiting", "terminated"))
    if running is not None:
        writer.write(2, f"{title}:\tRunning\n")
        writer.write(3, f"Started:\t{when(running.get('startedAt'), ZERO)}\n")
    elif waiting is not None or ended is None:
        writer.write(2, f"{title}:\tWaiting\n")
        if waiting and waiting.get("reason"):
            writer.write(3, f"Reason:\t{waiting['reason']}\n")
    else:
        writer.write(2, f"{title}:\tTerminated\n")
        for name in ("reason", "message"):
            if ended.get(name):
                writer.write(3, f"{name.capitalize()}:\t{ended[name]}\n")
        writer.write(3, f"Exit Code:\t{ended.get('exitCode', 0)}\n")
        if ended.get("signal", 0) > 0:
            writer.write(3, f"Signal:\t{ended['signal']}\n")
        writer.write(3, f"Started:\t{when(ended.get('startedAt'), ZERO)}\n")
        writer.write(3, f"Finished:\t{when(ended.get('finishedAt'), ZERO)}\n")


def resources(writer: Writer, found: dict[str, Any], level: int) -> None:
    """Limits and requests."""
    for name, title in (("limits", "Limits"), ("requests", "Requests")):
        if found.get(name):
            writer.write(level, f"{title}:\n")
            for key in sorted(found[name]):
                writer.write(level + 1, f"{key}:\t{found[name][key]}\n")


def _probes(writer: Writer, container: dict[str, Any]) -> None:
    for name, title in (("livenessProbe", "Liveness"), ("readinessProbe", "Readiness"), ("startupProbe", "Startup")):
        if container.get(name) is not None:
            writer.write(2, f"{title}:\t{probe(container[name])}\n")


def probe(found: dict[str, Any]) -> str:
    """A probe in one line."""
    times = (
        f"delay={found.get('initialDelaySeconds', 0)}s timeout={found.get('timeoutSeconds', 0)}s"
        f" period={found.get('periodSeconds', 0)}s #success={found.get('successThreshold', 0)}"
        f" #failure={found.get('failureThreshold', 0)}"
    )
    if found.get("exec") is not None:
        return f"exec [{' '.join(found['exec'].get('command') or ())}] {times}"
    if found.get("httpGet") is not None:
        return f"http-get {_url(found['httpGet'])} {times}"
    if found.get("tcpSocket") is not None:
        return f"tcp-socket {found['tcpSocket'].get('host', '')}:{found['tcpSocket'].get('port', '')} {times}"
    if found.get("grpc") is not None:
        grpc = found["grpc"]
        return f"grpc <pod>:{grpc.get('port', 0)} {grpc.get('service') or ''} {times}"
    return f"unknown {times}"


def _url(get: dict[str, Any]) -> str:
    """The address of an HTTP probe, escaped as a URL."""
    from urllib.parse import quote

    host = str(get.get("host") or "")
    port = get.get("port", 0)
    if port != "":
        host = f"{f'[{host}]' if ':' in host else host}:{port}"
    path = quote(str(get.get("path") or ""), safe="/$&+,:;=@!'()*~")
    scheme = str(get.get("scheme", "HTTP")).lower()
    slash = "/" if path and not path.startswith("/") else ""
    return f"{scheme}:{f'//{host}'}{slash}{path}"


def _environment(writer: Writer, container: dict[str, Any], pod: dict[str, Any] | None) -> None:
    if container.get("envFrom"):
        writer.write(2, "Environment Variables from:\n")
    for source in container.get("envFrom") or ():
        kind, found = "", {}
        for name, title in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if source.get(name) is not None:
                kind, found = title, source[name]
                break
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        optional = "true" if found.get("optional") else "false"
        writer.write(3, f"{found.get('name', '')}\t{kind}{prefix}\tOptional: {optional}\n")
    variables = container.get("env") or []
    writer.write(2, f"Environment:{'' if variables else chr(9) + '<none>'}\n")
    for each in variables:
        reference = each.get("valueFrom")
        if reference is not None:
            shown = _reference(reference, container, pod)
            if shown is not None:
                writer.write(3, f"{each['name']}:\t{shown}\n")
            continue
        for at, line in enumerate((each.get("value") or "").split("\n")):
            writer.write(3, f"{'' if at else each['name'] + ':'}\t{line}\n")


def _pod_field(pod: dict[str, Any] | None, path: str) -> str:
    """The value of a field of a pod's metadata, as the downward API gives it; nothing for other fields."""
    metadata = (pod or {}).get("metadata") or {}
    name, bracket, key = path.removeprefix("metadata.").partition("[")
    if not path.startswith("metadata.") or pod is None:
        return ""
    if name in ("labels", "annotations"):
        values = metadata.get(name) or {}
        if bracket:
            return str(values.get(key.strip("'\"]"), ""))
        return "\n".join(f"{each}={go_quote(str(values[each]))}" for each in sorted(values))
    return str(metadata.get(name, "")) if name in ("name", "namespace", "uid") else ""


def _reference(found: dict[str, Any], container: dict[str, Any], pod: dict[str, Any] | None) -> str | None:
    """The source of a variable's value."""
    if found.get("fieldRef") is not None:
        path = found["fieldRef"].get("fieldPath", "")
        return f"{_pod_field(pod, path)} ({found['fieldRef'].get('apiVersion', 'v1')}:{path})"
    if found.get("resourceFieldRef") is not None:
        field = found["resourceFieldRef"]
        name = field.get("resource", "")
        value = _resource_field(field, container)
        if value == "0" and name in ("limits.cpu", "limits.memory"):
            value = "node allocatable"
        return f"{value} ({name})"
    for name, where in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        key = found.get(name)
        if key is not None:
            optional = "true" if key.get("optional") else "false"
            named = f"<set to the key '{key.get('key', '')}' {where} '{key.get('name', '')}'>"
            return f"{named}\tOptional: {optional}"
    return None


def _resource_field(field: dict[str, Any], container: dict[str, Any]) -> str:
    """The limit or request that a variable gets, in units of its divisor and rounded up."""
    import math

    from pybernetes.kubectl.sorting import quantity

    which, _, name = str(field.get("resource", "")).partition(".")
    if which not in ("limits", "requests") or not (
        name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-")
    ):
        return ""
    amount = quantity(str(dig(container, "resources", which, name, default="0"))) or 0.0
    return str(math.ceil(amount / (quantity(str(field.get("divisor", "1"))) or 1.0) - 1e-9))


def _mounts(writer: Writer, container: dict[str, Any]) -> None:
    mounts = container.get("volumeMounts") or []
    none = "" if mounts else "\t<none>"
    writer.write(2, f"Mounts:{none}\n")
    for mount in sorted(mounts, key=lambda each: str(each.get("mountPath", ""))):
        how = ["ro" if mount.get("readOnly") else "rw"]
        if mount.get("subPath"):
            how.append(f"path={go_quote(mount['subPath'])}")
        writer.write(3, f"{mount.get('mountPath', '')} from {mount.get('name', '')} ({','.join(how)})\n")
    devices = container.get("volumeDevices") or []
    if devices:
        writer.write(2, f"Devices:{none}\n")
        for device in sorted(devices, key=lambda each: str(each.get("devicePath", ""))):
            writer.write(3, f"{device.get('devicePath', '')} from {device.get('name', '')}\n")


def topology(writer: Writer, found: list[dict[str, Any]], level: int) -> None:
    """Topology spread constraints in one line each."""
    from pybernetes.kubectl.describing.text import selector_text

    if not found:
        return
    writer.write(level, "Topology Spread Constraints:\t")
    for at, each in enumerate(sorted(found, key=lambda one: str(one.get("topologyKey")))):
        if at:
            writer.write(level, "\t")
        text = (
            f"{each.get('topologyKey')}:{each.get('whenUnsatisfiable')} when max skew {each.get('maxSkew')} is exceeded"
        )
        if each.get("labelSelector") is not None:
            text += f" for selector {selector_text(each['labelSelector'], '<none>')}"
        writer.line(text)


def tolerations(writer: Writer, level: int, found: list[dict[str, Any]]) -> None:
    """Tolerations, one a line."""
    writer.write(level, "Tolerations:\t")
    if not found:
        writer.line("<none>")
        return
    ordered = sorted(found, key=lambda each: str(each.get("key", "")))
    for at, each in enumerate(ordered):
        if at:
            writer.write(level, "\t")
        text = each.get("key", "")
        if each.get("value"):
            text += f"={each['value']}"
        if each.get("effect"):
            text += f":{each['effect']}"
        if each.get("operator") == "Exists" and not each.get("value"):
            text += " op=Exists" if each.get("key") or each.get("effect") else "op=Exists"
        if each.get("tolerationSeconds") is not None:
            text += f" for {each['tolerationSeconds']}s"
        writer.line(text)


def dig_statuses(pod: dict[str, Any], field: str) -> dict[str, Any]:
    """Container statuses by name."""
    return {each["name"]: each for each in dig(pod, "status", field, default=[])}
