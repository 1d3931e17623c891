"""The checks of the level restricted: what a hardened pod has to say about itself."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.containers import AnyContainer, all_containers
from pybernetes.api.core.v1 import PodSpec

from .baseline import seccomp
from .wording import Annotations, Violation, named, offending, plural, quoted, setters

_VOLUMES: Final = (
    "config_map",
    "csi",
    "downward_api",
    "empty_dir",
    "ephemeral",
    "image",
    "persistent_volume_claim",
    "projected",
    "secret",
)
_OTHER_VOLUMES: Final = {
    "host_path": "hostPath",
    "gce_persistent_disk": "gcePersistentDisk",
    "aws_elastic_block_store": "awsElasticBlockStore",
    "git_repo": "gitRepo",
    "nfs": "nfs",
    "iscsi": "iscsi",
    "glusterfs": "glusterfs",
    "rbd": "rbd",
    "flex_volume": "flexVolume",
    "cinder": "cinder",
    "cephfs": "cephfs",
    "flocker": "flocker",
    "fc": "fc",
    "azure_file": "azureFile",
    "vsphere_volume": "vsphereVolume",
    "quobyte": "quobyte",
    "azure_disk": "azureDisk",
    "photon_persistent_disk": "photonPersistentDisk",
    "portworx_volume": "portworxVolume",
    "scale_io": "scaleIO",
    "storageos": "storageos",
}


def escalation(_: Annotations, spec: PodSpec) -> Violation | None:
    """No process gains more rights than its parent."""
    bad = offending(
        spec,
        lambda each: each.security_context is None or each.security_context.allow_privilege_escalation is not False,
    )
    if not bad:
        return None
    return (
        "allowPrivilegeEscalation != false",
        f"{named(bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


def few_capabilities(_: Annotations, spec: PodSpec) -> Violation | None:
    """All capabilities are dropped; the one to bind low ports may come back."""
    keeping: list[str] = []
    adding: list[str] = []
    added: set[str] = set()
    for container in all_containers(spec):
        context = container.security_context
        capabilities = context.capabilities if context is not None else None
        if capabilities is None or "ALL" not in (capabilities.drop or ()):
            keeping.append(container.name or "")
        more = set((capabilities.add if capabilities is not None else None) or ()) - {"NET_BIND_SERVICE"}
        if more:
            adding.append(container.name or "")
            added.update(more)
    texts = []
    if keeping:
        texts.append(f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        texts.append(f"{named(adding)} must not include {quoted(sorted(added))} in securityContext.capabilities.add")
    return ("unrestricted capabilities", "; ".join(texts)) if texts else None


def few_volumes(_: Annotations, spec: PodSpec) -> Violation | None:
    """Only volumes that are made for pods."""
    bad: list[str] = []
    kinds: set[str] = set()
    for volume in spec.volumes or ():
        if any(getattr(volume, name) is not None for name in _VOLUMES):
            continue
        bad.append(volume.name or "")
        kinds.add(
            next((shown for name, shown in _OTHER_VOLUMES.items() if getattr(volume, name) is not None), "unknown")
        )
    if not bad:
        return None
    what = f"{plural('uses', bad, 'use')} {plural('restricted volume type', kinds)} {quoted(sorted(kinds))}"
    return "restricted volume types", f"{plural('volume', bad)} {quoted(bad)} {what}"


def non_root(_: Annotations, spec: PodSpec) -> Violation | None:
    """Containers promise not to run as root."""
    short = "runAsNonRoot != true"
    of_pod = spec.security_context.run_as_non_root if spec.security_context is not None else None

    def said(container: AnyContainer) -> bool | None:
        return container.security_context.run_as_non_root if container.security_context is not None else None

    who = setters(of_pod is False, offending(spec, lambda each: said(each) is False))
    if who:
        return short, f"{who} must not set securityContext.runAsNonRoot=false"
    silent = [] if of_pod else offending(spec, lambda each: said(each) is None)
    return (short, f"pod or {named(silent)} must set securityContext.runAsNonRoot=true") if silent else None


def non_zero_user(_: Annotations, spec: PodSpec) -> Violation | None:
    """Containers do not ask to run as root."""

    def wrong(context: Any) -> bool:
        return context is not None and context.run_as_user == 0

    who = setters(wrong(spec.security_context), offending(spec, lambda each: wrong(each.security_context)))
    return ("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_required(annotations: Annotations, spec: PodSpec) -> Violation | None:
    """A seccomp profile is set, and is not Unconfined."""
    found = seccomp(annotations, spec)
    if found is not None:
        return found
    if spec.security_context is not None and spec.security_context.seccomp_profile is not None:
        return None
    silent = offending(
        spec, lambda each: each.security_context is None or each.security_context.seccomp_profile is None
    )
    if not silent:
        return None
    values = '"RuntimeDefault" or "Localhost"'
    return "seccompProfile", f"pod or {named(silent)} must set securityContext.seccompProfile.type to {values}"
