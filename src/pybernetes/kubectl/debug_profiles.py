"""The profiles of `kubectl debug`: which rights the debugging container gets, and what a copied pod keeps.

A profile is a row of the table: security settings of the container, and for a node whether the pod sees the node's
namespaces and files. Copies of pods lose labels, annotations, probes and on request init containers, so that services
and controllers do not take them for the original.
"""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.flags import Flags

NODE, COPY, EPHEMERAL = "node", "copy", "ephemeral"


class Profile:
    """One row: settings for the container's securityContext, and what a node's pod shares with the node."""

    def __init__(
        self,
        settings: dict[str, Any] | None = None,
        *,
        add: tuple[str, ...] = (),
        add_on_node: bool = True,
        clears: bool = False,
        host_namespaces: bool = False,
        host_files: bool = False,
    ) -> None:
        self.settings = settings or {}
        self.add = add
        self.add_on_node = add_on_node
        self.clears = clears
        self.host_namespaces = host_namespaces
        self.host_files = host_files


PROFILES = {
    "legacy": Profile(host_namespaces=True, host_files=True),
    "general": Profile(add=("SYS_PTRACE",), add_on_node=False, host_namespaces=True, host_files=True),
    "baseline": Profile(clears=True),
    "restricted": Profile(
        {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        clears=True,
    ),
    "netadmin": Profile(add=("NET_ADMIN", "NET_RAW"), host_namespaces=True),
    "sysadmin": Profile({"privileged": True}, host_namespaces=True, host_files=True),
}


def profile(name: str) -> Profile:
    """A profile by its name. Raises CLIError."""
    found = PROFILES.get(name)
    if found is None:
        raise CLIError(f"unknown profile: {name}")
    return found


def apply(flags: Flags, pod: dict[str, Any], container: dict[str, Any], target: str) -> None:
    """Changes a pod and its debugging container as the profile of `--profile` asks for a target."""
    name = flags.text("profile")
    chosen = profile(name)
    if chosen.clears:
        container.pop("securityContext", None)
    if chosen.settings:
        container.setdefault("securityContext", {}).update(chosen.settings)
    if chosen.add and (target != NODE or chosen.add_on_node):
        capabilities = container.setdefault("securityContext", {}).setdefault("capabilities", {})
        capabilities["add"] = [*(capabilities.get("add") or ()), *chosen.add]
    spec = pod["spec"]
    if target == NODE:
        if chosen.host_namespaces:
            spec.update(hostNetwork=True, hostPID=True, hostIPC=True)
        if chosen.host_files:
            spec["volumes"] = [{"name": "host-root", "hostPath": {"path": "/"}}]
            container["volumeMounts"] = [{"name": "host-root", "mountPath": "/host"}]
    elif target == COPY:
        _strip(flags, pod, legacy=name == "legacy")


def _strip(flags: Flags, pod: dict[str, Any], legacy: bool) -> None:
    """Removes from a copied pod what would make others take it for the original."""
    metadata, spec = pod["metadata"], pod["spec"]
    if legacy or not flags.on("keep-labels"):
        metadata.pop("labels", None)
    if legacy:
        return
    if not flags.on("keep-annotations"):
        metadata.pop("annotations", None)
    for each in spec.get("containers") or ():
        for kind in ("liveness", "readiness", "startup"):
            if not flags.on(f"keep-{kind}"):
                each.pop(f"{kind}Probe", None)
    if not flags.on("keep-init-containers"):
        spec.pop("initContainers", None)
    spec.setdefault("shareProcessNamespace", True)


def warns_of_user(pod: dict[str, Any], container: dict[str, Any]) -> bool:
    """Whether the rights of the profile may not work because the whole pod runs as another user than root."""
    context = container.get("securityContext") or {}
    if not (((pod.get("spec") or {}).get("securityContext") or {}).get("runAsUser")) or context.get("runAsUser") == 0:
        return False
    return bool(context.get("privileged") or (context.get("capabilities") or {}).get("add"))
