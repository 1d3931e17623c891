"""Pods say nothing about users, groups and SELinux. Upstream had it until v1.30; PodSecurity does more."""

from __future__ import annotations

from pybernetes.api.core.v1 import Pod, PodSpec

from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

_OF_POD = (
    ("supplemental_groups", "SupplementalGroups"),
    ("se_linux_options", "SELinuxOptions"),
    ("run_as_user", "RunAsUser"),
    ("fs_group", "FSGroup"),
)
_OF_CONTAINER = (("se_linux_options", "SELinuxOptions"), ("run_as_user", "RunAsUser"))


class SecurityContextDeny(Plugin):
    """Upstream's SecurityContextDeny, as it was last."""

    name = "SecurityContextDeny"
    operations = (CREATE, UPDATE)
    resources = ("pods",)

    def validate(self, attributes: Attributes) -> None:
        pod: Pod = attributes.new
        spec = pod.spec or PodSpec()
        for field, name in _OF_POD:
            if spec.security_context is not None and getattr(spec.security_context, field) is not None:
                raise forbidden(attributes, f"pod.Spec.SecurityContext.{name} is forbidden")
        for container in (*(spec.init_containers or ()), *(spec.containers or ())):
            for field, name in _OF_CONTAINER:
                if container.security_context is not None and getattr(container.security_context, field) is not None:
                    raise forbidden(attributes, f"SecurityContext.{name} is forbidden")
