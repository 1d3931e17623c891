"""Validates names of containers, networks and interfaces: they become file names, chains and links."""

from __future__ import annotations

import re

from .errors import INVALID_ENVIRONMENT, INVALID_NETWORK_CONFIG, UNKNOWN_CONTAINER, CNIError

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*\Z")
_LONGEST_INTERFACE = 15  # IFNAMSIZ of the kernel, less the terminating zero


def check_container_id(container_id: str) -> None:
    """Refuses an id that is missing or could leave the folder it becomes a file in."""
    if not container_id:
        raise CNIError("missing containerID", UNKNOWN_CONTAINER)
    if not _NAME.match(container_id):
        raise CNIError("invalid characters in containerID", INVALID_ENVIRONMENT, container_id)


def check_network_name(name: str) -> None:
    """Refuses a network's name that is missing or has other characters than names may have."""
    if not name:
        raise CNIError("missing network name:", INVALID_NETWORK_CONFIG)
    if not _NAME.match(name):
        raise CNIError("invalid characters found in network name", INVALID_NETWORK_CONFIG, name)


def check_interface_name(name: str) -> None:
    """Refuses what the kernel would refuse as the name of a link."""
    if not name:
        raise CNIError("interface name is empty", INVALID_ENVIRONMENT)
    if len(name.encode()) > _LONGEST_INTERFACE:
        details = f"interface name should be less than {_LONGEST_INTERFACE + 1} characters"
        raise CNIError("interface name is too long", INVALID_ENVIRONMENT, details)
    if name in (".", ".."):
        raise CNIError("interface name is . or ..", INVALID_ENVIRONMENT)
    if any(char in "/:" or char.isspace() for char in name):
        raise CNIError("interface name contains / or : or whitespace characters", INVALID_ENVIRONMENT)
