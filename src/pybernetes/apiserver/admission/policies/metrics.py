"""Metrics of policies, with upstream's names."""

from __future__ import annotations

from ...counters import Counter, Histogram
from ...metrics import COLLECTORS

_LABELS = ("policy", "policy_binding", "error_type", "enforcement_action")
_BUCKETS = (0.0000005, 0.001, 0.01, 0.1, 1.0)


class PolicyMetrics:
    """Checks by policy and binding, and what became of the request."""

    def __init__(self, subsystem: str) -> None:
        self._checks = Counter(f"apiserver_{subsystem}_check_total", "Checks by policies.", _LABELS)
        self._durations = Histogram(
            f"apiserver_{subsystem}_check_duration_seconds", "How long checks took.", _LABELS, _BUCKETS
        )
        COLLECTORS.append(self._checks.collect)
        COLLECTORS.append(self._durations.collect)

    def observe(self, policy: str, binding: str, message: str, action: str, seconds: float) -> None:
        """A policy was checked."""
        labels = (policy, binding, _error_type(message), action)
        self._checks.add(*labels)
        self._durations.observe(seconds, *labels)


def _error_type(message: str) -> str:
    if not message:
        return "no_error"
    if message.startswith("compilation"):
        return "compile_error"
    return "out_of_budget" if "running out of cost budget" in message else "invalid_error"
