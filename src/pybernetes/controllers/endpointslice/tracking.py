"""The controller's memory between two syncs: its own writes, and when changes began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pybernetes.api.core.v1 import Pod, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.client.keys import Key, key_of, uid_of

from ..common.meta import generation_of, labels_of, meta, name_of
from ..common.pods import ready_condition
from .endpoints import SERVICE_NAME_LABEL

_DELETED: Final = -1


class SliceTracker:
    """The generations this controller has written. A cache that is behind them must not be acted upon."""

    def __init__(self) -> None:
        self._services: dict[Key, dict[str, int]] = {}
        """By service: the generation last written of each slice, by uid; -1 for one we have deleted."""

    def wrote(self, written: EndpointSlice) -> None:
        """Remember the answer to a write."""
        self._services.setdefault(service_key(written), {})[uid_of(written)] = generation_of(written)

    def deleted(self, gone: EndpointSlice) -> None:
        """Remember a deletion."""
        self._services.setdefault(service_key(gone), {})[uid_of(gone)] = _DELETED

    def is_news(self, seen: EndpointSlice) -> bool:
        """Whether a slice that was seen holds more than what this controller wrote."""
        known = self._services.get(service_key(seen), {}).get(uid_of(seen))
        return known is None or generation_of(seen) > known

    def expected(self, gone: EndpointSlice) -> bool:
        """A slice was seen to go; whether that was our doing, or none of our business."""
        known = self._services.get(service_key(gone), {}).pop(uid_of(gone), None)
        return known is None or known == _DELETED

    def is_stale(self, service: Service, slices: Iterable[EndpointSlice]) -> bool:
        """Whether these slices, from a cache, are older than what we wrote."""
        known = self._services.get(key_of(service))
        if not known:
            return False
        generations = {uid_of(each): generation_of(each) for each in slices}
        for uid, written in known.items():
            seen = generations.get(uid)
            if written == _DELETED:
                if seen is not None:
                    return True
            elif seen is None or seen < written:
                return True
        return False

    def forget(self, service: Key) -> None:
        """The service is gone."""
        self._services.pop(service, None)


class TriggerTimes:
    """When the oldest change began that a write is about, so that the delay to the network can be measured."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[str, dict[str, str]]] = {}

    def compute(self, service: Service, pods: Iterable[Pod]) -> str | None:
        """The time for a write now; None if nothing is newer than at the last one."""
        key = key_of(service)
        before = self._known.get(key)
        last_service, last_pods = before or ("", {})
        created = meta(service).creation_timestamp or ""
        times: dict[str, str] = {}
        changed = []
        for pod in pods:
            condition = ready_condition(pod)
            time = condition.last_transition_time if condition else None
            if time:
                times[name_of(pod)] = time
                if time > last_pods.get(name_of(pod), ""):
                    changed.append(time)
        if created > last_service:
            changed.append(created)
        self._known[key] = created, times
        if before is None:
            return created or None
        return min(changed, default=None)

    def forget(self, service: Key) -> None:
        """The service is gone."""
        self._known.pop(service, None)


def service_key(each: EndpointSlice) -> Key:
    """The service that a slice belongs to, by its label."""
    return Key(meta(each).namespace or "", labels_of(each).get(SERVICE_NAME_LABEL, ""))
