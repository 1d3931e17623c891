"""How fast an autoscaler may follow its metrics.

Of what was recommended in the last minutes the calmest counts (the stabilisation window), and no policy may be broken
that limits how many pods come or go in a period. Without `behavior`: not down before five minutes, and at most to the
double or to four at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from pybernetes.api.autoscaling.v2 import HorizontalPodAutoscalerBehavior, HPAScalingRules


class Outcome(NamedTuple):
    """A number of replicas, and the condition that tells why it is this one."""

    replicas: int
    reason: str
    message: str


@dataclass(slots=True)
class History:
    """The former recommendations and scalings of an autoscaler, with the times; in memory only, as upstream keeps
    it."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    ups: list[tuple[float, int]] = field(default_factory=list)
    """How many pods came."""
    downs: list[tuple[float, int]] = field(default_factory=list)
    """How many pods went."""

    def begin(self, current: int, now: float) -> None:
        """The first size seen counts as a recommendation."""
        if not self.recommendations:
            self.recommendations.append((now, current))

    def recommend(self, replicas: int, now: float, keep: float) -> None:
        """Note a recommendation, and forget those that are older than the longest window."""
        self.recommendations = [each for each in self.recommendations if each[0] >= now - keep] + [(now, replicas)]

    def scaled(self, behavior: HorizontalPodAutoscalerBehavior | None, before: int, after: int, now: float) -> None:
        """Note a change, if there are policies that ask for it."""
        if behavior is None:
            return
        if after > before:
            keep = _longest_period(behavior.scale_up)
            self.ups = [each for each in self.ups if each[0] >= now - keep] + [(now, after - before)]
        else:
            keep = _longest_period(behavior.scale_down)
            self.downs = [each for each in self.downs if each[0] >= now - keep] + [(now, before - after)]


def _longest_period(rules: HPAScalingRules | None) -> int:
    return max(((policy.period_seconds or 0) for policy in (rules.policies if rules else None) or ()), default=0)


_LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation"
_HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation"
_READY = ("ReadyForNewScale", "recommended size matches current size")
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def stabilize(
    history: History,
    behavior: HorizontalPodAutoscalerBehavior | None,
    *,
    current: int,
    desired: int,
    window: float,
    now: float,
) -> Outcome:
    """The calmest of the recent recommendations; `window` is how far back scaling down looks if nothing says so."""
    if behavior is None:
        recent = [number for time, number in history.recommendations if time >= now - window]
        result = max([desired, *recent])
        history.recommend(desired, now, window)
        return Outcome(result, *(("ScaleDownStabilized", _HIGHER) if result != desired else _READY))
    up = _window(behavior.scale_up, 0)
    down = _window(behavior.scale_down, window)
    lowest = min([desired, *(number for time, number in history.recommendations if time > now - up)])
    highest = max([desired, *(number for time, number in history.recommendations if time > now - down)])
    result = min(max(current, lowest), highest)
    history.recommend(desired, now, max(up, down))
    if result == desired:
        return Outcome(result, *_READY)
    return Outcome(result, *(("ScaleUpStabilized", _LOWER) if desired >= current else ("ScaleDownStabilized", _HIGHER)))


def _window(rules: HPAScalingRules | None, otherwise: float) -> float:
    seconds = rules.stabilization_window_seconds if rules else None
    return otherwise if seconds is None else seconds


def limit(
    history: History,
    behavior: HorizontalPodAutoscalerBehavior | None,
    *,
    current: int,
    desired: int,
    least: int,
    most: int,
    now: float,
) -> Outcome:
    """The number within the bounds and as far as the policies allow."""
    if behavior is None:
        fastest = max(2 * current, 4)
        if desired < least:
            return Outcome(least, *_TOO_FEW)
        if desired > min(most, fastest):
            return Outcome(min(most, fastest), *(_UP_LIMIT if most > fastest else _TOO_MANY))
    elif desired > current:
        fastest = max(current, _limit_up(history, behavior.scale_up or HPAScalingRules(), current, now))
        if desired > min(most, fastest):
            return Outcome(min(most, fastest), *(_UP_LIMIT if most > fastest else _TOO_MANY))
    elif desired < current:
        fastest = min(current, _limit_down(history, behavior.scale_down or HPAScalingRules(), current, now))
        if desired < max(least, fastest):
            return Outcome(max(least, fastest), *(_DOWN_LIMIT if least < fastest else _TOO_FEW))
    return Outcome(desired, *_WITHIN)


def _limit_up(history: History, rules: HPAScalingRules, current: int, now: float) -> int:
    if rules.select_policy == "Disabled":
        return current
    limits = []
    for policy in rules.policies or ():
        start, value = _at_start(history, current, policy.period_seconds or 0, now), policy.value or 0
        limits.append(start + value if policy.type == "Pods" else math.ceil(start * (1 + value / 100)))
    return (min if rules.select_policy == "Min" else max)(limits, default=current)


def _limit_down(history: History, rules: HPAScalingRules, current: int, now: float) -> int:
    if rules.select_policy == "Disabled":
        return current
    limits = []
    for policy in rules.policies or ():
        start, value = _at_start(history, current, policy.period_seconds or 0, now), policy.value or 0
        limits.append(start - value if policy.type == "Pods" else int(start * (1 - value / 100)))
    return (max if rules.select_policy == "Min" else min)(limits, default=current)


def _at_start(history: History, current: int, period: int, now: float) -> int:
    """How many replicas there were when the period began."""
    came = sum(number for time, number in history.ups if time > now - period)
    went = sum(number for time, number in history.downs if time > now - period)
    return current - came + went
