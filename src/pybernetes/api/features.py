"""Old alpha features that upstream no longer has by default, enabled by name for this process.

Kinds are made when their modules are imported, so that a field that only a feature has must be known to be wanted
before. The environment says so: the caller that wants a feature sets it and begins anew (`apiserver.command`), and
processes that are started from there know it as well. Without it nothing of the feature is there at all.
"""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "PYBERNETES_ALPHA_FEATURES"
INITIALIZERS_NAME: Final = "Initializers"

INITIALIZERS: Final = INITIALIZERS_NAME in os.environ.get(VARIABLE, "").split(",")
"""`metadata.initializers`, and objects that are hidden until that is empty."""
