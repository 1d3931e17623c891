"""FlowSchemas, in the order in which requests are matched, and priority levels."""

from __future__ import annotations

from typing import Final

from pybernetes.api.flowcontrol.v1 import (
    FlowSchema,
    FlowSchemaSpec,
    LimitedPriorityLevelConfiguration,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
)

from .printer import AGE, NAME, NONE, Cells, Printer, age, name, text


def _flow_schema(schema: FlowSchema, now: float) -> Cells:
    spec = schema.spec or FlowSchemaSpec()
    level, method = spec.priority_level_configuration, spec.distinguisher_method
    conditions = (schema.status.conditions if schema.status else None) or ()
    return [
        name(schema),
        (level.name if level else None) or "",
        spec.matching_precedence or 0,
        NONE if method is None else method.type or "",
        age(schema, now),
        next((each.status or "" for each in conditions if each.type == "Dangling"), "?"),
    ]


def _precedence(schema: FlowSchema) -> tuple[int, str]:
    return (schema.spec.matching_precedence if schema.spec else None) or 0, name(schema)


def _priority_level(level: PriorityLevelConfiguration, now: float) -> Cells:
    spec = level.spec or PriorityLevelConfigurationSpec()
    return [name(level), spec.type or "", *_limits(spec.limited), age(level, now)]


def _limits(limited: LimitedPriorityLevelConfiguration | None) -> Cells:
    if limited is None:
        return [NONE] * 4
    queuing = limited.limit_response.queuing if limited.limit_response else None
    queues: Cells = [NONE] * 3
    if queuing is not None:
        queues = [queuing.queues or 0, queuing.hand_size or 0, queuing.queue_length_limit or 0]
    return [limited.nominal_concurrency_shares or 0, *queues]


PRINTERS: Final[dict[str, Printer]] = {
    "FlowSchema": Printer(
        (
            NAME,
            text("PriorityLevel", "Where its requests go"),
            text("MatchingPrecedence", "The lower, the earlier it is tried"),
            text("DistinguisherMethod", "What makes requests different flows"),
            AGE,
            text("MissingPL", "Whether the priority level is missing"),
        ),
        _flow_schema,
        order=_precedence,
    ),
    "PriorityLevelConfiguration": Printer(
        (
            NAME,
            text("Type", "Limited or exempt"),
            text("NominalConcurrencyShares", "Its share of what runs at once"),
            text("Queues", "Number of queues"),
            text("HandSize", "Queues dealt to a flow"),
            text("QueueLengthLimit", "Requests that fit in a queue"),
            AGE,
        ),
        _priority_level,
    ),
}
