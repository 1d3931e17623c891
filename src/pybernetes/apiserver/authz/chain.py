"""The authorizers of a server, in the order of its flags; system:masters always comes first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .authorizer import AlwaysAllow, AlwaysDeny, Authorizer
from .privileged import PrivilegedGroups

if TYPE_CHECKING:
    from ..registry.registry import Registry


def authorizers(registry: Registry, options: argparse.Namespace) -> list[Authorizer]:
    """One for each mode."""
    return [PrivilegedGroups(), *[_authorizer(mode, registry, options) for mode in options.authorization_mode]]


def _authorizer(mode: str, registry: Registry, options: argparse.Namespace) -> Authorizer:
    if mode == "AlwaysAllow":
        return AlwaysAllow()
    if mode == "AlwaysDeny":
        return AlwaysDeny()
    if mode == "RBAC":
        from .rbac import RBAC

        return RBAC(registry)
    if mode == "Node":
        from .node.authorizer import NodeAuthorizer

        return NodeAuthorizer(registry)
    raise ValueError(f"authorization mode {mode} is not supported")
