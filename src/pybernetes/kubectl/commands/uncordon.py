"""`kubectl uncordon`: marks nodes as schedulable."""

from __future__ import annotations

from pybernetes.kubectl.cordoning import command

COMMAND = command("uncordon", "Mark node as schedulable", False)
