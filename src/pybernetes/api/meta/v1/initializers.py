"""The pending initializers of an object; part of its metadata if the feature is on."""

from __future__ import annotations

from typing import Annotated

from ...base import Struct
from ...types import Always, ListType, Patch, Required
from .status import Status


class Initializers(Struct):
    """The pending initializers, in order, and the result if one of them has rejected the object."""

    pending: Annotated[list[Initializer] | None, Required, ListType("map", keys=("name",)), Patch("merge", "name")] = (
        None
    )
    result: Status | None = None


class Initializer(Struct):
    """Somebody who looks at new objects."""

    name: Annotated[str | None, Required, Always("")] = None
