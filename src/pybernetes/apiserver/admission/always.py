"""The two plugins for tests: everything passes, nothing passes."""

from __future__ import annotations

from .plugin import Attributes, Plugin, forbidden


class AlwaysAdmit(Plugin):
    """Upstream's AlwaysAdmit; has no effect."""

    name = "AlwaysAdmit"
    operations = ()


class AlwaysDeny(Plugin):
    """Upstream's AlwaysDeny."""

    name = "AlwaysDeny"

    def admit(self, attributes: Attributes) -> None:
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        if attributes.user.name != "system:apiserver":  # what the server itself makes, it needs
            raise forbidden(attributes, "admission control is denying all modifications")
