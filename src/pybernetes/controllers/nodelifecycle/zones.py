"""How fast nodes may be evicted from each zone. No IO.

When many nodes of a zone seem to be lost, the fault may be ours: the network between them and us. So evictions slow
down in a zone where most nodes are lost, and stop everywhere when no node at all is heard of. A zone that is lost
while others are well is evicted at the usual rate: its pods can run elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class ZoneState(StrEnum):
    """Of how many nodes of a zone we hear."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


@dataclass(frozen=True, slots=True)
class Rates:
    """The flags: nodes per second, and when they apply."""

    normal: float = 0.1
    secondary: float = 0.01
    large_cluster: int = 50
    unhealthy_zone: float = 0.55

    def of(self, state: ZoneState, nodes: int) -> float:
        """Nodes per second in a zone of this state and size; 0 = none. Small zones wait instead of moving on."""
        if state is ZoneState.PARTIAL_DISRUPTION:
            return self.secondary if nodes > self.large_cluster else 0.0
        return self.normal


def zone_state(ready: Sequence[bool], threshold: float) -> ZoneState:
    """The state of a zone whose nodes are ready or not. One or two lost nodes are never a disruption."""
    lost = ready.count(False)
    if lost and lost == len(ready):
        return ZoneState.FULL_DISRUPTION
    if lost > 2 and lost / len(ready) >= threshold:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


@dataclass(slots=True)
class Verdict:
    """The states and eviction rates of zones."""

    states: dict[str, ZoneState]
    rates: dict[str, float] = field(default_factory=dict)
    """For zones whose rate is to be set."""
    stopped: bool = False
    """No node is heard of any more: all NoExecute taints of ours go."""
    resumed: bool = False
    """Some are heard of again: all others get their grace period anew, because it was we who did not hear."""


def judge(before: Mapping[str, ZoneState], zones: Mapping[str, Sequence[bool]], rates: Rates) -> Verdict:
    """The states of the zones after a look at all nodes, given the states before."""
    old = {zone: before.get(zone, ZoneState.INITIAL) for zone in zones}
    new = {zone: zone_state(ready, rates.unhealthy_zone) for zone, ready in zones.items()}
    was_lost = all(state is ZoneState.FULL_DISRUPTION for state in old.values())
    is_lost = all(state is ZoneState.FULL_DISRUPTION for state in new.values())
    if is_lost and was_lost:
        return Verdict(new)
    if is_lost:
        return Verdict(new, dict.fromkeys(new, 0.0), stopped=True)
    changed = {
        zone: rates.of(state, len(zones[zone])) for zone, state in new.items() if was_lost or old[zone] is not state
    }
    return Verdict(new, changed, resumed=was_lost)
