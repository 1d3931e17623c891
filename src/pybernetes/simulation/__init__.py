"""Deterministic simulation: a whole cluster in one process, decided by a seed.

API server, controllers, scheduler, simulated nodes and the user's own asyncio controller run on one event loop, with
virtual time, seeded randomness and a network in memory that delays and breaks connections. The same seed shall give the
same run to the byte; today the times of two runs may differ by microseconds.

- `simulate`: the decorator for tests; `Simulation`, what a scenario holds in its hand
- `runner`: runs seeds, makes a failing one small, says what happened (in the process of the test)
- `process`: the process that seeds are forked from
- `world`: components, faults and checks inside of it; `faults`: what a seed decides; `invariants`: what always holds
- `determinism`: randomness and threads of that process
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pybernetes.simulation.faults import Faults as Faults
    from pybernetes.simulation.runner import SimulationFailed as SimulationFailed
    from pybernetes.simulation.runner import simulate as simulate
    from pybernetes.simulation.world import Simulation as Simulation

_WHERE = {"Faults": "faults", "SimulationFailed": "runner", "simulate": "runner", "Simulation": "world"}


def __getattr__(name: str) -> Any:
    """Imported when asked for: who writes a scenario needs none of the cluster in his own process."""
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(name)
    return getattr(import_module(f"pybernetes.simulation.{_WHERE[name]}"), name)
