"""ConfigMaps and Secrets: how many entries, never what is in them."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import ConfigMap, Secret

from ..printer import AGE, NAME, Cells, Printer, age, name, text

_DATA: Final = text("Data", "Number of entries")


def _config_map(config: ConfigMap, now: float) -> Cells:
    return [name(config), len(config.data or ()) + len(config.binary_data or ()), age(config, now)]


def _secret(secret: Secret, now: float) -> Cells:
    return [name(secret), secret.type or "", len(secret.data or ()), age(secret, now)]


CONFIG_MAP: Final = Printer((NAME, _DATA, AGE), _config_map)
SECRET: Final = Printer((NAME, text("Type", "What the entries are for"), _DATA, AGE), _secret)
