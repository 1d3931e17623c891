"""`kubectl cordon`: marks nodes as unschedulable."""

from __future__ import annotations

from pybernetes.kubectl.cordoning import command

COMMAND = command("cordon", "Mark node as unschedulable", True)
