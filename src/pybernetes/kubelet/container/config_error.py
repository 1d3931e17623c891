"""Why a container cannot even be described to the runtime."""

from __future__ import annotations


class ConfigError(Exception):
    """Its status says CreateContainerConfigError with this text."""
