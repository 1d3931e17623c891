"""The table of kubectl's commands: the module of each, and the help group that lists it."""

from __future__ import annotations

# name -> (module, group of `kubectl help`, one line)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "get": ("get", "Basic Commands (Intermediate)", "Display one or many resources"),
}
