"""The pending initializers of an object; part of its metadata if the feature is on."""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Always, ListType, Patch, Required
from .status import Status


class Initializers(Struct):
    """Who has to look at the object, in this order, and whether one of them has refused it."""

    pending: Annotated[list[Initializer] | None, Required, ListType("map", keys=("name",)), Patch("merge", "name")] = (
        None
    )
    result: Status | None = None


class Initializer(Struct):
    """Somebody who looks at new objects."""

    name: Annotated[str | None, Required, Always("")] = None
