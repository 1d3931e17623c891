"""Which Service is served at an external address and port that several Services ask for (pure).

The first one has it as long as it asks for it; then the next. A frontend is never shared: a packet to one Service's
address must not reach another's endpoint. Cluster IPs and node ports are unique by the API server's allocators.
"""

from __future__ import annotations

from collections.abc import Iterable


class Claims:
    """The Services that claim each frontend, of one IP version."""

    def __init__(self) -> None:
        self._claims: dict[bytes, list[str]] = {}
        """Frontend -> the Services that ask for it, the first of which has it."""
        self._of: dict[str, set[bytes]] = {}

    def claim(self, service: str, frontend: bytes) -> bool:
        """A Service asks for a frontend; whether it has it."""
        found = self._claims.setdefault(frontend, [])
        if service not in found:
            found.append(service)
            self._of.setdefault(service, set()).add(frontend)
        return found[0] == service

    def settle(self, service: str, wanted: Iterable[bytes]) -> list[str]:
        """A Service asks for no other frontends than these; the Services that have one of its former ones now."""
        heirs = []
        for frontend in self._of.get(service, set()) - set(wanted):
            self._of[service].discard(frontend)
            found = self._claims[frontend]
            was_first = found[0] == service
            found.remove(service)
            if not found:
                del self._claims[frontend]
            elif was_first:
                heirs.append(found[0])
        if not self._of.get(service):
            self._of.pop(service, None)
        return heirs
