"""Tells the API server: a Binding is POSTed."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api import errors

from ..framework import BindPlugin, CycleState, EventWithHint, PodInfo, Status


class DefaultBinder(BindPlugin):
    """Binds by the `binding` subresource."""

    name = "DefaultBinder"

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            await self.handle.client.bind(pod.name, pod.namespace, node_name, uid=pod.uid)
        except (errors.APIError, OSError, TimeoutError) as error:
            return Status.of_error(error)
        return None

    def events_to_register(self) -> Sequence[EventWithHint]:
        return ()
