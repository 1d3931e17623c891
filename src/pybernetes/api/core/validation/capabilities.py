"""Cluster-wide permissions of pods, set once when the API server starts (`--allow-privileged`)."""

from __future__ import annotations

import msgspec


class Capabilities(msgspec.Struct):
    """Set before the first pod is judged and not changed afterwards: verdicts about pods are remembered."""

    allow_privileged: bool = True
    enforces_network_policy: bool = True


CAPABILITIES = Capabilities()
