"""Validation of the core group; one module a subject, loaded when needed."""

from __future__ import annotations

from typing import Final

from ...kindtable import KindTable
from ..modules import MODULES

CREATE: Final = KindTable(__name__, "CREATE", MODULES)
UPDATE: Final = KindTable(__name__, "UPDATE", MODULES)
STATUS_UPDATE: Final = KindTable(__name__, "STATUS_UPDATE", MODULES)
