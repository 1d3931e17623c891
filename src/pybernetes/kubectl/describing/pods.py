"""Descriptions of pod templates: containers, volumes, tolerations."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.text import Writer, joined, when, write_annotations, write_labels

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
    labels_multiline(writer, 1, "Node-Selectors", spec.get("nodeSelector"))
    tolerations(writer, 1, spec.get("tolerations") or [])


def labels_multiline(writer: Writer, level: int, title: str, values: dict[str, str] | None) -> None:
    """A map below an indent."""
    write_labels(writer, title, values, level)


def containers(
    writer: Writer,
    title: str,
    found: list[dict[str, Any]],
    statuses: dict[str, Any],
    level: int,
    pod: dict[str, Any] | None = None,
) -> None:
    """Containers with their state where there is one; `pod` where they are those of a pod and not of a template."""
    writer.write(level, f"{title}:\n")
    for container in found:
        state = statuses.get(container["name"])
        writer.write(level, f"{' ' if level else '  '}{container['name']}:\n")
        inner = 1
        if state is not None:
            writer.write(inner, f"  Container ID:\t{state.get('containerID', '')}\n")
        writer.write(inner, f"  Image:\t{container.get('image', '')}\n")
        if state is not None:
            writer.write(inner, f"  Image ID:\t{state.get('imageID', '')}\n")
        _ports(writer, container, inner)
        for name, title_ in (("command", "Command"), ("args", "Args")):
            if container.get(name):
                writer.write(inner, f"  {title_}:\n")
                for word in container[name]:
                    for line in word.split("\n"):
                        writer.write(inner + 1, f"  {line}\n")
        if state is not None:
            _state(writer, state, inner)
        _resources(writer, container.get("resources") or {}, inner)
        _probes(writer, container, inner)
        _environment(writer, container, inner, pod)
        _mounts(writer, container, inner)


def _ports(writer: Writer, container: dict[str, Any], level: int) -> None:
    ports = container.get("ports") or []
    shown = ", ".join(
        f"{port['containerPort']}/{port.get('protocol', 'TCP')}" + (f" ({port['name']})" if port.get("name") else "")
        for port in ports
    )
    host = ", ".join(
        f"{port.get('hostPort', 0)}/{port.get('protocol', 'TCP')}" + (f" ({port['name']})" if port.get("name") else "")
        for port in ports
    )
    title = "Ports" if len(ports) > 1 else "Port"
    writer.write(level, f"  {title}:\t{shown or '<none>'}\n")
    writer.write(level, f"  Host {title}:\t{host or '<none>'}\n")


def _state(writer: Writer, state: dict[str, Any], level: int) -> None:
    _one_state(writer, "State", state.get("state") or {}, level)
    last = state.get("lastState") or {}
    if last.get("terminated"):
        _one_state(writer, "Last State", last, level)
    writer.write(level, f"  Ready:\t{_yes(state.get('ready'))}\n")
    writer.write(level, f"  Restart Count:\t{state.get('restartCount', 0)}\n")


def _yes(value: Any) -> str:
    return "True" if value else "False"


def _one_state(writer: Writer, title: str, state: dict[str, Any], level: int) -> None:
    if "running" in state:
        writer.write(level, f"  {title}:\tRunning\n")
        writer.write(level + 1, f"  Started:\t{when(state['running'].get('startedAt'))}\n")
    elif "terminated" in state:
        ended = state["terminated"]
        writer.write(level, f"  {title}:\tTerminated\n")
        if ended.get("reason"):
            writer.write(level + 1, f"  Reason:\t{ended['reason']}\n")
        if ended.get("message"):
            writer.write(level + 1, f"  Message:\t{ended['message']}\n")
        writer.write(level + 1, f"  Exit Code:\t{ended.get('exitCode', 0)}\n")
        if ended.get("signal"):
            writer.write(level + 1, f"  Signal:\t{ended['signal']}\n")
        writer.write(level + 1, f"  Started:\t{when(ended.get('startedAt'))}\n")
        writer.write(level + 1, f"  Finished:\t{when(ended.get('finishedAt'))}\n")
    elif "waiting" in state:
        writer.write(level, f"  {title}:\tWaiting\n")
        if state["waiting"].get("reason"):
            writer.write(level + 1, f"  Reason:\t{state['waiting']['reason']}\n")
    else:
        writer.write(level, f"  {title}:\tWaiting\n")


def _resources(writer: Writer, resources: dict[str, Any], level: int) -> None:
    for name, title in (("limits", "Limits"), ("requests", "Requests")):
        if resources.get(name):
            writer.write(level, f"  {title}:\n")
            for key in sorted(resources[name]):
                writer.write(level + 1, f"  {key}:\t{resources[name][key]}\n")


def _probes(writer: Writer, container: dict[str, Any], level: int) -> None:
    for name, title in (("livenessProbe", "Liveness"), ("readinessProbe", "Readiness"), ("startupProbe", "Startup")):
        if container.get(name):
            writer.write(level, f"  {title}:\t{probe(container[name])}\n")


def probe(found: dict[str, Any]) -> str:
    """A probe in one line."""
    times = (
        f"delay={found.get('initialDelaySeconds', 0)}s timeout={found.get('timeoutSeconds', 0)}s"
        f" period={found.get('periodSeconds', 0)}s #success={found.get('successThreshold', 0)}"
        f" #failure={found.get('failureThreshold', 0)}"
    )
    if found.get("exec"):
        return f"exec [{' '.join(found['exec'].get('command') or ())}] {times}"
    if found.get("httpGet"):
        get = found["httpGet"]
        host = f"{get.get('host', '')}:{get.get('port', '')}"
        return f"http-get {get.get('scheme', 'HTTP').lower()}://{host}{get.get('path', '')} {times}"
    if found.get("tcpSocket"):
        return f"tcp-socket {found['tcpSocket'].get('host', '')}:{found['tcpSocket'].get('port', '')} {times}"
    if found.get("grpc"):
        grpc = found["grpc"]
        return f"grpc <pod>:{grpc.get('port')} {grpc.get('service') or ''} {times}"
    return f"unknown {times}"


def _environment(writer: Writer, container: dict[str, Any], level: int, pod: dict[str, Any] | None) -> None:
    sources = container.get("envFrom") or []
    if sources:
        writer.write(level, "  Environment Variables from:\n")
        for source in sources:
            for name, title in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if source.get(name):
                    prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
                    optional = "true" if source[name].get("optional") else "false"
                    writer.write(
                        level + 1, f"  {source[name].get('name', '')}\t{title}{prefix}\tOptional: {optional}\n"
                    )
    variables = container.get("env") or []
    if not variables:
        writer.write(level, "  Environment:\t<none>\n")
        return
    writer.write(level, "  Environment:\n")
    for each in variables:
        reference = each.get("valueFrom")
        if not reference:
            lines = (each.get("value") or "").split("\n")
            for at, line in enumerate(lines):
                writer.write(level + 1, f"  {each['name'] + ':' if not at else ''}\t{line}\n")
            continue
        writer.write(level + 1, f"  {each['name']}:\t{_reference(reference, pod)}\n")


def _metadata_field(pod: dict[str, Any] | None, path: str) -> str:
    """The value of a field of a pod's metadata, as the downward API gives it; nothing for other fields."""
    metadata = (pod or {}).get("metadata") or {}
    name, bracket, key = path.removeprefix("metadata.").partition("[")
    if not path.startswith("metadata.") or pod is None:
        return ""
    if name in ("labels", "annotations"):
        values = metadata.get(name) or {}
        if bracket:
            return str(values.get(key.strip("'\"]"), ""))
        from pybernetes.kubectl.data import go_quote

        return "\n".join(f"{each}={go_quote(str(values[each]))}" for each in sorted(values))
    return str(metadata.get(name, "")) if name in ("name", "namespace", "uid") else ""


def _reference(found: dict[str, Any], pod: dict[str, Any] | None = None) -> str:
    if found.get("fieldRef"):
        path = found["fieldRef"].get("fieldPath", "")
        return f"{_metadata_field(pod, path)} ({found['fieldRef'].get('apiVersion', 'v1')}:{path})"
    if found.get("resourceFieldRef"):
        return f" ({found['resourceFieldRef'].get('resource')})"
    for name, kind in (("secretKeyRef", "secret"), ("configMapKeyRef", "config map")):
        if found.get(name):
            optional = "true" if found[name].get("optional") else "false"
            where = f"{'in' if kind == 'secret' else 'of'} {kind} '{found[name].get('name', '')}'"
            return f"<set to the key '{found[name].get('key')}' {where}>  Optional: {optional}"
    return ""


def _mounts(writer: Writer, container: dict[str, Any], level: int) -> None:
    mounts = container.get("volumeMounts") or []
    if not mounts:
        writer.write(level, "  Mounts:\t<none>\n")
    else:
        writer.write(level, "  Mounts:\n")
        for mount in sorted(mounts, key=lambda each: str(each.get("mountPath"))):
            flags = ["ro" if mount.get("readOnly") else "rw"]
            if mount.get("subPath"):
                flags.append(f'path="{mount["subPath"]}"')
            writer.write(level + 1, f"  {mount.get('mountPath')} from {mount.get('name')} ({','.join(flags)})\n")
    devices = container.get("volumeDevices") or []
    if devices:
        writer.write(level, "  Devices:\n")
        for device in sorted(devices, key=lambda each: str(each.get("devicePath"))):
            writer.write(level + 1, f"  {device['devicePath']} from {device['name']}\n")


_VOLUMES: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "emptyDir": (
        "EmptyDir",
        "a temporary directory that shares a pod's lifetime",
        (("Medium", "medium"), ("SizeLimit", "sizeLimit")),
    ),
    "hostPath": ("HostPath", "bare host directory volume", (("Path", "path"), ("HostPathType", "type"))),
    "secret": ("Secret", "a volume populated by a Secret", (("SecretName", "secretName"), ("Optional", "optional"))),
    "configMap": ("ConfigMap", "a volume populated by a ConfigMap", (("Name", "name"), ("Optional", "optional"))),
    "persistentVolumeClaim": (
        "PersistentVolumeClaim",
        "a reference to a PersistentVolumeClaim in the same namespace",
        (("ClaimName", "claimName"), ("ReadOnly", "readOnly")),
    ),
    "nfs": (
        "NFS",
        "an NFS mount that lasts the lifetime of a pod",
        (("Server", "server"), ("Path", "path"), ("ReadOnly", "readOnly")),
    ),
    "csi": (
        "CSI",
        "a Container Storage Interface (CSI) volume source",
        (("Driver", "driver"), ("FSType", "fsType"), ("ReadOnly", "readOnly")),
    ),
    "image": ("Image", "a container image or OCI artifact", (("Reference", "reference"), ("PullPolicy", "pullPolicy"))),
}
_BOOLEANS = ("optional", "readOnly")


def volumes(writer: Writer, found: list[dict[str, Any]], level: int) -> None:
    """The volumes of a pod."""
    if not found:
        writer.write(level, "Volumes:\t<none>\n")
        return
    writer.write(level, "Volumes:\n")
    for volume in found:
        writer.write(level, f"{' ' if level else '  '}{volume['name']}:\n")
        inner = 1
        source = next((key for key in volume if key != "name"), "emptyDir")
        value = volume.get(source) or {}
        if source == "projected":
            _projected(writer, value, inner)
        elif source == "downwardAPI":
            writer.write(inner, "  Type:\tDownwardAPI (a volume populated by information about the pod)\n")
            writer.write(inner, "  Items:\n")
            for item in value.get("items") or ():
                if item.get("fieldRef"):
                    writer.write(inner + 1, f"  {item['fieldRef']['fieldPath']} -> {item['path']}\n")
                if item.get("resourceFieldRef"):
                    writer.write(inner + 1, f"  {item['resourceFieldRef']['resource']} -> {item['path']}\n")
        elif source in _VOLUMES:
            name, text, fields = _VOLUMES[source]
            writer.write(inner, f"  Type:\t{name} ({text})\n")
            for title, key in fields:
                shown = value.get(key)
                if key in _BOOLEANS:
                    shown = "true" if shown else "false"
                elif key == "sizeLimit":
                    shown = shown or "<unset>"
                writer.write(inner, f"  {title}:\t{shown if shown is not None else ''}\n")
            if source == "csi":
                writer.write(inner, f"  VolumeAttributes:\t{joined(value.get('volumeAttributes'))}\n")
        else:
            writer.write(inner, "  <unknown>\n")


def _projected(writer: Writer, value: dict[str, Any], level: int) -> None:
    writer.write(level, "  Type:\tProjected (a volume that contains injected data from multiple sources)\n")
    for source in value.get("sources") or ():
        if source.get("secret"):
            secret = source["secret"]
            writer.write(level, f"  SecretName:\t{secret.get('name', '')}\n")
            writer.write(level, f"  Optional:\t{'true' if secret.get('optional') else 'false'}\n")
        elif source.get("downwardAPI") is not None:
            writer.write(level, "  DownwardAPI:\ttrue\n")
        elif source.get("configMap"):
            config = source["configMap"]
            writer.write(level, f"  ConfigMapName:\t{config.get('name', '')}\n")
            writer.write(level, f"  Optional:\t{'true' if config.get('optional') else 'false'}\n")
        elif source.get("serviceAccountToken"):
            seconds = source["serviceAccountToken"].get("expirationSeconds", 3600)
            writer.write(level, f"  TokenExpirationSeconds:\t{seconds}\n")


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
        if each.get("labelSelector"):
            text += f" for selector {selector_text(each['labelSelector'])}"
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
        elif each.get("operator") in ("Gt", "Lt"):
            text += f" op={each['operator']}"
        if each.get("tolerationSeconds") is not None:
            text += f" for {each['tolerationSeconds']}s"
        writer.line(text)


def dig_statuses(pod: dict[str, Any], field: str) -> dict[str, Any]:
    """Container statuses by name."""
    return {each["name"]: each for each in dig(pod, "status", field, default=[])}
