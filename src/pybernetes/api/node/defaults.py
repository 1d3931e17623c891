"""What is filled in for a RuntimeClass: the handler that upstream always writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..omitempty import drop
from .v1 import RuntimeClass


def default_runtime_class(runtime_class: RuntimeClass) -> None:
    """A handler, be it empty."""
    drop(runtime_class)
    if runtime_class.handler is None:
        runtime_class.handler = ""


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"RuntimeClass": default_runtime_class}
