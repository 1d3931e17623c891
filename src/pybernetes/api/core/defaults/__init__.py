"""Defaults for the core group; one module a subject, loaded when needed."""

from __future__ import annotations

from typing import Final

from ...kindtable import KindTable
from ..modules import MODULES

DEFAULTS: Final = KindTable(__name__, "DEFAULTS", MODULES)
