"""Values that say nothing: Go leaves out a flag that is false, a text that is empty and a list without elements.

Only where Go has no pointer: `hostNetwork: false` is what everybody means by saying nothing, `hostUsers: false` is not.
The tables are of what people do write into manifests, so that they read back what an upstream server would show.
"""

from __future__ import annotations

from typing import Any, Final

META: Final = ("labels", "annotations", "owner_references", "finalizers", "generate_name")
POD_SPEC: Final = (
    "volumes",
    "init_containers",
    "ephemeral_containers",
    "node_selector",
    "node_name",
    "host_network",
    "host_pid",
    "host_ipc",
    "image_pull_secrets",
    "hostname",
    "subdomain",
    "tolerations",
    "host_aliases",
    "priority_class_name",
    "readiness_gates",
    "overhead",
    "topology_spread_constraints",
    "scheduling_gates",
    "resource_claims",
)
CONTAINER: Final = (
    "image",
    "command",
    "args",
    "working_dir",
    "ports",
    "env_from",
    "env",
    "resize_policy",
    "restart_policy_rules",
    "volume_mounts",
    "volume_devices",
    "stdin",
    "stdin_once",
    "tty",
)
RESOURCES: Final = ("limits", "requests", "claims")
PORT: Final = ("name", "host_port", "host_ip")
MOUNT: Final = ("read_only", "sub_path", "sub_path_expr")
TOLERATION: Final = ("key", "operator", "value", "effect")
SECURITY: Final = ("supplemental_groups", "sysctls")
CAPABILITIES: Final = ("add", "drop")


def drop_empty(obj: Any, names: tuple[str, ...]) -> None:
    """Take away the fields of these names that say nothing."""
    for name in names:
        value = getattr(obj, name)
        if value is not None and not value:
            setattr(obj, name, None)
