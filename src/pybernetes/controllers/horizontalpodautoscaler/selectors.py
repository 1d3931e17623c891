"""Which pods each autoscaler's target has, to notice when two want the same ones. No IO.

Selectors are found by one label that they require: of a thousand autoscalers only those are asked about a pod that
may speak of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybernetes.api import labels
from pybernetes.client.keys import Key

_Label = tuple[str, str] | None


class TargetSelectors:
    """The selectors by autoscaler. Every one is in `_by_label` under a label that it requires, or under None."""

    def __init__(self) -> None:
        self._selectors: dict[Key, labels.Selector] = {}
        self._by_label: dict[tuple[str, _Label], dict[Key, None]] = {}

    def set(self, key: Key, selector: labels.Selector) -> None:
        """Set the selector of an autoscaler's target."""
        if self._selectors.get(key) == selector:
            return
        self.drop(key)
        self._selectors[key] = selector
        self._by_label.setdefault((key.namespace, _required(selector)), {})[key] = None

    def drop(self, key: Key) -> None:
        """The autoscaler is gone."""
        selector = self._selectors.pop(key, None)
        if selector is None:
            return
        place = (key.namespace, _required(selector))
        del self._by_label[place][key]
        if not self._by_label[place]:
            del self._by_label[place]

    def matching(self, namespace: str, pods: Iterable[Mapping[str, str]]) -> list[Key]:
        """The autoscalers whose targets have one of these pods, given by their labels."""
        distinct = {frozenset(each.items()) for each in pods}
        found: dict[Key, None] = {}
        for each in distinct:
            pod = dict(each)
            for label in (None, *each):
                for key in self._by_label.get((namespace, label), ()):
                    if key not in found and self._selectors[key].matches(pod):
                        found[key] = None
        return [key for key in self._selectors if key in found] if len(found) > 1 else list(found)


def _required(selector: labels.Selector) -> _Label:
    for each in selector.requirements:
        if each.operator in (labels.EQUALS, labels.IN) and len(each.values) == 1:
            return each.key, each.values[0]
    return None
