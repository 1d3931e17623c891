"""Reads metrics from the three APIs that serve them: metrics.k8s.io, custom.metrics.k8s.io, external.metrics.k8s.io.

None of them is ours: a metrics server or an adapter answers behind the API server. Amounts are in thousandths.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from pybernetes.api import errors
from pybernetes.api.autoscaling.v2 import CrossVersionObjectReference
from pybernetes.api.labels import Selector
from pybernetes.api.quantity import QuantityError, parse
from pybernetes.api.times import TimeError, parse_duration, parse_time
from pybernetes.client.client import Client
from pybernetes.client.transport import with_query

from ..common.scales import NoMatch, Scales
from .replicas import MAX_INT64, MetricError, PodMetric

CUSTOM: Final = "custom.metrics.k8s.io"
DEFAULT_WINDOW: Final = 60.0
"""Seconds over which a custom metric was measured if it does not say."""


class MetricsClient:
    """Metrics of pods, objects and the rest of the world."""

    def __init__(self, client: Client, scales: Scales) -> None:
        self._client = client
        self._scales = scales
        self._custom_version = ""

    async def resource(self, resource: str, namespace: str, selector: Selector, container: str) -> dict[str, PodMetric]:
        """The usage of a resource by each pod, or by one container of it. Raises MetricError."""
        target = with_query(
            f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", {"labelSelector": str(selector)}
        )
        items = await self._items(target, "resource", "pods.metrics.k8s.io")
        result: dict[str, PodMetric] = {}
        for item in items:
            containers = [each for each in item.get("containers") or () if container in ("", each.get("name"))]
            amounts = [(each.get("usage") or {}).get(resource) for each in containers]
            if amounts and None not in amounts:
                total = sum(map(_milli, amounts))
                result[item["metadata"]["name"]] = PodMetric(total, _time(item), _duration(item.get("window")))
        return result

    async def pods(
        self, metric: str, namespace: str, selector: Selector, metric_selector: Selector
    ) -> dict[str, PodMetric]:
        """A custom metric of each pod. Raises MetricError."""
        items = await self._custom(f"namespaces/{namespace}/pods/*/{quote(metric, safe='')}", metric_selector, selector)
        return {
            item["describedObject"]["name"]: PodMetric(
                _milli(item.get("value")), _time(item), float(item.get("windowSeconds") or DEFAULT_WINDOW)
            )
            for item in items
        }

    async def object(
        self, metric: str, namespace: str, of: CrossVersionObjectReference, metric_selector: Selector
    ) -> int:
        """A custom metric of one object of the namespace, or of the namespace itself. Raises MetricError."""
        group = (of.api_version or "").rpartition("/")[0]
        metric = quote(metric, safe="")
        if of.kind == "Namespace" and not group:
            where = f"namespaces/{namespace}/metrics/{metric}"
        else:
            try:
                found = (await self._scales.resources_of(group, of.kind or ""))[0]
            except (NoMatch, errors.APIError, OSError, TimeoutError) as error:
                raise MetricError(
                    "unable to fetch metrics from custom metrics API: "
                    f"unable to map kind {of.kind}{'.' + group if group else ''} to resource: {error}"
                ) from None
            where = f"namespaces/{namespace}/{found.resource.fullname}/{quote(of.name or '', safe='')}/{metric}"
        items = await self._custom(where, metric_selector)
        if len(items) != 1:
            raise MetricError(
                "unable to fetch metrics from custom metrics API: the custom metrics API server returned "
                f"{len(items)} results when we asked for exactly one"
            )
        return _milli(items[0].get("value"))

    async def external(self, metric: str, namespace: str, selector: Selector) -> int:
        """The sum of all values of a metric of the world outside. Raises MetricError."""
        target = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{quote(metric, safe='')}"
        items = await self._items(
            with_query(target, {"labelSelector": str(selector)}), "external", f"{metric}.external.metrics.k8s.io"
        )
        return min(sum(_milli(item.get("value")) for item in items), MAX_INT64)

    async def _custom(self, where: str, metric_selector: Selector, selector: Selector | None = None) -> list[Any]:
        version = await self._version()
        query = {"labelSelector": str(selector) if selector else "", "metricLabelSelector": str(metric_selector)}
        try:
            return await self._items(with_query(f"/apis/{CUSTOM}/{version}/{where}", query), "custom", where)
        except MetricError:
            self._custom_version = ""  # it may have changed
            raise

    async def _version(self) -> str:
        """The version of the custom metrics API that is served, the newest that we know first."""
        if not self._custom_version:
            try:
                answer = await self._client.call("GET", f"/apis/{CUSTOM}")
            except (errors.APIError, OSError, TimeoutError) as error:
                raise MetricError(
                    "unable to fetch metrics from custom metrics API: "
                    + ("no known available metric versions found" if isinstance(error, errors.NotFound) else str(error))
                ) from None
            served = {each.get("version") for each in answer.get("versions") or ()}
            self._custom_version = next((each for each in ("v1beta2", "v1beta1") if each in served), "v1beta2")
        return self._custom_version

    async def _items(self, target: str, api: str, what: str) -> list[Any]:
        try:
            answer = await self._client.call("GET", target)
        except (errors.APIError, OSError, TimeoutError) as error:
            text = str(error) or type(error).__name__
            if text == "the server could not find the requested resource":
                text += f" (get {what})"
            raise MetricError(f"unable to fetch metrics from {api} metrics API: {text}") from None
        items = answer.get("items") if isinstance(answer, dict) else None
        if not items:
            raise MetricError(f"no metrics returned from {api} metrics API")
        return list(items)


def _milli(value: Any) -> int:
    try:
        return parse(str(value)).milli_value()
    except QuantityError:
        return 0


def _time(item: dict[str, Any]) -> float:
    try:
        return parse_time(item.get("timestamp") or "")
    except (TimeError, ValueError):
        return 0.0


def _duration(text: Any) -> float:
    try:
        return parse_duration(text) / 1e9 if text else 0.0
    except TimeError:
        return 0.0
