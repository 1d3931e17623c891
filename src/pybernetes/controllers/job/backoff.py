"""How long a Job waits before it replaces failed pods: 10 s, 20 s, 40 s, ... 10 min, counted from the last failure.

A success starts the count anew. With `backoffLimitPerIndex` each index counts for itself, in an annotation of its pods,
so that the count outlives the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pybernetes.api.core.v1.pod import Pod

from . import pods

FIRST_DELAY: Final = 10.0
MAX_DELAY: Final = 600.0


class BackoffRecord(NamedTuple):
    """The failures of a Job since its last success."""

    failures: int = 0
    last_failure: float = 0.0

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> BackoffRecord:
        """The record when these pods have ended as well."""
        ends = sorted(pods.finished_at(pod) for pod in failed)
        if not succeeded:
            return BackoffRecord(self.failures + len(ends), ends[-1]) if ends else self
        last_success = max(pods.finished_at(pod) for pod in succeeded)
        later = [end for end in ends if end > last_success]
        return BackoffRecord(len(later), later[-1]) if later else BackoffRecord()

    def remaining(self, now: float) -> float:
        """Seconds until pods may be made again."""
        return remaining(self.failures, self.last_failure, now)


def remaining(failures: int, last_failure: float, now: float) -> float:
    """Seconds until pods may be made again after so many failures in a row."""
    if failures == 0:
        return 0.0
    # The exponent is bounded so that a huge count in an annotation costs nothing.
    delay = min(FIRST_DELAY * (1 << min(failures - 1, 16)), MAX_DELAY)
    return max(0.0, delay - (now - last_failure))


def remaining_for_index(last_failed: Pod | None, now: float) -> float:
    """Seconds until an index gets its next pod; `last_failed` is the pod that is to be replaced."""
    if last_failed is None:
        return 0.0
    return remaining(pods.index_failures(last_failed) + 1, pods.finished_at(last_failed), now)
