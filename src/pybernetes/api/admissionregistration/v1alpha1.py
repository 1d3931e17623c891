"""The kinds of admissionregistration/v1alpha1: initializers, which see new objects before other clients.

Upstream had this from 1.7 to 1.15. It is served if --runtime-config says so.
"""

from __future__ import annotations

from typing import Annotated

from ..base import Kind, Struct
from ..types import Always, ListType, Patch, Required


class InitializerConfiguration(Kind):
    """Initializers that are put into new objects, in this order."""

    initializers: Annotated[list[Initializer] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None


class Initializer(Struct):
    """Somebody who looks at new objects, and at which."""

    name: Annotated[str | None, Required, Always("")] = None
    rules: Annotated[list[Rule] | None, ListType("atomic")] = None


class Rule(Struct):
    """Resources of groups in versions; `*` is all of them."""

    api_groups: Annotated[list[str] | None, ListType("atomic")] = None
    api_versions: Annotated[list[str] | None, ListType("atomic")] = None
    resources: Annotated[list[str] | None, ListType("atomic")] = None
