"""AppArmor: which profile a container gets, and whether this kernel can enforce one at all.

A pod that wants a profile on a node that cannot enforce it is refused: it must not run with less than it asks for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pybernetes.api.core.containers import all_containers
from pybernetes.api.core.v1 import AppArmorProfile, Pod, PodSpec

from ..pod.refusal import PodRefused
from ..runtime.types import AnyContainer

REASON: Final = "AppArmor"
ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
RUNTIME_DEFAULT: Final = "runtime/default"
UNCONFINED: Final = "unconfined"
LOCALHOST: Final = "localhost/"
_ENABLED: Final = "/sys/module/apparmor/parameters/enabled"


def enabled(file: str = _ENABLED) -> bool:
    """Whether the kernel enforces AppArmor profiles."""
    try:
        return Path(file).read_text().startswith("Y") and Path("/sys/kernel/security/apparmor").is_dir()
    except OSError:
        return False


def admit(pod: Pod, *, enabled: bool) -> None:
    """Raises `PodRefused` if a pod wants what this node cannot do."""
    if not is_required(pod):
        return
    if not enabled:
        raise PodRefused(REASON, "Cannot enforce AppArmor: AppArmor is not enabled on the host")
    for container in all_containers(pod.spec or PodSpec()):
        profile = profile_of(pod, container)
        if profile and profile.type == "Localhost" and not (profile.localhost_profile or "").strip():
            raise PodRefused(REASON, 'Cannot enforce AppArmor: invalid empty AppArmor profile name: ""')


def is_required(pod: Pod) -> bool:
    """Whether anything of a pod is to be confined."""
    spec = pod.spec or PodSpec()
    of_pod = spec.security_context.app_armor_profile if spec.security_context else None
    profiles = [of_pod] + [
        each.security_context.app_armor_profile for each in all_containers(spec) if each.security_context
    ]
    if any(profile is not None and profile.type != "Unconfined" for profile in profiles):
        return True
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    return any(key.startswith(ANNOTATION) and value != UNCONFINED for key, value in annotations.items())


def profile_of(pod: Pod, container: AnyContainer) -> AppArmorProfile | None:
    """The container's own profile, that of its old annotation (static pods have no fields for it), or the pod's."""
    own = container.security_context
    if own is not None and own.app_armor_profile is not None:
        return own.app_armor_profile
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    match annotations.get(f"{ANNOTATION}{container.name}"):
        case str(value) if value == RUNTIME_DEFAULT:
            return AppArmorProfile(type="RuntimeDefault")
        case str(value) if value == UNCONFINED:
            return AppArmorProfile(type="Unconfined")
        case str(value) if value.startswith(LOCALHOST):
            return AppArmorProfile(type="Localhost", localhost_profile=value.removeprefix(LOCALHOST))
    context = pod.spec.security_context if pod.spec else None
    return context.app_armor_profile if context else None
