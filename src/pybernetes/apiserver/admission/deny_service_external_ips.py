"""Rejects new external addresses of Services: permission to write Services would let a user take over any address."""

from __future__ import annotations

from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden


class DenyServiceExternalIPs(Plugin):
    """Upstream's DenyServiceExternalIPs."""

    name = "DenyServiceExternalIPs"
    operations = (CREATE, UPDATE)
    resources = ("services",)

    def validate(self, attributes: Attributes) -> None:
        new, old = attributes.new.spec, attributes.old.spec if attributes.old is not None else None
        wanted = set((new.external_ips if new is not None else None) or ())
        if wanted.difference((old.external_ips if old is not None else None) or ()):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")
