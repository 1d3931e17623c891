"""Events: which rules hold depends on the group through which they come."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.validation.event import validate_new_event, validate_new_event_update
from pybernetes.api.field import FieldError
from pybernetes.apiserver.registry.strategy import Context, Strategy

NEW_GROUP: Final = "events.k8s.io"


class EventStrategy(Strategy):
    """An Event may be created by an update, and has no dependents."""

    allow_create_on_update = True
    collects_garbage = False
    covers_metadata = False

    def validate(self, obj: Any, context: Context) -> list[FieldError]:
        return validate_new_event(obj) if context.group == NEW_GROUP else super().validate(obj, context)

    def validate_update(self, new: Any, old: Any, context: Context) -> list[FieldError]:
        if context.group == NEW_GROUP:
            return validate_new_event_update(new, old)
        return super().validate_update(new, old, context)


STRATEGIES: Final[dict[str, type[Strategy]]] = {"events": EventStrategy}
