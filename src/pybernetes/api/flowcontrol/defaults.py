"""Defaults for the kinds of flowcontrol/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v1 import FlowSchema, FlowSchemaSpec, PriorityLevelConfiguration

MATCHING_PRECEDENCE: Final = 1000
NOMINAL_CONCURRENCY_SHARES: Final = 30
QUEUES: Final = 64
HAND_SIZE: Final = 8
QUEUE_LENGTH_LIMIT: Final = 50


def default_flow_schema(obj: FlowSchema) -> None:
    """In the middle of all schemas."""
    if obj.spec is None:
        obj.spec = FlowSchemaSpec()
    obj.spec.matching_precedence = obj.spec.matching_precedence or MATCHING_PRECEDENCE


def default_priority_level_configuration(obj: PriorityLevelConfiguration) -> None:
    """Thirty shares, of which none is lent; the queues of upstream's own levels."""
    if obj.spec is None:
        return
    limited, exempt = obj.spec.limited, obj.spec.exempt
    if limited is not None:
        if limited.nominal_concurrency_shares is None:
            limited.nominal_concurrency_shares = NOMINAL_CONCURRENCY_SHARES
        if limited.lendable_percent is None:
            limited.lendable_percent = 0
        queuing = limited.limit_response.queuing if limited.limit_response else None
        if queuing is not None:
            queuing.hand_size = queuing.hand_size or HAND_SIZE
            queuing.queues = queuing.queues or QUEUES
            queuing.queue_length_limit = queuing.queue_length_limit or QUEUE_LENGTH_LIMIT
    if exempt is not None:
        if exempt.nominal_concurrency_shares is None:
            exempt.nominal_concurrency_shares = 0
        if exempt.lendable_percent is None:
            exempt.lendable_percent = 0


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "FlowSchema": default_flow_schema,
    "PriorityLevelConfiguration": default_priority_level_configuration,
}
