"""A plugin of the scheduler: nodes labelled example.com/maintenance=true get no pods."""

from __future__ import annotations

from pybernetes.scheduler.framework import UNRESOLVABLE, FilterPlugin, Scope, Status

LABEL = "example.com/maintenance"


class Maintenance(FilterPlugin):
    """Filters all nodes at once."""

    name = "Maintenance"
    scope = Scope.ROW

    def sign(self, pod):
        return ()  # the same answer for all pods

    def filter(self, state, pod, rows):
        snapshot = self.handle.snapshot
        return snapshot.label(LABEL)[rows] != snapshot.value_id("true")

    def refusals(self, state, pod, rows):
        return [(Status(UNRESOLVABLE, "node(s) were in maintenance"), rows)]
