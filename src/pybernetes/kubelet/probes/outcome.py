"""The result of one attempt of a probe."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """How an attempt ended, with the words that events use."""

    SUCCESS = "success"
    WARNING = "warning"
    """Good, but the user should know something."""
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict and the text that belongs to it."""

    verdict: Verdict
    output: str = ""


class ProbeError(Exception):
    """The container could not be asked, which says nothing about it."""

    def __init__(self, message: str, state: Verdict = Verdict.UNKNOWN) -> None:
        super().__init__(message)
        self.state = state
