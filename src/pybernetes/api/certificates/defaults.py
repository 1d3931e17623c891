"""What is filled in for the kinds of certificates/v1: nothing but the zero values that are always written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import zeros

DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"CertificateSigningRequest": zeros.normalize}
