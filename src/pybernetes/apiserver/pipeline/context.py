"""The `Context` of a request, which every stage gets: for strategies and admission."""

from __future__ import annotations

from typing import Any

from pybernetes.api.times import rfc3339
from pybernetes.net.http import Request

from ..registry.registry import Registry
from ..registry.strategy import Context


def context_for(
    registry: Registry, request: Request, *, dry_run: bool, field_manager: str = "", options: Any = None
) -> Context:
    """The context of a request for strategies and admission."""
    info = request.info
    return Context(
        registry,
        request.user,
        rfc3339(registry.clock.now()),
        info.namespace,
        dry_run,
        field_manager,
        request.warnings,
        info.subresource,
        group=info.group,
        options=options,
        name=info.name,
        annotations=None if request.audit is None else request.audit.annotations,
        verb=info.verb,
    )
