"""With which of its bindings, and with which parameters, a policy is to be evaluated for a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from pybernetes.api.errors import APIError

from ..plugin import Attributes
from .params import Misconfigured, collect
from .table import Binding, Hook

if TYPE_CHECKING:
    from pybernetes.api.resources import Resource

    from ...registry.registry import Registry


async def invocations(
    hook: Hook[Any], attributes: Attributes, registry: Registry, failed: Callable[[str, str], None]
) -> AsyncIterator[tuple[Binding, Resource, Any]]:
    """Bindings that are about the request, once for each of their parameters, and the resource as the policy means it.

    Errors are reported to `failed` (the binding's name, if it is one's fault, and the reason), unless the policy
    ignores failures.
    """
    ignores = hook.evaluator.ignores
    try:
        target = await hook.constraints.target(attributes, registry)
    except APIError as error:
        if not ignores:
            failed("", f"failed to configure policy: {error.message}")
        return
    if target is None:
        return
    for binding in hook.bindings:
        try:
            if binding.constraints is not None and await binding.constraints.target(attributes, registry) is None:
                continue
            params = await collect(registry, hook.spec.param_kind, binding.spec.param_ref, attributes.namespace)
        except (APIError, Misconfigured) as error:
            if not ignores:
                failed(binding.name, f"failed to configure binding: {error}")
            continue
        for each in params:
            yield binding, target, each
